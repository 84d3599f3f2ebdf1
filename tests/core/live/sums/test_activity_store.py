"""Sums of live recordings: whatever comes when, they are those of plain loops over everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8, Column
from flame.core.errors import InputError
from flame.core.live.decode.batch import DumpBatch, NewActivities, NewCalls, NewRanges
from flame.core.live.sums import activity_store as store_module
from flame.core.live.sums import host_spans as spans_module
from flame.core.live.sums import pending_calls as calls_module
from flame.core.live.sums.activity_store import ActivityStore
from flame.core.live.sums.groups import ActivityGroups, HostGroups, RowInterner
from flame.core.live.sums.host_spans import SpanStore
from flame.core.live.sums.segment import KeptSegments
from flame.core.live.sums.window_sums import WindowSums
from flame.core.live.window import ALL, LAST_10, SINCE_MARK, LiveWindow
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.stack_joins import StackJoiner
from flame.core.model.stacks import StackBuilder
from tests.support.oracles.naive_live import Activity, Call, Span, Sums, host_sums, work_sums
from tests.support.tiers import examples

PARENTS = (0, 0, 1, 2, 1)
"""The path around each path of ranges."""


def work_of(rows: Sequence[Activity]) -> NewActivities:
    """The rows as a dump's decoder hands them over."""
    size = len(rows)

    def column(name: str, kind: type = np.int32) -> Column:
        return np.array([getattr(one, name) for one in rows], kind)

    nothing = np.zeros(size, np.int32)
    kinds = [Kind.MEMCPY if one.copy else Kind.KERNEL for one in rows]
    return NewActivities(
        kind=np.array(kinds, np.uint8),
        start=column("start", np.int64),
        end=column("end", np.int64),
        device=column("device"),
        stream=nothing,
        correlation=column("correlation", np.int64),
        frame=column("frame"),
        thread=column("thread"),
        python=nothing,
        nvtx=column("path"),
        captured_python=nothing,
        captured_nvtx=nothing,
        graph=np.zeros(size, bool),
        config=nothing - 1,
        bytes=np.zeros(size, np.int64),
    )


def calls_of(rows: Sequence[Call]) -> NewCalls:
    """The same of API calls."""

    def column(name: str, kind: type = np.int32) -> Column:
        return np.array([getattr(one, name) for one in rows], kind)

    return NewCalls(
        start=column("start", np.int64),
        end=column("end", np.int64),
        thread=column("thread"),
        correlation=column("correlation", np.int64),
        frame=column("frame"),
        python=np.zeros(len(rows), np.int32),
        nvtx=column("path"),
        within=np.full(len(rows), NONE, np.int32),
    )


def spans_of(rows: Sequence[Span]) -> NewRanges:
    """The same of ranges."""
    columns = np.array([(one.start, one.end, one.thread, one.path) for one in rows], np.int64)
    start, end, thread, path = columns.reshape(-1, 4).T
    return NewRanges(start, end, thread.astype(np.int32), path.astype(np.int32))


def batch(
    work: Sequence[Activity] = (),
    calls: Sequence[Call] = (),
    ended: Sequence[Span] = (),
    still_open: Sequence[Span] = (),
) -> DumpBatch:
    """What has come at one look."""
    spans = spans_of(ended), spans_of(still_open)
    return DumpBatch(0, work_of(work), calls_of(calls), calls_of([]), *spans, False, 0)


class Recording:
    """A dump's stores and the sums of all windows of it."""

    def __init__(self, mark: int = 0) -> None:
        self.work = ActivityGroups(StackJoiner(FrameBuilder(), StackBuilder()))
        self.host = HostGroups()
        self.store = ActivityStore(self.work, 0, -1)
        self.spans = SpanStore(self.host, 0, lambda: np.array(PARENTS, np.int32))
        self.sums = WindowSums(mark)

    def add(self, new: DumpBatch) -> None:
        """What comes of it, as the feed does it."""
        self.spans.add(new)
        self.sums.settle(KeptSegments(self.store.add(new.work, new.calls), ()))

    def expire(self, horizon: int) -> None:
        """Let go of what is older."""
        self.sums.settle(KeptSegments(self.store.expire(horizon), self.spans.expire(horizon)))

    def look(self, window: LiveWindow, begin: int | None) -> tuple[Sums, Sums]:
        """The sums of GPU work and of host time, as the naive ones."""
        sizes = len(self.work), len(self.host)
        kept = KeptSegments(self.store.segments, self.spans.segments)
        work, host = self.sums.look(window, begin, kept, sizes)
        of_work = _by(self.work, ("thread", "launch", "nvtx", "frame", "device"), work)
        return of_work, _by(self.host, ("thread", "nvtx", "launch"), host)


