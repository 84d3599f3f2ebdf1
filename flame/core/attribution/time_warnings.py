"""Warn of odd times in a trace: backward, missing, nested too deeply, contradicted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.columns import Bool
from flame.core.model.frames import Kind
from flame.core.model.raw import RawActivities, RawTrace
from flame.core.units import format_counted

Words = tuple[str, str]
"""What one is called, and what several are."""

_RANGES = ("NVTX range", "NVTX ranges")
_OPERATORS = ("operator", "operators")
_CALLS = ("Python call", "Python calls")


def lacks_times(work: RawActivities) -> Bool:
    """Tell which CUDA graphs have no times, because they were not collected: CUPTI writes zeros."""
    graph: Bool = work.kind == Kind.GRAPH
    return graph & (work.start == 0) & (work.end == 0) if graph.any() else graph


def time_warnings(raw: RawTrace, too_deep: int, functions: FunctionIndex) -> list[str]:
    """Write a line per oddity; ``too_deep`` ranges were nested deeper than can be shown."""
    return [*_of_activities(raw.activities), *_of_ranges(raw, too_deep), *_of_functions(functions)]


def _of_activities(work: RawActivities) -> Iterator[str]:
    if backwards := int(np.count_nonzero(work.end < work.start)):
        yield format_counted(
            backwards,
            "GPU activity ends before it starts: it counts as 0 ns",
            "GPU activities end before they start: they count as 0 ns",
        )
    if empty := int(np.count_nonzero(lacks_times(work))):
        were = format_counted(empty, "CUDA graph launch was", "CUDA graph launches were")
        yield f"{were} recorded without times"


def _of_ranges(raw: RawTrace, too_deep: int) -> Iterator[str]:
    words = _OPERATORS if raw.meta.format == "kineto" else _RANGES
    if backwards := int(np.count_nonzero(raw.ranges.end < raw.ranges.start)):
        yield _backwards(backwards, words)
    if too_deep:
        yield _deep(too_deep, words, "range")


def _of_functions(functions: FunctionIndex) -> Iterator[str]:
    if backwards := int(np.count_nonzero(functions.end < functions.start)):
        yield _backwards(backwards, _CALLS)
    if functions.too_deep:
        yield _deep(functions.too_deep, _CALLS, "call")
    if functions.contradicted:
        name = format_counted(functions.contradicted, "Python call names", "Python calls name")
        yield f"{name} a caller that was not running then: placed by time"


def _backwards(count: int, words: Words) -> str:
    one, many = words
    ends = format_counted(count, f"{one} ends before it starts", f"{many} end before they start")
    return f"{ends}: left out"


def _deep(count: int, words: Words, around: str) -> str:
    one, many = words
    return format_counted(
        count,
        f"{one} is nested deeper than {MAX_DEPTH}: its time counts in the {around} around it",
        f"{many} are nested deeper than {MAX_DEPTH}: their time counts in the {around} around them",
    )
