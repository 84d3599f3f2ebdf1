"""Lanes of what held threads up: of whom, in which order, and moment by moment as plain loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.calls import StateKind
from flame.core.model.threads.states import StateOwner, StateSpans
from flame.core.timeline.intervals import Timeline, timeline
from flame.core.timeline.lanes import STATES, Lane, Track
from flame.core.timeline.thread_states.lanes import with_states
from flame.core.timeline.thread_states.spans import state_spans
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import START_END, NsysFile
from tests.support.writers.overheads import overhead

LATEST = 9_000_000_000_000_000_000
END = 100


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """Two threads of which the second launches more, and a GPU; from 1,000 to 1,100."""
    path = tmp_path_factory.mktemp("bare") / "trace.sqlite"
    with NsysFile(path) as file:
        for tid, end in ((100, 1_030), (101, 1_100)):
            file.nvtx(f"step {tid}", 1_000 + tid % 100, 1_020, tid=tid)
            file.api("cudaLaunchKernel_v7000", 1_010, 1_015, corr=tid, tid=tid)
            file.kernel("gemm", 1_020, end, corr=tid, stream=tid)
    return timeline(load(path))


Row = tuple[StateKind, int, int, int]
rows_ = st.lists(
    st.tuples(
        st.sampled_from(StateKind),
        st.integers(0, 4),
        st.integers(-30, END + 30),
        st.integers(1, 60),
    ),
    max_size=14,
)
OWNERS = (
    StateOwner("thread of 100", 0),
    StateOwner("other threads", -1),
    StateOwner("thread of 101", 1),
    StateOwner("other processes", -1),
    StateOwner("thread of 100", 0),
)


def spans_of(rows: list[Row], origin: int) -> StateSpans:
    columns = np.array(rows, np.int64).reshape(-1, 4)
    start = origin + columns[:, 2]
    return StateSpans(
        tuple(f"state {number}" for number in range(len(rows))),
        OWNERS,
        columns[:, 0].astype(np.uint8),
        np.arange(len(rows), dtype=np.int32),
        columns[:, 1].astype(np.int32),
        start,
        start + columns[:, 3],
    )


def moments(found: Timeline, lanes: list[Lane]) -> dict[tuple[int, Track], set[int]]:
    """At which moments the lanes of an owner and a track show anything; nothing overlaps in one."""
    shown: dict[tuple[int, Track], set[int]] = defaultdict(set)
    for lane in lanes:
        own: set[int] = set()
        for item in range(lane.first, lane.last):
            part = set(range(int(found.low[item]), found.high(item)))
            assert not part & own
            own |= part
        shown[lane.owner, lane.track] |= own
    return shown


def kept(found: Timeline, before: Timeline) -> Iterator[tuple[Lane, Lane]]:
    """Lanes that are no states, and what they were before."""
    lanes = [lane for lane in found.lanes if lane.track not in STATES]
    yield from zip(lanes, before.lanes, strict=True)


@examples(4)
@given(rows_)
def test_lanes_show_what_plain_loops_find(bare: Timeline, rows: list[Row]) -> None:
    states = spans_of(rows, bare.origin)
    found = with_states(bare, states)
    expected: dict[tuple[int, Track], set[int]] = defaultdict(set)
    names = []
    for number, (kind, owner, start, length) in enumerate(rows):
        inside = set(range(max(start, 0), min(start + length, bare.whole.high)))
        if inside:
            thread = OWNERS[owner].thread
            track = next(track for track, kinds in STATES.items() if kind in kinds)
            expected[thread if thread >= 0 else -2 - owner, track] |= inside
            names.append((f"state {number}", kind, start, start + length))
    lanes = [lane for lane in found.lanes if lane.track in STATES]
    assert moments(found, lanes) == expected
    items = [item for lane in lanes for item in range(lane.first, lane.last)]
    assert sorted(names) == sorted(
        (found.name(item, ()), StateKind(int(found.kind[item])), *found.window(item))
        for item in items
    )
    for lane, own in kept(found, bare):
        assert lane == own._replace(first=lane.first, last=lane.last)
        for name in ("source", "frame", "kind", "low", "track"):
            column, before = getattr(found, name), getattr(bare, name)
            assert column[lane.first : lane.last].tolist() == before[own.first : own.last].tolist()
        lengths = np.diff(found.before)[lane.first : lane.last]
        assert lengths.tolist() == np.diff(bare.before)[own.first : own.last].tolist()
    places = [(lane.first, lane.last) for lane in found.lanes]
    assert [first for first, _ in places] == [0, *(last for _, last in places)][: len(places)]


@examples(1)
@given(rows_)
def test_states_of_a_thread_stand_below_its_other_lanes(bare: Timeline, rows: list[Row]) -> None:
    found = with_states(bare, spans_of(rows, bare.origin))
    owners = [lane.owner for lane in found.lanes if lane.track != Track.WORK]
    runs = [owner for at, owner in enumerate(owners) if not at or owners[at - 1] != owner]
    assert len(set(runs)) == len(runs)
    assert [owner for owner in runs if owner >= 0] == [1, 0]  # that of 101 launches more
    tracks = [(runs.index(lane.owner), lane.track) for lane in found.lanes[: len(owners)]]
    assert tracks == sorted(tracks)
    assert all(lane.track == Track.WORK for lane in found.lanes[len(owners) :])


def test_nothing_is_added_of_nothing(bare: Timeline) -> None:
    assert with_states(bare, None) is bare
    assert with_states(bare, spans_of([(StateKind.LOADING, 0, -20, 20)], bare.origin)) is bare


def test_of_states_that_begin_together_the_longest_is_the_outer(bare: Timeline) -> None:
    rows = [(StateKind.PROFILER, 0, 10, length) for length in (20, 40, 5)]
    found = with_states(bare, spans_of(rows, bare.origin))
    lanes = [lane for lane in found.lanes if lane.track == Track.PROFILER]
    shown = [(lane.level, int(found.low[lane.first]), found.high(lane.first)) for lane in lanes]
    assert shown == [(0, 10, 50), (1, 10, 30), (2, 10, 15)]


def test_times_beyond_all_bounds_are_cut_at_the_trace(bare: Timeline) -> None:
    states = spans_of([(StateKind.PROFILER, 0, 0, 1)], bare.origin)
    states.start[:], states.end[:] = -LATEST, LATEST
    [lane] = [lane for lane in with_states(bare, states).lanes if lane.track == Track.PROFILER]
    found = with_states(bare, states)
    assert (int(found.low[lane.first]), found.high(lane.first)) == (0, bare.whole.high)


# What a trace tells


def all_states(path: Path) -> Path:
    """Main collects garbage, loads, is held up and has the GIL; a loader waits for that."""
    with NsysFile(path) as file:
        file.process(100, "python")
        file.thread(100, 100, "main")
        file.thread(100, 107, "loader")
        file.domain(1, "GIL Trace")
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.kernel("first", 10, 200, corr=1)
        file.nvtx("Python GC", 30, 60, type=START_END)
        file.nvtx("Holding GIL", 0, 70, domain=1)
        file.nvtx("Waiting for GIL", 10, 70, domain=1, tid=107)
        overhead(file, "CUPTI Buffer flush", 15, 40)
        overhead(file, "Lazy Function Loading", 80, 90)
        overhead(file, "CUPTI Buffer flush", 90, 95, tid=555)
        overhead(file, "", 91, 96, pid=777, tid=555)
    return path


def test_all_states_of_a_trace(tmp_path: Path) -> None:
    profile = load(all_states(tmp_path / "trace.sqlite"))
    found = with_states(timeline(profile), state_spans(profile))
    told = [
        (lane.label, lane.track.name, found.name(item, ()), *found.window(item))
        for lane in found.lanes
        if lane.track in STATES
        for item in range(lane.first, lane.last)
    ]
    assert told == [
        ("main [100]", "COLLECTION", "Python GC", 30, 60),
        ("main [100]", "GIL", "Holding GIL", 0, 70),
        ("main [100]", "LOADING", "Lazy Function Loading", 80, 90),
        ("main [100]", "PROFILER", "CUPTI Buffer flush", 15, 40),
        ("other processes", "PROFILER", "[no name]", 91, 96),
        ("other threads [100]", "PROFILER", "CUPTI Buffer flush", 90, 95),
        ("loader [107]", "GIL", "Waiting for GIL", 10, 70),
    ]


def test_a_trace_that_tells_of_none_has_none(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
    assert state_spans(load(tmp_path / "trace.sqlite")) is None


@needs_traces
@pytest.mark.parametrize("name", deep_except(["rtx3080_trimmed.sqlite"], NSYS_TRACES))
def test_overhead_of_real_traces_is_all_there(name: str) -> None:
    profile = load(TRACES / "nsys" / name)
    known, found = profile.overheads, timeline(profile)
    after = with_states(found, state_spans(profile))
    expected = set()
    if known is not None:
        for at in range(len(known)):
            low, high = int(known.start[at]), int(known.end[at])
            if low < profile.end and high > profile.rows_begin:
                window = low - found.origin, high - found.origin
                expected.add((known.names[known.name[at]] or "[no name]", *window))
    told = {
        (after.name(item, ()), *after.window(item))
        for item in np.flatnonzero(np.isin(after.track, list(STATES))).tolist()
    }
    assert told == expected
