"""What each metric measures in a window, and which stacks grow, against plain sums."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import flame
from flame.core.allocator.growth import find_growth
from flame.core.allocator.pairing import pair_events
from flame.core.allocator.snapshot_profile import build_snapshot_profile
from flame.core.model.activities import TableCut
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations
from flame.core.model.meta import Meta
from flame.core.model.profile import Profile
from flame.core.readers.snapshot.document import read_history
from tests.support.writers.snapshotfile import SnapshotFile

MIB = 1 << 20


def profile_of(file: SnapshotFile, first: int = 0) -> Profile:
    history = read_history(file.document(first), 1 << 30)
    return build_snapshot_profile(history, Meta("x", "memory snapshot"))


def measured(profile: Profile, metric: str, begin: int | None, end: int | None) -> int:
    """The bytes of the first GPU from ``begin`` to ``end``, µs."""
    origin, memory = profile.meta.origin or 0, profile.memory
    assert memory is not None
    times = (None if one is None else one * 1_000 - origin for one in (begin, end))
    table = memory.table(metric, TableCut((), (0,), *times))
    assert table.measures is not None
    return int(table.measures[metric].sum())


def program() -> SnapshotFile:
    """Some memory from before, some that stays, some that comes and goes."""
    file = SnapshotFile()
    stays, goes = file.alloc(10), file.alloc(200)
    file.free(file.alloc(3_000))
    file.free(goes)
    file.alloc(40_000)
    file.free(stays)
    file.alloc(500_000)
    return file


def by_hand(file: SnapshotFile, metric: str, begin: int, end: int) -> int:
    """A metric from ``begin`` to ``end``, µs; what is at ``end`` is no more within it."""
    times = [entry["time_us"] for entry in file.traces[0]]
    within = [at for at, time in enumerate(times) if begin <= time < end]
    last = len([time for time in times if time < end]) - 1
    first = len([time for time in times if time < begin]) - 1

    def live(position: int) -> int:
        return sum(
            one.size
            for one in file.whole_truth()
            if one.begin <= position and (one.end is None or one.end > position)
        )

    if metric == "live":
        return live(last)
    if metric == "peak":
        return max(map(live, [first, *within]))
    came = [one for one in file.whole_truth() if one.begin in within]
    return sum(one.size for one in came if metric == "alloc" or one.end in within)


def test_windows_have_what_happens_from_their_begin_to_before_their_end() -> None:
    file, metrics = program(), ("peak", "live", "alloc", "churn")
    profile, times = profile_of(file), [entry["time_us"] for entry in file.traces[0]]
    for begin in (*times, times[0] + 5):
        for end in (*times[1:], times[-1] + 1, times[-1] - 5):
            if begin < end:
                found = [measured(profile, one, begin, end) for one in metrics]
                assert found == [by_hand(file, one, begin, end) for one in metrics], (begin, end)


def test_held_memory_is_the_mean_over_the_window() -> None:
    """From before the history it counts from its begin on, alive to its end."""
    file = program()
    whole, profile = profile_of(file), profile_of(file, 4)
    times = [entry["time_us"] for entry in file.traces[0]]
    begin, end = times[6], times[-1]
    expected = 0.0
    for one in file.whole_truth():
        since = max(times[one.begin], begin)
        until = min(end if one.end is None else times[one.end], end)
        expected += one.size * max(until - since, 0) / (end - begin)
    for found in (whole, profile):
        assert abs(measured(found, "held", begin, end) - expected) < 4


def test_what_is_given_back_without_having_been_allocated_is_from_before() -> None:
    file = SnapshotFile()
    which, first = file.alloc(700), len(file.traces[0])
    file.alloc(50)
    file.free(which)
    file.alloc(20)
    profile = profile_of(file, first)
    assert profile.memory is not None
    (device,) = profile.memory.devices
    assert (device.peak, device.before, device.live_end) == (750, 700, 70)


def test_of_the_peak_only_what_was_there_before_counts_as_before() -> None:
    file = SnapshotFile()
    file.alloc(1_000)
    first = len(file.traces[0])
    file.alloc(300)
    (device,) = profile_of(file, first).memory.devices  # type: ignore[union-attr]
    assert (device.peak, device.before) == (1_300, 1_000)


def test_each_gpu_has_its_own_parts_and_steps(tmp_path: Path) -> None:
    file = SnapshotFile(2)
    file.end_step()
    for step in range(4):
        file.alloc(MIB, device=0)
        file.alloc(1_000, device=1)
        file.free(file.alloc(2_000, device=1))
        file.end_step(device=step % 2)
    memory = flame.load(file.write(tmp_path / "x")).profile.memory
    assert memory is not None
    first, second = memory.devices
    assert (first.boundaries, second.boundaries) == (2, 2)
    assert first.parts is not None and second.parts is not None
    assert (first.parts.requested, second.parts.requested) == (4 * MIB, 4_000)
    assert first.parts.largest_free == MIB
    assert second.parts.largest_free == 2 * MIB
    assert second.parts.split + second.parts.releasable + 4_096 == second.parts.reserved


def leaks_by_hand(
    table: Allocations, boundaries: list[int]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """The definition, allocation by allocation."""
    series: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * len(boundaries))
    for row in range(len(table)):
        if table.begin[row] > boundaries[0]:
            stack = int(table.python[row]), int(table.native[row])
            for at, boundary in enumerate(boundaries):
                series[stack][at] += int(
                    table.size[row] * (table.begin[row] <= boundary < table.end[row])
                )
    found = {}
    for stack, sizes in series.items():
        changes = np.diff(sizes)
        grows = 3 * int((changes > 0).sum()) >= 2 * len(changes)
        if (changes >= 0).all() and grows and sizes[-1] - sizes[0] >= MIB:
            found[stack] = tuple(sizes)
    return found


@st.composite
def growing(draw: st.DrawFn) -> tuple[Allocations, list[int]]:
    """Stacks that have something at most boundaries, some of which is given back."""
    steps = draw(st.integers(3, 7))
    boundaries = [10 * step for step in range(1, steps + 1)]
    rows = list[tuple[int, int, int, int]]()
    for stack in range(draw(st.integers(1, 4))):
        for step in range(steps):
            if draw(st.integers(0, 9)) < 8:
                begin = 10 * step + draw(st.integers(0, 10))
                lasts = draw(st.sampled_from([None, None, None, None, 1, 10, 20]))
                size = draw(st.sampled_from([MIB // 4, MIB]))
                rows.append((begin, int(ALIVE) if lasts is None else begin + lasts, size, stack))
    table = np.array(rows, np.int64).reshape(-1, 4)
    none, few = np.zeros(len(table), np.int64), np.zeros(len(table), np.int32)
    python, times = table[:, 3].astype(np.int32), (none, none, none, none)
    places = few, table[:, 0], table[:, 1], table[:, 2]
    return Allocations(*places, *times, python, python % 2), boundaries


@given(growing())
def test_stacks_that_grow_are_those_of_the_definition(
    drawn: tuple[Allocations, list[int]],
) -> None:
    table, boundaries = drawn
    found = {(one.stack, one.native): one.sizes for one in find_growth(table, boundaries)}
    assert found == leaks_by_hand(table, boundaries)


def test_growth_in_two_of_three_steps_is_enough() -> None:
    boundaries = [0, 10, 20, 30]
    rows = np.array([5, 15], np.int64)
    none, few = np.zeros(2, np.int64), np.zeros(2, np.int32)
    size, alive = np.full(2, MIB, np.int64), np.full(2, ALIVE, np.int64)
    table = Allocations(few, rows, alive, size, none, none, none, none, few, few)
    (found,) = find_growth(table, boundaries)
    assert found.sizes == (0, MIB, 2 * MIB, 2 * MIB)
    assert find_growth(table.take(np.array([0])), boundaries) == ()


def test_times_that_go_back_are_those_of_the_event_before() -> None:
    """Threads take the time before they take the allocator's lock."""
    file = SnapshotFile()
    for _ in range(4):
        file.free(file.alloc(100))
    for entry in file.traces[0][4:6]:
        entry["time_us"] -= 25
    table, _ = pair_events(read_history(file.document(), 1 << 30))
    assert (table.begin > BEFORE).all()
    profile, times = profile_of(file), [entry["time_us"] for entry in file.traces[0]]
    assert measured(profile, "alloc", times[0], times[-1] + 1) == 400
    assert measured(profile, "alloc", times[2], None) == 300
