"""How much memory lived, by cells of time: the most of each, never the mean."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.allocator.recorded import MemoryCurve
from flame.core.timeline.intervals import timeline
from flame.core.timeline.lanes import Track
from flame.core.timeline.memory_lanes import MemoryLane, lane_of_curve
from tests.core.allocator.test_allocations import snapshots
from tests.core.allocator.test_moments import profile_of
from tests.support.tiers import examples
from tests.support.writers.snapshotfile import SnapshotFile

EVENTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(50, 99)), min_size=1, max_size=30
)


def lane_of(events: list[tuple[int, int, int]]) -> MemoryLane:
    time, live, reserved = np.array(sorted(events, key=lambda event: event[0]), np.int64).T
    position = np.arange(len(time)) - 1
    return lane_of_curve(MemoryCurve(0, position, time, live, reserved), 0, ())


@given(EVENTS, st.integers(0, 5), st.integers(6, 12), st.integers(1, 7))
@examples(30)
def test_each_cell_has_the_most_of_its_time(
    events: list[tuple[int, int, int]], low: int, high: int, width: int
) -> None:
    lane, edges = lane_of(events), np.linspace(low, high, width + 1)
    found = [column.tolist() for column in lane.heights(edges) if column is not None]
    curve = lane.curve
    for column, values in zip(found, (curve.live, curve.reserved), strict=True):
        assert values is not None
        for cell, size in enumerate(column):
            begun = np.flatnonzero(curve.time < edges[cell])
            there = values[begun[-1]] if len(begun) else values[0]
            inside = values[(curve.time >= edges[cell]) & (curve.time < edges[cell + 1])]
            assert size == max(int(there), int(inside.max(initial=0)))


@given(snapshots())
@examples(5)
def test_there_is_a_lane_for_each_gpu_and_no_work(file: SnapshotFile) -> None:
    profile = profile_of(file)
    rows = timeline(profile)
    assert profile.memory is not None
    assert [lane.owner for lane in rows.lanes] == [each.device for each in profile.memory.curves]
    assert {lane.track for lane in rows.lanes} <= {Track.MEMORY}
    for lane, known in zip(rows.lanes, profile.memory.devices, strict=False):
        memory = rows.memory_of(lane)
        assert int(memory.top[memory.peak]) == int(memory.curve.live.max()) == known.peak
        assert rows.high(lane.last - 1) == rows.whole.high
        assert np.array_equal(rows.low[lane.first : lane.last], memory.low)
