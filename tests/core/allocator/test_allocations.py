"""Allocations, live memory and its peak, against the truth of a simulated allocator."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from flame.core.allocator.live import find_peak, live_curve
from flame.core.allocator.pairing import PairingLosses, pair_events
from flame.core.allocator.reserved import reserved_parts
from flame.core.model.allocator.allocations import ALIVE, BEFORE, Allocations
from flame.core.model.allocator.history import AllocatorHistory
from flame.core.readers.snapshot.document import read_history
from tests.support.tiers import examples
from tests.support.writers.snapshotfile import SnapshotFile, Truth

NAMES = ("main", "forward", "attention", "backward")
SIZES = st.integers(0, 3_000) | st.sampled_from([1 << 20, 1 << 21])


@st.composite
def snapshots(draw: st.DrawFn, devices: int = 2) -> SnapshotFile:
    """Draw what programs do with the memory of some devices."""
    file, alive = SnapshotFile(devices), list[int]()
    for frees in draw(st.lists(st.booleans(), max_size=40)):
        if alive and frees:
            which = alive.pop(draw(st.integers(0, len(alive) - 1)))
            file.free(which, pending=draw(st.sampled_from([False, False, False, True])))
        else:
            names = NAMES[: draw(st.integers(1, len(NAMES)))]
            alive.append(file.alloc(draw(SIZES), names, draw(st.integers(0, devices - 1))))
    return file


def history_of(file: SnapshotFile, first: int = 0) -> AllocatorHistory:
    return read_history(file.document(first), 1 << 30)


def device_of(table: Allocations, device: int) -> Allocations:
    return table.take(table.device == device)


def rows_of(table: Allocations) -> Counter[tuple[int, int, int | None, int]]:
    end = (None if one == ALIVE else one for one in table.end.tolist())
    return Counter(
        zip(table.device.tolist(), table.begin.tolist(), end, table.size.tolist(), strict=True)
    )


def live_by_hand(truth: list[Truth], device: int, position: int) -> int:
    return sum(
        one.size
        for one in truth
        if one.device == device
        and one.begin <= position
        and (one.end is None or one.end > position)
    )


@given(snapshots())
def test_allocations_are_those_that_were_made(file: SnapshotFile) -> None:
    table, losses = pair_events(history_of(file))
    assert rows_of(table) == Counter(one[:4] for one in file.whole_truth())
    assert losses == PairingLosses()


@given(snapshots())
def test_live_memory_and_its_peak_are_those_of_plain_sums(file: SnapshotFile) -> None:
    truth, (table, _) = file.whole_truth(), pair_events(history_of(file))
    for device, trace in enumerate(file.traces):
        curve = live_curve(device_of(table, device))
        expected = [live_by_hand(truth, device, at) for at in range(-1, len(trace))]
        assert [curve.at(at) for at in range(-1, len(trace))] == expected
        peak = find_peak(curve)
        assert (peak.size, peak.position) == (max(expected), expected.index(max(expected)) - 1)


@given(snapshots(1), st.data())
def test_a_peak_in_a_window_is_of_what_lives_in_it(file: SnapshotFile, data: st.DataObject) -> None:
    truth, (table, _) = file.whole_truth(), pair_events(history_of(file))
    number = len(file.traces[0])
    first = data.draw(st.integers(-1, number))
    last = data.draw(st.integers(first, number))
    expected = [live_by_hand(truth, 0, at) for at in range(first, last + 1)]
    peak = find_peak(live_curve(table), first, last)
    assert (peak.size, peak.position) == (max(expected), first + expected.index(max(expected)))


@given(snapshots(1), st.integers(1, 60))
def test_what_was_lost_of_the_history_changes_nothing_after_it(
    file: SnapshotFile, first: int
) -> None:
    """The state at the end anchors it: what was allocated before is neither lost nor new."""
    whole, (cut, losses) = pair_events(history_of(file))[0], pair_events(history_of(file, first))
    assert losses == PairingLosses()
    all_of_it, rest = live_curve(whole), live_curve(cut)
    for at in range(first - 1, len(file.traces[0])):
        assert rest.at(at - first) == all_of_it.at(at)
    before = (cut.begin == BEFORE) & (cut.size > 0)
    assert int(cut.size[before].sum()) == all_of_it.at(first - 1)


@given(snapshots(3))
def test_devices_know_nothing_of_each_other(file: SnapshotFile) -> None:
    table = pair_events(history_of(file))[0]
    for device in range(3):
        alone = SnapshotFile(3)
        alone.traces[device] = file.traces[device]
        document = alone.document() | {
            "segments": [one for one in file.segments() if one["device"] == device]
        }
        own = pair_events(read_history(document, 1 << 30))[0]
        assert rows_of(own) == rows_of(device_of(table, device))


@given(snapshots())
@examples(0.5)
def test_parts_of_what_is_reserved_add_up(file: SnapshotFile) -> None:
    parts, alive = reserved_parts(history_of(file)), Counter[int]()
    for one in file.whole_truth():
        alive[one.device] += one.size * (one.end is None)
    for device, found in parts.items():
        five = (found.requested, found.rounding, found.pending, found.split, found.releasable)
        segments = [one for one in file.segments() if one["device"] == device]
        assert sum(five) == found.reserved == sum(one["total_size"] for one in segments)
        assert found.requested == alive[device]
        blocks = [block for one in segments for block in one["blocks"]]
        free = [block["size"] for block in blocks if block["state"] == "inactive"]
        assert found.free == sum(free)
        assert found.largest_free == max(free, default=0)


def test_only_segments_with_nothing_in_them_can_be_released() -> None:
    file = SnapshotFile()
    kept, gone, waited = (file.alloc(1_000) for _ in range(3))
    file.free(gone)
    file.free(waited, pending=True)
    parts = reserved_parts(history_of(file))[0]
    segment = 1 << 21
    assert parts.releasable == segment
    assert parts.split == 2 * (segment - 1_024)
    assert (parts.requested, parts.rounding, parts.pending) == (1_000, 24, 1_024)
    assert kept == 0


def test_what_does_not_fit_together_is_counted() -> None:
    def event(action: str, addr: int, size: int = 100) -> dict[str, object]:
        return {"action": action, "addr": addr, "size": size, "stream": 0, "frames": []}

    trace = [
        event("alloc", 1),
        event("alloc", 1),  # given out again without having been given back
        event("free_requested", 1, 90),  # of another size
        event("free_requested", 1),  # twice
        event("alloc", 2),  # lives, but is in no block
    ]
    segment = {"device": 0, "address": 1, "total_size": 0, "stream": 0, "blocks": []}
    document = {"segments": [segment], "device_traces": [trace]}
    table, losses = pair_events(read_history(document, 1 << 20))
    assert losses == PairingLosses(never_freed=1, freed_twice=1, no_block=1, other_size=1)
    assert rows_of(table) == Counter({(0, 0, 1, 100): 1, (0, 1, 2, 100): 1, (0, 4, None, 100): 1})


def test_an_empty_history_has_no_allocations() -> None:
    table, losses = pair_events(history_of(SnapshotFile()))
    assert len(table) == 0 and losses == PairingLosses()
    assert live_curve(table).at(5) == 0
    assert find_peak(live_curve(table)) == (BEFORE, 0)
    assert np.array_equal(live_curve(table).size, [0])
