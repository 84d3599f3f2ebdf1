"""Count the work of what a frame stands for: an operator, or a layer with its weight."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod

from flame.core.columns import I8
from flame.core.frame import Frame
from flame.core.lazy_regex import lazy_regex
from flame.core.operators.cost import Cost, least_bytes
from flame.core.operators.formulas import OPERATORS, cost_of
from flame.core.operators.inputs import NoFormulaError, read_inputs

_PARAMETERS = "TrainableParams={"
"""In the detail of what vLLM and TensorRT-LLM write of a layer; see `flame.core.names.nvtx`."""

_WEIGHT = lazy_regex(r"TrainableParams=\{[^}]*\bweight: \[(\d{1,15}), (\d{1,15})\]")
_EMBEDDING = "embed"
_MOST_KEPT = 1 << 10
"""Costs that are remembered: layers of a model are alike, and so are most calls of an operator."""


def sized_frames(frames: Sequence[Frame], ranges: I8) -> tuple[int, ...]:
    """Choose those of ``ranges``, ids of frames, that are operators, or layers, with shapes."""
    return tuple(at for at in ranges.tolist() if _has_sizes(frames[at]))


def _has_sizes(frame: Frame) -> bool:
    if not frame.extra or not frame.get("shapes"):
        return False
    return frame.name in OPERATORS or _weight(frame) is not None


def _weight(frame: Frame) -> re.Match[str] | None:
    """Find the sizes of the weight of a layer, if it has one that is a matrix."""
    detail = frame.get("detail")
    return _WEIGHT.search(detail) if _PARAMETERS in detail else None


def frame_cost(frame: Frame, dtype: str) -> Cost | None:
    """Count the work of one call of what ``frame`` stands for; None where that is not known.

    ``dtype`` is the type of tensors of which none was recorded, empty where nobody says.
    """
    told = *(frame.get(key) for key in ("shapes", "types", "strides", "values")), dtype
    if frame.name in OPERATORS:
        return _operator_cost(frame.name, *told)
    weight = _weight(frame)
    if weight is None or _EMBEDDING in frame.name.rpartition(".")[2]:
        return None
    return _layer_cost(int(weight[1]), int(weight[2]), *told)


@lru_cache(_MOST_KEPT)
def _operator_cost(name: str, *told: str) -> Cost | None:
    return cost_of(name, read_inputs(*told))


@lru_cache(_MOST_KEPT)
def _layer_cost(rows: int, columns: int, *told: str) -> Cost | None:
    """Count a layer whose only input is multiplied by its weight, [out, in], as a linear one is."""
    inputs = read_inputs(*told)
    if len(inputs.shapes) != 1:
        return None
    both = inputs._replace(shapes=[*inputs.shapes, [rows, columns]])
    try:
        given = both.shape(0)
        both.shape(1, 2)
        if len(given) < 2 or given[-1] != columns:
            return None
        moved = least_bytes(both, (0, 1), prod(given[:-1]) * rows)
    except NoFormulaError:
        return None
    return Cost(2 * prod(given) * rows, moved, both.precision(0, 1))