def _by(groups: RowInterner, names: Sequence[str], sums: I8) -> Sums:
    """Sums by the columns ``names`` of the groups."""
    found: Sums = {}
    keys = zip(*(groups.column(name).tolist() for name in names), strict=True)
    for key, row in zip(keys, sums.T.tolist(), strict=True):
        known = found.get(key, (0,) * len(row))
        found[key] = tuple(a + b for a, b in zip(known, row, strict=True))
    return filled(found)


def filled(sums: Sums) -> Sums:
    """Without those that are nothing."""
    return {key: values for key, values in sums.items() if any(values)}


times = st.integers(0, 300)
lengths = st.one_of(st.integers(0, 6), st.integers(0, 60), st.integers(-2, 0))
activities = st.builds(
    lambda start, length, *rest: Activity(start, start + length, *rest),
    *(times, lengths, st.integers(0, 1), st.integers(1, 3)),
    st.integers(0, 12),
    st.integers(-1, 1),
    st.integers(0, 4),
    st.booleans(),
)
starts = st.integers(10, 250)
calls = st.builds(
    lambda id, start, length, *rest: Call(id, start, start + length, *rest),
    *(st.integers(1, 12), starts, lengths, st.integers(0, 1), st.integers(5, 7), st.integers(0, 4)),
)
spans = st.builds(
    lambda start, length, *rest: Span(start, start + length, *rest),
    *(times, lengths, st.integers(-1, 1), st.integers(0, 4)),
)
windows = st.sampled_from([LAST_10, SINCE_MARK, ALL])


class Step(NamedTuple):
    """One look at a dump, the windows that are looked at then, and what is let go of after it."""

    work: list[Activity]
    calls: list[Call]
    ended: list[Span]
    windows: list[tuple[LiveWindow, int]]
    horizon: int


steps = st.builds(
    Step,
    st.lists(activities, max_size=12),
    st.lists(calls, max_size=6),
    st.lists(spans, max_size=6),
    st.lists(st.tuples(windows, times), max_size=3),
    times,
)


def without_repeats(script: list[Step]) -> list[Step]:
    """``script`` in which no call has the id of one of an earlier step."""
    seen: set[int] = set()
    found = []
    for step in script:
        new = [one for one in step.calls if one.correlation not in seen]
        seen |= {one.correlation for one in new}
        found.append(step._replace(calls=new))
    return found


def joined(script: list[Step]) -> Step:
    """All rows of ``script``."""
    return Step(
        work=[one for step in script for one in step.work],
        calls=[one for step in script for one in step.calls],
        ended=[one for step in script for one in step.ended],
        windows=[],
        horizon=0,
    )


def horizon(past: list[Step], future: list[Step]) -> int:
    """Nothing that ``future`` changes is older than this."""
    before, after = joined(past), joined(future)
    ids = {one.correlation for one in after.work} | {one.correlation for one in after.calls}
    starts = [one.start for one in after.work]
    starts += [one.start for one in before.work if one.correlation in ids]
    starts += [one.start for one in before.calls if one.correlation in ids]
    return min(starts, default=past[-1].horizon)


@given(st.lists(steps, max_size=8), st.integers(0, 300), st.sampled_from([2, 5, 1 << 14]))
@examples(0.5)
def test_whatever_comes_when_every_window_has_the_sums_of_plain_loops(
    script: list[Step], mark: int, size: int
) -> None:
    script = without_repeats(script)
    sliding = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_SEGMENT", size)
        patch.setattr(spans_module, "_SEGMENT", size)
        patch.setattr(spans_module, "_LONG", 20)
        recording = Recording(mark)
        for number, step in enumerate(script, 1):
            recording.add(batch(step.work, step.calls, step.ended))
            for window, begin in step.windows:
                sliding = max(sliding, begin)  # It never moves back.
                since = {LAST_10: sliding, SINCE_MARK: mark, ALL: None}[window]
                assert recording.look(window, since) == looked(script[:number], since)
            oldest = horizon(script[:number], script[number:])
            recording.expire(min(oldest, step.horizon, sliding))


