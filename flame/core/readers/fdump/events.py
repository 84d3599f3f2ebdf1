"""Build what threads recorded besides ranges that nest: marks, and start/end ranges."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, U1, distinct
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.raw import TableBuilder
from flame.core.model.threads.events import EventName, EventStyle, EventThread, ThreadEvents
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.host import START_END, select_kinds

MARK = 2
_31_BITS = 0x7FFFFFFF
_STYLES = {START_END: EventStyle.START_END, MARK: EventStyle.MARK}


@dataclass(frozen=True, eq=False)
class _Rows:
    """Events as they are collected; ``kind`` is that of the dump."""

    start: I8
    end: I8
    tid: I4
    frame: I4
    kind: U1


class EventRows:
    """Collects the events among records of ranges."""

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._rows = TableBuilder(_Rows)
        self._any = False

    def add(self, piece: dict[str, I8]) -> None:
        """Add those in ``piece`` that have times."""
        found = select_kinds(piece, tuple(_STYLES))
        if not len(found["start"]):
            return
        self._any = True
        (start, started), (end, ended) = (self._context.since(found[at]) for at in ("start", "end"))
        rows = np.flatnonzero(started & ended)
        self._rows.add(
            start=start[rows],
            end=np.maximum(start, end)[rows],
            tid=found["tid"][rows] & _31_BITS,
            frame=self._context.vocabulary.range_frames(found["name"][rows]),
            kind=found["kind"][rows],
        )

    def build(self, in_ranges: bool) -> ThreadEvents | None:
        """Build the events, once all threads are known; None where there are none.

        ``in_ranges``: start/end ranges are among the ranges as well.
        """
        if not self._any:
            return None
        table, frames = self._rows.build(), self._context.vocabulary.frames
        used, name = distinct(table.frame.astype(np.int64))
        tids, thread = distinct(table.tid.astype(np.int64))
        style = np.zeros(len(name), np.uint8)
        for kind, one in _STYLES.items():
            style[table.kind == kind] = one
        return ThreadEvents(
            tuple(EventName(frames[at].name, frames[at].get("domain")) for at in used.tolist()),
            tuple(map(self._thread, tids.tolist())),
            style,
            name.astype(np.int32),
            thread.astype(np.int32),
            table.start,
            table.end,
            in_ranges,
        )

    def _thread(self, tid: int) -> EventThread:
        context = self._context
        process = context.shared.processes[context.process]
        name = context.thread_name(tid) or process.name
        known = context.threads.get((tid,), NONE) if tid else NONE
        return EventThread(process.pid, tid, name, context.process, known)
