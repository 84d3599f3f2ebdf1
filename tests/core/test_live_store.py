"""Sums of live recordings: whatever comes when, they are those of plain loops over everything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.frames import FrameBuilder, Kind
from flame.core.live import store as store_module
from flame.core.live.batch import Batch, Calls, Spans, Work
from flame.core.live.groups import HostGroups, Interned, WorkGroups
from flame.core.live.segment import Kept
from flame.core.live.spans import SpanStore
from flame.core.live.store import Store
from flame.core.live.sums import WindowSums
from flame.core.live.window import ALL, LAST_10, SINCE_MARK, Window
from flame.core.marks import Joiner
from flame.core.stacks import StackBuilder
from tests.core.live_naive import Activity, Call, Span, Sums, host_sums, work_sums

PARENTS = (0, 0, 1, 2, 1)
"""The path around each path of ranges."""


def work_of(rows: Sequence[Activity]) -> Work:
    """The rows as a dump's decoder hands them over."""
    size = len(rows)

    def column(name: str, kind: type = np.int32) -> np.ndarray:
        return np.array([getattr(one, name) for one in rows], kind)

    nothing = np.zeros(size, np.int32)
    kinds = [Kind.MEMCPY if one.copy else Kind.KERNEL for one in rows]
    return Work(
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


def calls_of(rows: Sequence[Call]) -> Calls:
    """The same of API calls."""

    def column(name: str, kind: type = np.int32) -> np.ndarray:
        return np.array([getattr(one, name) for one in rows], kind)

    return Calls(
        start=column("start", np.int64),
        end=column("end", np.int64),
        thread=column("thread"),
        correlation=column("correlation", np.int64),
        frame=column("frame"),
        python=np.zeros(len(rows), np.int32),
        nvtx=column("path"),
    )


def spans_of(rows: Sequence[Span]) -> Spans:
    """The same of ranges."""
    columns = np.array([(one.start, one.end, one.thread, one.path) for one in rows], np.int64)
    start, end, thread, path = columns.reshape(-1, 4).T
    return Spans(start, end, thread.astype(np.int32), path.astype(np.int32))


def batch(
    work: Sequence[Activity] = (),
    calls: Sequence[Call] = (),
    ended: Sequence[Span] = (),
    still_open: Sequence[Span] = (),
) -> Batch:
    """What has come at one look."""
    return Batch(0, work_of(work), calls_of(calls), spans_of(ended), spans_of(still_open), False, 0)


class Recording:
    """A dump's stores and the sums of all windows of it."""

    def __init__(self, mark: int = 0) -> None:
        self.work = WorkGroups(Joiner(FrameBuilder(), StackBuilder()))
        self.host = HostGroups()
        self.store = Store(self.work, 0, -1)
        self.spans = SpanStore(self.host, 0, lambda: np.array(PARENTS, np.int32))
        self.sums = WindowSums(mark)

    def add(self, new: Batch) -> None:
        """What comes of it, as the feed does it."""
        self.spans.add(new)
        self.sums.settle(Kept(self.store.add(new.work, new.calls), ()))

    def expire(self, horizon: int) -> None:
        """Let go of what is older."""
        self.sums.settle(Kept(self.store.expire(horizon), self.spans.expire(horizon)))

    def look(self, window: Window, begin: int | None) -> tuple[Sums, Sums]:
        """The sums of GPU work and of host time, as the naive ones."""
        sizes = len(self.work), len(self.host)
        kept = Kept(self.store.segments, self.spans.segments)
        work, host = self.sums.look(window, begin, kept, sizes)
        of_work = _by(self.work, ("thread", "launch", "nvtx", "frame", "device"), work)
        return of_work, _by(self.host, ("thread", "nvtx", "launch"), host)


def _by(groups: Interned, names: Sequence[str], sums: I8) -> Sums:
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
looks = st.lists(st.tuples(st.sampled_from(["10", "mark", "all"]), times), max_size=3)
steps = st.lists(
    st.tuples(
        st.lists(activities, max_size=12),
        st.lists(calls, max_size=6),
        st.lists(spans, max_size=6),
        looks,
        times,
    ),
    max_size=8,
)
WINDOWS = {"10": LAST_10, "mark": SINCE_MARK, "all": ALL}


def alone(steps: list) -> list:
    """``steps`` in which a call's id is its own."""
    seen: set[int] = set()
    found = []
    for work, calls, *rest in steps:
        kept = [one for one in calls if one.correlation not in seen and not seen.add(one.correlation)]
        found.append((work, kept, *rest))
    return found


@given(steps, st.integers(0, 300), st.sampled_from([2, 5, 1 << 14]))
@settings(max_examples=150, deadline=None)
def test_whatever_comes_when_every_window_has_the_sums_of_plain_loops(
    script: list, mark: int, size: int
) -> None:
    script = alone(script)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_SEGMENT", size)
        recording = Recording(mark)
        work: list[Activity] = []
        called: list[Call] = []
        ended: list[Span] = []
        sliding = 0
        for at, (new_work, new_calls, new_spans, looks, horizon) in enumerate(script):
            recording.add(batch(new_work, new_calls, new_spans))
            work += new_work
            called += new_calls
            ended += new_spans
            for key, begin in looks:
                # A window moves on, and never back.
                sliding = max(sliding, begin if key == "10" else 0)
                since = {"10": sliding, "mark": mark, "all": None}[key]
                found = recording.look(WINDOWS[key], since)
                in_calls = [Span(*one[1:4], one.path, one.frame) for one in called]
                assert found[0] == filled(work_sums(work, called, since))
                assert found[1] == filled(host_sums([*ended, *in_calls], PARENTS, since))
            # What comes later than what is let go of would only be counted.
            later = [one.start for part in script[at + 1 :] for one in part[0]]
            ids = {one.correlation for part in script[at + 1 :] for one in part[0]}
            ids |= {one.correlation for part in script[at + 1 :] for one in part[1]}
            later += [one.start for one in (*called, *work) if one.correlation in ids]
            recording.expire(min(horizon, sliding, *later))
