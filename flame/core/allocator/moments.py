"""Find the moment at which memory is asked for: by time, or when a request failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.model.activities import TableCut
from flame.core.model.allocator.history import NO_TIME
from flame.core.model.allocator.recorded import MemoryOfDevice, OutOfMemory
from flame.core.units import format_ns


def check_time(time: int, times: I8, cut: TableCut, file: str = "") -> None:
    """Refuse a moment that ``times`` of events do not span, or the window of ``cut``; UsageError.

    ``file`` is what the file of the events is called, where there are several.
    """
    times = times[times != NO_TIME]
    history = f"the history of {file}" if file else "the history"
    if not len(times):
        raise UsageError(f"--at {format_ns(time)}: {history} has no times: use peak, oom or end")
    first, last = int(times.min()), int(times.max())
    if not first <= time <= last:
        span = f"{format_ns(first)} to {format_ns(last)}"
        remedy = ": --rank chooses others" if file else ""
        raise UsageError(f"--at {format_ns(time)}: {history} runs from {span}{remedy}")
    if not is_within(time, cut):
        raise UsageError(f"--at {format_ns(time)} lies outside of --time or --step")


def is_within(time: int, cut: TableCut) -> bool:
    """Tell whether ``time`` lies in the window of ``cut``."""
    return (cut.begin is None or time >= cut.begin) and (cut.end is None or time < cut.end)


def failures_within(
    devices: Iterable[MemoryOfDevice], cut: TableCut
) -> list[tuple[int, OutOfMemory]]:
    """List the requests that failed on those of ``devices`` that ``cut`` shows, in its window.

    Each comes with the place of its device.
    """
    return [
        (each.device, one)
        for each in devices
        if cut.devices is None or each.device in cut.devices
        for one in each.out_of_memory
        if is_within(one.time, cut)
    ]


def last_failure(failures: Sequence[tuple[int, OutOfMemory]]) -> tuple[int, OutOfMemory]:
    """Choose the last of ``failures``, each with the place of its device.

    UsageError where there is none.
    """
    if not failures:
        raise UsageError("--at oom: no request for memory failed here: use peak or end")
    return max(failures, key=lambda failure: (failure[1].time, failure[1].position))
