"""Read one dump of a live recording, and keep what it has brought so far."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypeVar

import numpy as np

from flame.core.errors import InputError
from flame.core.live.decode.batch import DumpBatch, NewActivities, NewCalls
from flame.core.live.decode.growing import GrowingDump
from flame.core.live.liveness import Liveness
from flame.core.live.status import SourceState
from flame.core.live.sums.activities import ActivitySegment
from flame.core.live.sums.activity_store import ActivityStore
from flame.core.live.sums.host_spans import SpanRows, SpanStore
from flame.core.live.sums.segment import KeptSegments, WindowExtent
from flame.core.live.window import LONGEST
from flame.core.readers.fdump.chunks import prefix_errors
from flame.core.units import format_counted

_ABSURD = 1 << 53
_LEAST, _FIRST, _MOST = 1 << 14, 1 << 18, 4 << 20
"""Bytes to be read at a time: as many as take ``_TURN`` seconds, as far as can be told before."""
_TURN = 0.05
_Timed = TypeVar("_Timed", NewActivities, NewCalls)


class LiveSource:
    """The rows that were read of ``growing``. Times are ns of CLOCK_MONOTONIC.

    ``rest``: there is more in the file than was read. ``filled``: it has brought anything at all.
    ``error``: why no more of it can be read. ``halted``: its process has been stopped by a signal.
    """

    def __init__(
        self, growing: GrowingDump, store: ActivityStore, spans: SpanStore, liveness: Liveness
    ) -> None:
        self.growing = growing
        self.store = store
        self.spans = spans
        self.rest = True
        self.filled = False
        self.error = ""
        self.halted = False
        self.state = SourceState.RUNNING
        self.newest = self.begin = growing.header.start_monotonic
        self._liveness = liveness
        self._silent = False
        self._most = min(_FIRST, _MOST)

    @property
    def last(self) -> int:
        """The last recorded time, or when the process last said that it goes on."""
        heartbeat = self.growing.header.end_monotonic
        return max(self.newest, heartbeat) if abs(heartbeat - self.begin) < _ABSURD else self.newest

    @property
    def complete(self) -> bool:
        """Whether nothing more will come."""
        over = (
            self.state in (SourceState.ENDED, SourceState.STOPPED)
            and not self.rest
            and self._silent
        )
        return bool(self.error) or over

    def end_of_open(self, now: int) -> int:
        """Return until when ranges that are open last."""
        return now if self.state is SourceState.RUNNING else self.last

    def spans_in(self, extent: WindowExtent) -> list[SpanRows]:
        """Return calls and ranges, of which some are in a window."""
        kept = [segment.rows for segment in self.spans.segments if segment.last > extent.begin]
        return [*kept, self.spans.open_rows(self.end_of_open(extent.end))]

    def warnings(self) -> tuple[str, ...]:
        """Return what the reader of a flame graph has to know of the dump so far."""
        came = format_counted(
            self.store.late,
            "GPU activity came more than a minute after it began: time that it",
            "GPU activities came more than a minute after they began: time that they",
        )
        late = f"{came} filled before then is still counted as idle"
        return (*self.growing.warnings(), *([late] if self.store.late else []))

    def read(self) -> tuple[bool, list[ActivitySegment]]:
        """Read a part of what is new; return whether there was any, and rows too old to keep."""
        begin = time.monotonic()
        try:
            batch = self.growing.read(self._most, last=self.state is SourceState.KILLED)
            self.rest = batch.rest
            return self._add(batch)
        except InputError as error:
            self.error, self.rest = str(error), False
            return True, []
        finally:
            share = _TURN / max(time.monotonic() - begin, 1e-6)
            self._most = int(min(max(self._most * min(share, 2.0), _LEAST), _MOST))

    def _add(self, batch: DumpBatch) -> tuple[bool, list[ActivitySegment]]:
        changed = not batch.empty or self.spans.has_open != (len(batch.open) > 0)
        # Only what comes after the end has been seen is known to be the last.
        self._silent = batch.empty and self.state is not SourceState.RUNNING
        self.filled = self.filled or not batch.empty or len(batch.open) > 0
        self.newest = max(self.newest, batch.newest)
        with prefix_errors(self.growing.path):
            self.spans.add(batch)
            return changed, self.store.add(
                self._fill_times(batch.work), self._fill_times(batch.calls)
            )

    def _fill_times(self, table: _Timed) -> _Timed:
        """Place rows without times where recording began, as in a trace."""
        untimed = (table.start == 0) & (table.end == 0)
        if not untimed.any():
            return table
        start, end = (np.where(untimed, self.begin, time) for time in (table.start, table.end))
        return replace(table, start=start, end=end)

    def expire(self, horizon: int) -> KeptSegments:
        """Take out what lies before ``horizon``, or is as old for the last record that was read."""
        read = max(self.store.newest, self.spans.newest)
        work = self.store.expire(min(horizon, read - LONGEST))
        return KeptSegments(work, self.spans.expire(min(horizon, self.spans.newest - LONGEST)))

    def update_state(self, now: int) -> bool:
        """Look whether the process still records; return whether its state has changed."""
        before, growing, liveness = (self.state, self.halted), self.growing, self._liveness
        state = liveness.state(growing.header, growing.read_heartbeat(), now)
        self.state = SourceState.UNREADABLE if self.error else state
        self.halted = liveness.halted
        return before != (self.state, self.halted)
