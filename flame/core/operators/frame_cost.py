"""Count the work of what a frame stands for: an operator, or a layer with its weight."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from flame.core.columns import I8
from flame.core.frame import Frame
from flame.core.lazy_regex import lazy_regex
from flame.core.operators.cost import Cost, least_bytes
from flame.core.operators.formulas import OPERATORS, cost_of
from flame.core.operators.inputs import NoFormulaError, OperatorInputs, read_inputs

_PARAMETERS = "TrainableParams={"
"""In the detail of what vLLM and TensorRT-LLM write of a layer; see `flame.core.names.nvtx`."""

_WEIGHT = lazy_regex(r"TrainableParams=\{[^}]*\bweight: \[(\d{1,15}), (\d{1,15})\]")
_EMBEDDING = "embed"


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
    shapes, types, strides, values = (
        frame.get(key) for key in ("shapes", "types", "strides", "values")
    )
    inputs = read_inputs(shapes, types, strides, values, dtype)
    if frame.name in OPERATORS:
        return cost_of(frame.name, inputs)
    return _layer_cost(frame, inputs)


def _layer_cost(frame: Frame, inputs: OperatorInputs) -> Cost | None:
    """Count a layer whose only input is multiplied by its weight, [out, in], as a linear one is."""
    weight = _weight(frame)
    if weight is None or len(inputs.shapes) != 1 or _EMBEDDING in frame.name.rpartition(".")[2]:
        return None
    sizes = tuple(map(int, weight.groups()))
    both = inputs._replace(shapes=[*inputs.shapes, list(sizes)])
    try:
        given = both.shape(0)
        both.shape(1, 2)
        if len(given) < 2 or given[-1] != sizes[1]:
            return None
        moved = least_bytes(both, (0, 1), prod(given[:-1]) * sizes[0])
    except NoFormulaError:
        return None
    return Cost(2 * prod(given) * sizes[0], moved, both.precision(0, 1))
