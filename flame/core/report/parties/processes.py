"""Tell what each process did: what it launched, how long it was blocked, what it spent most on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flame.core.columns import I8, Bool, sum_by, taken
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import CallClass
from flame.core.model.frames import COPIES, Kind
from flame.core.model.launches import UNKNOWN
from flame.core.model.meta import process_of_threads
from flame.core.report.host.host_time import HostTime
from flame.core.report.labels import frame_place, process_labels, shown_as
from flame.core.report.measures.activity_groups import unique_by_group
from flame.core.report.measures.launching_calls import launches_by_group
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share
from flame.core.timeline.call_classes import call_classes

NAME, TITLE = "processes", "What each process did"

_TOP = 3

UNKNOWN_PROCESS = "not known"

_COLUMNS = (
    TableColumn("process", "process"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("copies", "copies", "count"),
    TableColumn("bytes", "copied", "bytes"),
    TableColumn("launches", "launches", "count"),
    TableColumn("launch_ns", "in launches", "ns"),
    TableColumn("blocked_ns", "blocked", "ns"),
    TableColumn("ranges", "ranges", "count"),
    TableColumn("launched_percent", "with launch", "percent"),
    TableColumn("nvtx_percent", "in ranges", "percent"),
    TableColumn("top_kernels", "most time in"),
)


@dataclass(frozen=True, eq=False)
class ProcessColumns:
    """Hold what each process did, i8[processes], ns; of what passes the filters.

    ``bytes``, ``blocked`` and ``ranges`` are None where they were not recorded; ``blocked`` is the
    time in blocking calls, summed over threads. ``launched`` and ``in_ranges`` are the GPU time
    with a launch, and with a range. ``top`` are the kernels with most time, by process.
    """

    gpu_time: I8
    kernels: I8
    copies: I8
    bytes: I8 | None
    launches: I8
    launch_ns: I8
    blocked: I8 | None
    ranges: I8 | None
    launched: I8
    in_ranges: I8
    top: tuple[tuple[int, ...], ...]


def measure_processes(scope: Scope) -> ProcessColumns:
    """Sum up what each process of the trace did."""
    size, groups = len(scope.profile.processes) + 1, scope.profile.activities.groups
    process = np.where(groups.process < 0, size - 1, groups.process).astype(np.int64)
    time, number = scope.own_weights

    def of(values: I8, mask: Bool | None = None) -> I8:
        if mask is None:
            return sum_by(process, values, size)
        return sum_by(process[mask], values[mask], size)

    return ProcessColumns(
        of(time),
        of(number, groups.kind == Kind.KERNEL),
        of(number, np.isin(groups.kind, COPIES)),
        _bytes(scope, process, size),
        of(launches_by_group(scope)),
        of(_launch_time(scope)),
        _blocked(scope, size),
        _ranges(scope, size),
        of(time, groups.launched),
        of(time, groups.nvtx > 0),
        _top_kernels(scope, size),
    )


def _launch_time(scope: Scope) -> I8:
    """Sum the time of the calls that launched what passes, i8[groups] in ns."""
    table, rows = scope.profile.activities, scope.rows
    group = taken(table.groups.of_row, rows)
    return sum_by(group, taken(table.launch_share, rows), len(table.groups))


def _bytes(scope: Scope, process: I8, size: int) -> I8 | None:
    """Sum what was copied, by the ``process`` of each group of activities."""
    details, groups = scope.profile.launches, scope.profile.activities.groups
    if details is None:
        return None
    rows = scope.rows[taken(details.bytes, scope.rows) != UNKNOWN]
    return sum_by(process[groups.of_row[rows]], details.bytes[rows], size)


def _blocked(scope: Scope, size: int) -> I8 | None:
    calls = scope.profile.calls
    if calls is None or not len(calls):
        return None
    rows = np.flatnonzero(call_classes(scope.profile) == CallClass.SYNC)
    length = HostTime(scope).within(calls.thread[rows], calls.start[rows], calls.end[rows])
    return sum_by(process_of_threads(scope.profile.threads)[calls.thread[rows]], length, size)


def _ranges(scope: Scope, size: int) -> I8 | None:
    """How many ranges are open at any time that counts, by process."""
    profile = scope.profile
    frames = np.flatnonzero(profile.frames.kind == Kind.NVTX).tolist()
    if profile.spans_finder is None or not frames:
        return None
    spans, host = profile.spans_finder(frames), HostTime(scope)
    thread, threads = spans.thread, process_of_threads(profile.threads)
    if not host.is_all:
        thread = thread[host.within(thread, spans.start, spans.end) > 0]
    number = np.bincount(thread, minlength=len(threads))
    return sum_by(np.where(threads < 0, size - 1, threads), number, size)


def _top_kernels(scope: Scope, size: int) -> tuple[tuple[int, ...], ...]:
    """The kernels with most time of each process, as they are shown."""
    table, rows = scope.profile.activities, scope.rows_of(Kind.KERNEL)
    groups = table.groups
    of_group = np.where(groups.process < 0, size - 1, groups.process).astype(np.int64)
    shown = shown_as(scope.labels, groups.frame)
    some, place = unique_by_group(table, rows, [of_group, shown])
    total = sum_by(place, table.duration[rows], len(some))
    first_of = groups.of_row[rows[some]]
    owner, frame = of_group[first_of], shown[first_of]
    order = np.lexsort((-total, owner))
    first = np.searchsorted(owner[order], np.arange(size))
    last = np.searchsorted(owner[order], np.arange(size), "right")
    return tuple(
        tuple(frame[order[low : min(high, low + _TOP)]].tolist())
        for low, high in zip(first.tolist(), last.tolist(), strict=True)
    )


def processes_section(scope: Scope) -> Section:
    """Tell what each process did."""
    if scope.profile.resolved or not scope.profile.processes:
        return Section(NAME, TITLE, why="the trace knows no processes")
    found = measure_processes(scope)
    order = _order(found)
    processes = scope.profile.grouping.process.tolist()
    places = [frame_place(scope, "process", [*processes, -1][at]) for at in order]
    table = Table.of("rows", "", _COLUMNS, _rows(scope, found, order), places)
    return Section(NAME, TITLE, tables=(table,))


def _order(found: ProcessColumns) -> list[int]:
    """All processes, most GPU time first; what is not known of only where there is any."""
    order: list[int] = np.argsort(-found.gpu_time, kind="stable").tolist()
    last = len(order) - 1
    unknown = found.gpu_time[last] or found.kernels[last] or found.copies[last]
    return [at for at in order if at < last or unknown]


def _rows(scope: Scope, found: ProcessColumns, order: list[int]) -> Iterator[tuple[Value, ...]]:
    text, size = scope.labels.text, len(found.gpu_time)
    whole = int(found.gpu_time.sum())
    labels = [*process_labels(scope.profile), UNKNOWN_PROCESS]
    columns = (
        found.gpu_time,
        found.kernels,
        found.copies,
        found.bytes,
        found.launches,
        found.launch_ns,
        found.blocked,
        found.ranges,
        found.launched,
        found.in_ranges,
    )
    cells: list[list[Any]] = [
        [None] * size if column is None else column.tolist() for column in columns
    ]
    for at in order:
        gpu_time, kernels, copies, *rest, launched, in_ranges = (column[at] for column in cells)
        yield (
            *(labels[at], gpu_time, share(gpu_time, whole), kernels, copies, *rest),
            *(share(launched, gpu_time), share(in_ranges, gpu_time)),
            ", ".join(text[frame] for frame in found.top[at]) or None,
        )
