"""Build what ranges tell besides how they nest: marks, start/end ranges, calls of NCCL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, distinct, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE
from flame.core.model.launches import NcclRanges
from flame.core.model.raw import TableBuilder
from flame.core.model.threads.events import EventName, EventStyle, EventThread, ThreadEvents
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.host import PUSH_POP, START_END, select_kinds, select_rows
from flame.core.readers.shared.nccl import DOMAIN, build_ranges, json_payload

MARK = 2
_31_BITS = 0x7FFFFFFF
_STYLES = {START_END: EventStyle.START_END, MARK: EventStyle.MARK}


@dataclass(frozen=True, eq=False)
class _EventTable:
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
        self._rows = TableBuilder(_EventTable)
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
        known = context.threads.get(tid) if tid else NONE
        return EventThread(process.pid, tid, name, context.process, known)


@dataclass(frozen=True, eq=False)
class _NcclTable:
    """Ranges of NCCL as they are collected; ``payload`` is the number of a text, 0 of none."""

    start: I8
    end: I8
    thread: I4
    frame: I4
    payload: I4


class NcclRows:
    """Collects the ranges of NCCL among records of ranges, once the names of domains are known."""

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._rows = TableBuilder(_NcclTable)
        self._has_domain = context.vocabulary.has_domain(DOMAIN)
        self._any = False

    def add(self, piece: dict[str, I8]) -> None:
        """Add those in ``piece`` that have times."""
        if not self._has_domain:
            return
        frame = self._context.vocabulary.range_frames(piece["name"])
        mine = self._are_of_nccl(frame)
        if not mine.any():
            return
        self._any = True
        found = select_kinds(select_rows({**piece, "frame": frame}, mine), (PUSH_POP,))
        (start, started), (end, ended) = (self._context.since(found[at]) for at in ("start", "end"))
        rows = np.flatnonzero(started & ended & (start <= end))
        self._rows.add(
            start=start[rows],
            end=end[rows],
            thread=self._context.thread_indices(found["tid"][rows]),
            frame=found["frame"][rows],
            payload=found["payload_text"][rows],
        )

    def _are_of_nccl(self, frames: I4) -> Bool:
        """Mark the ``frames`` of ranges in its domain."""
        used, place = distinct(frames.astype(np.int64))
        known = self._context.vocabulary.frames
        return np.array([known[at].get("domain") == DOMAIN for at in used.tolist()], bool)[place]

    def builder(self) -> Callable[[], NcclRanges] | None:
        """Tell how to build them, once all threads are known; None where there are none."""
        if not self._any:
            return None
        table, vocabulary = self._rows.build(), self._context.vocabulary
        first, kind = unique_rows([table.frame, table.payload])
        texts = vocabulary.texts.look_up(table.payload[first])
        kinds = tuple(
            (vocabulary.frames[frame].name, texts[text])
            for frame, text in zip(
                table.frame[first].tolist(), table.payload[first].tolist(), strict=True
            )
        )
        process = np.full(len(kind), self._context.process, np.int32)
        return partial(_build_nccl, table, kind.astype(np.int32), kinds, process)


def _build_nccl(
    table: _NcclTable, kind: I4, kinds: tuple[tuple[str, str], ...], process: I4
) -> NcclRanges:
    told = [(name, json_payload(text) if text else {}) for name, text in kinds]
    return build_ranges(table.thread, table.start, table.end, kind, told, process)
