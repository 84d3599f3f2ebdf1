"""Rows over time and brushes equal what plain loops find in the same trace."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from flame.core.errors import NoMatchError
from flame.core.model.profile import Profile
from flame.core.projection.filters import Time
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import highlight
from flame.core.timeline.intervals import Timeline, timeline
from flame.core.timeline.lanes import Track
from flame.core.timeline.raster import Grid
from flame.tui.timeline.time_view import TimeView
from tests.support.oracles.naive import Row, Trace, read_ranges
from tests.support.oracles.naive_views import deepest, union
from tests.support.profiles.project_tree import project_tree
from tests.system.views.shown_cases import LEVELS, loaded, on_real, over_time, path_of


def windows_of(time: Timeline) -> list[TimeWindow]:
    high = time.whole.high
    return [
        time.whole,
        TimeWindow(high // 3, high // 2),
        TimeWindow(high - high // 7, high),
        TimeWindow(high // 5, high // 5 + 1_000),
    ]


def check_timeline(profile: Profile, rows: list[Row], ranges: dict[int, Any]) -> None:
    time = timeline(profile)
    spans = defaultdict[Any, list[tuple[int, int]]](list)
    streams = defaultdict[Any, list[tuple[int, int]]](list)
    threads = {
        thread: [(r.start - time.origin, r.end - time.origin) for r in of if r.end > r.start]
        for thread, of in ranges.items()
    }
    for row in rows:
        if row.kind != "graph" or row.start or row.duration:
            span = row.start - time.origin, row.start - time.origin + row.duration
            spans[row.gpu].append(span)
            streams[row.gpu, row.pid, row.stream].append(span)
    work = [lane for lane in time.lanes if lane.track == Track.WORK]
    for window in windows_of(time):
        busy = {name: device.share(window) for name, device in time.devices}
        assert busy == pytest.approx({f"GPU{gpu}": share(of, window) for gpu, of in spans.items()})
        found = [time.busy(lane).share(window) for lane in work if not lane.level]
        assert sorted(found) == pytest.approx(sorted(share(of, window) for of in streams.values()))
        outer = [lane for lane in time.lanes if lane.track == Track.RANGES and not lane.level]
        found = [time.busy(lane).share(window) for lane in outer]
        expected = [share(of, window) for of in threads.values() if of]
        assert sorted(found) == pytest.approx(sorted(expected))
    levels = [lane.level for lane in time.lanes if lane.track == Track.RANGES]
    assert sorted(levels) == sorted(n for of in ranges.values() for n in range(deepest(of)))


def share(intervals: list[tuple[int, int]], window: TimeWindow) -> float:
    return union(intervals, *window) / max(window.length, 1)


@on_real
def test_rows_over_time_are_as_busy_as_the_file_says(trace: str) -> None:
    check_timeline(*loaded(trace), read_ranges(Trace(path_of(trace)), start_end=False))


@on_real
@pytest.mark.parametrize(("left", "right"), [(0, 120), (40, 41), (41, 119)])
def test_a_brush_filters_by_what_starts_in_its_cells(trace: str, left: int, right: int) -> None:
    profile, rows = loaded(trace)
    check_brush(profile, rows, left, right, 120)


def check_brush(profile: Profile, rows: list[Row], left: int, right: int, width: int) -> None:
    time = over_time(profile)
    view = TimeView(time, highlight(time, np.ones(len(time), bool)))
    view.viewport.width = width
    view.viewport.brush_cells(left, right)
    assert view.viewport.brush
    low, high = (time.origin + edge for edge in view.viewport.brush.window)
    cells = {id(row): (row.start - time.origin) * width // time.whole.length for row in rows}
    expected = [row for row in rows if left <= cells[id(row)] < right]
    try:
        tree = project_tree(profile, LEVELS, (Time(low, high),), "gpu")
    except NoMatchError:
        assert not expected
    else:
        found = int(tree.total[0]), int(tree.count[0])
        assert found == (sum(row.duration for row in expected), len(expected))


def test_the_end_of_a_brush_is_the_end_of_its_last_cell() -> None:
    """Cells of 2.5 ns: what starts at 2 ns is in the first one."""
    grid = Grid(TimeWindow(0, 10), 4)
    assert [grid.time(cell) for cell in range(5)] == [0, 2.5, 5, 7.5, 10]
    grid = Grid(TimeWindow(0, 49_000_000_000_049), 49)
    assert all(grid.time(cell) == cell * 1_000_000_000_001 for cell in range(50))