def looked(script: list[Step], begin: int | None) -> tuple[Sums, Sums]:
    """What plain loops over all that has come find."""
    work, calls, ended, *_ = joined(script)
    in_calls = [Span(one.start, one.end, one.thread, one.path, one.frame) for one in calls]
    work_found, host_found = (
        work_sums(work, calls, begin),
        host_sums([*ended, *in_calls], PARENTS, begin),
    )
    return filled(work_found), filled(host_found)


def test_a_call_that_comes_after_its_work_still_launches_it() -> None:
    recording = Recording()
    recording.add(batch([Activity(100, 110, 0, 1, correlation=3, thread=0, path=1)]))
    assert recording.look(ALL, None)[0] == {(0, -1, 1, 1, 0): (1, 10, 0, 0, 0)}
    recording.add(batch(calls=[Call(3, 50, 57, 1, 5, 2)]))
    assert recording.look(ALL, None)[0] == {(1, 5, 2, 1, 0): (1, 10, 7, 43, 0)}


def test_more_work_of_a_call_takes_its_part_of_the_call_from_what_was_there() -> None:
    recording = Recording()
    recording.add(batch([Activity(100, 110, 0, 1, 3)], [Call(3, 50, 57, 1, 5)]))
    recording.add(batch([Activity(90, 95, 0, 2, 3)]))
    recording.add(batch([Activity(120, 125, 0, 3, 3)]))
    sums = recording.look(ALL, None)[0]
    assert [sums[1, 5, 0, frame, 0][2] for frame in (1, 2, 3)] == [2, 3, 2]


def test_what_was_looked_at_does_not_change_by_what_comes_later() -> None:
    recording = Recording()
    recording.add(batch([Activity(100, 110, 0, 1), Activity(200, 210, 0, 1)]))
    (before,) = recording.store.segments
    recording.add(batch([Activity(50, 190, 0, 1)]))
    assert before.rows.idle.tolist() == [0, 90]
    assert recording.store.segments[0].rows.idle.tolist() == [0, 0, 10]


def test_only_the_end_of_the_order_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_SEGMENT", 10)
    recording = Recording()
    recording.add(batch([Activity(start, start + 1, 0, 1) for start in range(1, 1_000)]))
    before = recording.store.segments
    recording.add(batch([Activity(950, 951, 0, 1)]))
    after = recording.store.segments
    assert sum(one is other for one, other in zip(before, after, strict=False)) >= 94


@pytest.mark.deep
def test_of_very_many_calls_the_latest_are_kept_and_those_nothing_has_come_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls_module, "_PART", 10)
    monkeypatch.setattr(calls_module, "_MOST", 100)
    recording = Recording()
    for number in range(2, 1_002):
        start = 10 * number
        rows = [Activity(start + 5, start + 6, 0, 1, correlation=number)] if number > 2 else []
        recording.add(batch(rows, [Call(number, start, start + 1, 1, 5)]))
    calls = recording.store.calls
    assert len(calls) <= 100
    found = calls.find(np.array([2, 3, 500, 990, 1_001]))
    assert (found >= 0).tolist() == [True, False, False, True, True]


def test_equal_groups_have_one_number_whatever_came_between() -> None:
    groups = HostGroups()
    rows = [(thread, path) for path in (3, 1, 2) for thread in (1, 0)]
    thread, path = np.array(rows, np.int32).T
    first = groups.intern_ranges(0, thread[:3], path[:3])
    column = groups.column("nvtx")
    everything = groups.intern_ranges(0, thread, path)
    assert everything[:3].tolist() == first.tolist()
    assert sorted(everything.tolist()) == list(range(len(rows)))
    assert groups.column("nvtx")[everything].tolist() == path.tolist()
    assert groups.column("thread")[everything].tolist() == thread.tolist()
    assert column[first].tolist() == path[:3].tolist()


def test_sums_that_would_not_fit_are_refused() -> None:
    recording = Recording()
    with pytest.raises(InputError, match="century"):
        recording.add(batch([Activity(1, 1 << 59, 0, 1)] * 3))
    with pytest.raises(InputError, match="century"):
        recording.add(batch(ended=[Span(1, 1 << 59, 0, 1)] * 3))
