"""Keep the GPU activities of one growing dump, added up as they come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flame.core.columns import I4, I8, Column, distinct
from flame.core.live.decode.batch import NewActivities, NewCalls
from flame.core.live.sums.activities import ActivityRows, ActivitySegment, split_segments
from flame.core.live.sums.groups import WORK_COLUMNS, ActivityGroups
from flame.core.live.sums.pending_calls import NEVER, CallTable, correlation_ids, find_places
from flame.core.live.sums.rates import TimeBins
from flame.core.live.sums.segment import KeptSegments, refuse_sums
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind

_SEGMENT = 1 << 14
_ALWAYS = -(1 << 62)
_OF_CALL = {"thread": "thread", "python": "python", "nvtx": "nvtx", "launch": "frame"}


class ActivityStore:
    """Keeps the rows of the last minute in segments, in the order of their starts.

    Of what comes late only that part of the order is worked out again which it changes.
    ``process`` is the number of the dump's, ``no_launch`` the frame of work without a launch.
    ``floor``: what was over before is not kept any more, nor what else started before, unless it
    came later: ``late`` counts what did.
    """

    def __init__(self, groups: ActivityGroups, process: int, no_launch: int) -> None:
        self.segments: list[ActivitySegment] = []
        self.calls = CallTable()
        self._groups = groups
        self._process = process
        self._no_launch = no_launch
        self.floor = _ALWAYS
        self.late = 0
        self._busy_before: Mapping[int, int] = {}
        self._waiting = np.zeros((2, 0), np.int64)
        self._weight = 0.0

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @property
    def newest(self) -> int:
        """The latest start."""
        return self.segments[-1].last if self.segments else self.floor

    def add(self, work: NewActivities, calls: NewCalls) -> list[ActivitySegment]:
        """Add new rows, and return those older than all rows that are kept: they are not kept.

        InputError where sums would no longer fit 64 bits.
        """
        if not (len(work) or len(calls)):
            return []
        self.calls.add(calls)
        came = self._take_awaited(calls)
        rows, call = self._build_rows(work)
        self._check(rows)
        # What goes on after that keeps its GPU busy beside what is kept.
        late = rows.start + rows.duration < self.floor
        self.late += int((rows.start < self.floor).sum())
        self.calls.use(call, np.where(late, NEVER, rows.start))
        used, _ = distinct(call[call != NONE])
        old = rows.take(late)
        self._divide_calls(old, used)
        if len(rows) > len(old) or came.size:
            self._insert(rows.take(~late), used, came)
        return [ActivitySegment(old, {}, TimeBins.empty())] if len(old) else []

    def expire(self, horizon: int) -> list[ActivitySegment]:
        """Take out the segments that lie before ``horizon`` as a whole."""
        gone = sum(segment.last < horizon for segment in self.segments)
        self.calls.expire(horizon)
        return self._drop(gone)

    @property
    def oldest(self) -> int:
        """The end of the oldest segment."""
        return self.segments[0].last

    def drop_oldest(self) -> KeptSegments:
        """Take out the oldest segment."""
        return KeptSegments(self._drop(1), ())

    def _drop(self, number: int) -> list[ActivitySegment]:
        gone, self.segments = self.segments[:number], self.segments[number:]
        if gone:
            self.floor, self._busy_before = gone[-1].last + 1, gone[-1].busy_until
            self._waiting = self._waiting[:, self._waiting[1] >= self.floor]
        return gone

    # New rows

    def _build_rows(self, work: NewActivities) -> tuple[ActivityRows, I8]:
        """Build the rows of ``work``, not yet in order, and return the place of each one's call."""
        size = len(work)
        known: dict[str, Column] = {
            "kind": work.kind,
            "process": np.full(size, self._process),
            "thread": work.thread,
            "device": work.device,
            "stream": work.stream,
            "python": work.python,
            "nvtx": work.nvtx,
            "captured_python": work.captured_python,
            "captured_nvtx": work.captured_nvtx,
            "graph": work.graph,
            "launch": np.full(size, self._no_launch),
            "frame": work.frame,
        }
        call, group = self._find_launches(known, work.correlation)
        launch_start, launch_end = self.calls.take(call, "start", "end")
        rows = ActivityRows(
            start=work.start,
            duration=np.maximum(work.end - work.start, 0),
            correlation=work.correlation,
            launch_start=launch_start,
            launch_end=launch_end,
            share=np.zeros(size, np.int64),
            idle=np.zeros(size, np.int64),
            group=group,
            config=work.config,
            bytes=work.bytes,
        )
        return rows, call

    def _find_launches(self, known: dict[str, Column], correlation: I8) -> tuple[I8, I4]:
        """Find the calls of rows with the columns ``known``, and the groups of the rows."""
        call = self.calls.find(correlation)
        launched = call != NONE
        columns = self.calls.take(call, *_OF_CALL.values())
        for name, column in zip(_OF_CALL, columns, strict=True):
            known[name] = np.where(launched, column, known[name])
        known["launched"] = launched
        return call, self._groups.intern([known[name] for name in WORK_COLUMNS])

    def _check(self, rows: ActivityRows) -> None:
        launches = np.where(rows.launch_end < 0, 0, rows.launch_end - rows.launch_start)
        for column in (rows.duration, rows.queue, launches):
            self._weight += float(np.abs(column).sum(dtype=np.float64))
        refuse_sums(self._weight)

    # Their places

    def _insert(self, new: ActivityRows, used: I8, came: I8) -> None:
        """Put ``new`` rows in their places, and recompute what stands behind the first.

        ``used``: places of calls that have more rows now. ``came``: ids of calls that have come
        after rows of theirs, and the starts of these.
        """
        (first,) = self.calls.take(used, "first")
        begin = min(int(times.min(initial=NEVER)) for times in (new.start, first, came[1]))
        tail = self._order_rows([*self._take_from(begin), new])
        self._remember_waiting(new)
        bound = self._assign_launches(tail, distinct(came[0])[0]) if came.size else came[0]
        self._divide_calls(tail, distinct(np.append(used, bound))[0])
        before = self.segments[-1].busy_until if self.segments else self._busy_before
        device = self._groups.column("device")[tail.group].astype(np.int64)
        self.segments = [*self.segments, *split_segments(tail, device, before, _SEGMENT)]

    def _take_from(self, begin: int) -> list[ActivityRows]:
        """Take out the segments that reach ``begin``, and a last one that has room for more."""
        kept = len(self.segments)
        while kept and self.segments[kept - 1].last >= begin:
            kept -= 1
        if kept and len(self.segments[kept - 1].rows) < _SEGMENT // 2:
            kept -= 1
        rows = [segment.rows for segment in self.segments[kept:]]
        self.segments = self.segments[:kept]
        return rows

    def _order_rows(self, parts: list[ActivityRows]) -> ActivityRows:
        """Order the rows of ``parts`` by start; kernels first among equal starts."""
        rows = ActivityRows.concatenate(parts)
        other = self._groups.column("kind")[rows.group] != Kind.KERNEL
        return rows.take(np.argsort(rows.start << 1 | other, kind="stable"))

    # Their launches

    def _remember_waiting(self, rows: ActivityRows) -> None:
        """Remember rows whose call has not come yet: it may be in a part not yet written."""
        waiting = np.flatnonzero((rows.launch_end < 0) & (rows.correlation > 0))
        more = np.array([rows.correlation[waiting], rows.start[waiting]])
        self._waiting = np.concatenate([self._waiting, more], axis=1)

    def _take_awaited(self, calls: NewCalls) -> I8:
        """Take those of ``calls`` that rows wait for: ids, and the starts of the rows."""
        if not self._waiting.size or not len(calls):
            return self._waiting[:, :0]
        here = find_places(self._waiting[0], correlation_ids(calls)) != NONE
        came, self._waiting = self._waiting[:, here], self._waiting[:, ~here]
        return came

    def _assign_launches(self, rows: ActivityRows, ids: I8) -> I8:
        """Assign the calls ``ids`` to rows that waited for them; return the calls' places."""
        waited = np.flatnonzero(
            (rows.launch_end < 0) & (find_places(rows.correlation, ids) != NONE)
        )
        known: dict[str, Column] = {
            name: self._groups.column(name)[rows.group[waited]] for name in WORK_COLUMNS
        }
        call, rows.group[waited] = self._find_launches(known, rows.correlation[waited])
        rows.launch_start[waited], rows.launch_end[waited] = self.calls.take(call, "start", "end")
        self.calls.use(call, rows.start[waited])
        return call

    def _divide_calls(self, rows: ActivityRows, used: I8) -> None:
        """Divide the time of each of the calls at ``used`` among all of its rows there are.

        The remainder goes to the first: where not all are in ``rows``, that is among the others.
        """
        ids, uses = self.calls.take(used, "correlation", "uses")
        order = np.argsort(ids)
        ids, uses = ids[order], uses[order]
        place = find_places(rows.correlation, ids)
        launched = np.flatnonzero((place != NONE) & (rows.launch_end >= 0))
        call = place[launched]
        here = np.bincount(call, minlength=len(ids))
        length = np.maximum(rows.launch_end[launched] - rows.launch_start[launched], 0)
        rows.share[launched] = length // uses[call]
        first = np.full(len(ids), NONE, np.int64)
        first[call[::-1]] = np.arange(len(launched))[::-1]
        first = first[(here == uses) & (first != NONE)]
        rows.share[launched[first]] += length[first] % uses[call[first]]
