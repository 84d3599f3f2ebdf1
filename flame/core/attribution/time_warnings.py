"""Warn of odd times in a trace: backward, missing, nested too deeply, contradicted."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.attribution.python_calls import FunctionIndex
from flame.core.columns import Bool
from flame.core.model.frames import Kind
from flame.core.model.raw import RawActivities, RawTrace


def lacks_times(work: RawActivities) -> Bool:
    """Tell which CUDA graphs have no times, because they were not collected: CUPTI writes zeros."""
    zero: Bool = (work.kind == Kind.GRAPH) & (work.start == 0) & (work.end == 0)
    return zero


def time_warnings(raw: RawTrace, too_deep: int, functions: FunctionIndex) -> list[str]:
    """Write a line per oddity; ``too_deep`` ranges were nested deeper than can be shown."""
    return [*_of_activities(raw.activities), *_of_ranges(raw, too_deep), *_of_functions(functions)]


def _of_activities(work: RawActivities) -> Iterator[str]:
    backwards = int((work.end < work.start).sum())
    if backwards:
        yield f"{backwards:,} GPU activities end before they start: they count as 0 ns"
    empty = int(lacks_times(work).sum())
    if empty:
        yield f"{empty:,} CUDA graph launches were recorded without times"


def _of_ranges(raw: RawTrace, too_deep: int) -> Iterator[str]:
    what = "operators" if raw.meta.format == "kineto" else "NVTX ranges"
    backwards = int((raw.ranges.end < raw.ranges.start).sum())
    if backwards:
        yield f"{backwards:,} {what} end before they start: left out"
    if too_deep:
        yield _deep(too_deep, what, "range")


def _of_functions(functions: FunctionIndex) -> Iterator[str]:
    backwards = int((functions.end < functions.start).sum())
    if backwards:
        yield f"{backwards:,} Python calls end before they start: left out"
    if functions.too_deep:
        yield _deep(functions.too_deep, "Python calls", "call")
    if functions.contradicted:
        yield (
            f"{functions.contradicted:,} Python calls name a caller that was not running then: "
            "placed by time"
        )


def _deep(count: int, plural: str, singular: str) -> str:
    return (
        f"{count:,} {plural} are nested deeper than {MAX_DEPTH}: "
        f"their time counts in the {singular} around them"
    )
