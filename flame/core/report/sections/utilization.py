"""Tell how busy each GPU was, and with what."""

from __future__ import annotations

from typing import Any

import numpy as np

from flame.core.analysis.utilization import DeviceGaps, Utilization, kernels_busy
from flame.core.columns import I8, places_in, unique_rows
from flame.core.model.profile import Profile
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, share
from flame.core.timeline.devices import timed_rows
from flame.core.timeline.lane_intervals import LaneIntervals
from flame.core.units import BLOCKS

NAME, TITLE = "utilization", "How busy each GPU was"

CHUNKS = 60
"""Equal parts of a window, of which is told how busy each was."""

_COLUMNS = (
    TableColumn("gpu", "GPU"),
    TableColumn("window_ns", "window", "ns"),
    TableColumn("busy_ns", "busy", "ns"),
    TableColumn("busy_percent", "of window", "percent"),
    TableColumn("busy_kernels_ns", "by kernels", "ns"),
    TableColumn("copies_alone_ns", "copies alone", "ns"),
    TableColumn("idle_ns", "idle", "ns"),
    TableColumn("gaps", "gaps", "count"),
    TableColumn("concurrency", "at once", "ratio"),
    TableColumn("most_streams", "streams", "count"),
)
_OVER_TIME = (TableColumn("gpu", "GPU"), TableColumn("chart", "busy over time", "chart"))


def utilization_section(scope: Scope) -> Section:
    """Tell how long each GPU was busy in its window: the union of what ran, never the sum."""
    if not scope.gpus:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    facts = [_facts(scope, gpu) for gpu in scope.gpus]
    rows = [
        (gpu.label, *(one[column.key] for column in _COLUMNS[1:]))
        for gpu, one in zip(scope.gpus, facts, strict=True)
    ]
    charts = [
        (gpu.label, _chart(one["chunks"])) for gpu, one in zip(scope.gpus, facts, strict=True)
    ]
    tables = (
        Table.of("rows", "", _COLUMNS, rows),
        Table.of("over_time", "", _OVER_TIME, charts),
    )
    return Section(NAME, TITLE, facts={"devices": facts}, tables=tables)


def _facts(scope: Scope, gpu: Utilization) -> dict[str, Any]:
    kernels = kernels_busy(scope.profile, gpu)
    running, most = _concurrency(scope.profile, gpu)
    busy, length = gpu.in_cells(gpu.window, CHUNKS)
    return {
        **scope.device(gpu),
        "begin_ns": gpu.window.low,
        "window_ns": gpu.length,
        "busy_ns": gpu.busy,
        "busy_percent": share(gpu.busy, gpu.length),
        "busy_kernels_ns": kernels,
        "copies_alone_ns": gpu.busy - kernels,
        "idle_ns": gpu.idle,
        "gaps": len(DeviceGaps(scope.profile, gpu)),
        "concurrency": round(running / gpu.busy, 3) if gpu.busy else None,
        "most_streams": most,
        "chunks": [share(*part) for part in zip(busy.tolist(), length.tolist(), strict=True)],
    }


def _concurrency(profile: Profile, gpu: Utilization) -> tuple[int, int]:
    """Sum what ran in the windows of a GPU, ns, and count the streams that ran at once."""
    table = profile.activities
    rows = timed_rows(profile, gpu.device)
    start = table.start[rows]
    end = start + table.duration[rows]
    windows = gpu.windows
    inside = windows.sums_until(end) - windows.sums_until(start)
    streams, of_group = unique_rows([table.groups.process, table.groups.stream])
    lane = of_group[table.groups.of_row[rows]]
    some = inside > 0
    if not some.all():
        lane, start, end = lane[some], start[some], end[some]
    return int(inside.sum()), _most_open(lane, start, end, len(streams))


def _most_open(lane: I8, start: I8, end: I8, lanes: int) -> int:
    """The largest number of different streams, so many ``lanes``, that were open together."""
    if np.count_nonzero(np.bincount(lane, minlength=lanes)) < 2:
        return min(len(lane), 1)
    runs = LaneIntervals.union(lane, start, end)
    # What ends makes room for what begins at the same time.
    begin, end = (np.sort(times, kind="stable") for times in (runs.begin, runs.end))
    opened = np.arange(1, len(runs) + 1) - places_in(end, begin, "right")
    return int(opened.max(initial=0))


def _chart(chunks: list[float | None]) -> str:
    """A character per part, the higher the busier; a point where the window has none."""
    highest = len(BLOCKS) - 1
    return "".join(
        "·" if one is None else BLOCKS[min(-(-round(one * highest) // 100), highest)]
        for one in chunks
    )
