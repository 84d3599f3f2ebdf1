"""Find the moment at which memory is asked for: by time, or when a request failed."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.errors import UsageError
from flame.core.model.activities import TableCut
from flame.core.model.allocator.history import NO_TIME, AllocatorEvents
from flame.core.model.allocator.recorded import OutOfMemory
from flame.core.units import format_ns


def check_time(time: int, events: AllocatorEvents, cut: TableCut) -> None:
    """Refuse a moment outside of what was recorded, or of the window of ``cut``; UsageError."""
    times = events.time[events.time != NO_TIME]
    if not len(times):
        raise UsageError(f"--at {format_ns(time)}: this history has no times: use peak, oom or end")
    first, last = int(times.min()), int(times.max())
    if not first <= time <= last:
        span = f"{format_ns(first)} to {format_ns(last)}"
        raise UsageError(f"--at {format_ns(time)}: the history runs from {span}")
    if not is_within(time, cut):
        raise UsageError(f"--at {format_ns(time)} lies outside of --time or --step")


def is_within(time: int, cut: TableCut) -> bool:
    """Tell whether ``time`` lies in the window of ``cut``."""
    return (cut.begin is None or time >= cut.begin) and (cut.end is None or time < cut.end)


def last_failure(failures: Sequence[tuple[int, OutOfMemory]]) -> tuple[int, OutOfMemory]:
    """Choose the last of requests that failed, each with the place of its device.

    UsageError where there is none.
    """
    if not failures:
        raise UsageError("--at oom: no request for memory failed here")
    return max(failures, key=lambda failure: (failure[1].time, failure[1].position))
