"""Read NVTX ranges in one pass over their table, and examples of their payloads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.activities import NONE
from flame.core.model.raw import OPEN, RawRanges, TableBuilder
from flame.core.names.nvtx import payload_text
from flame.core.readers.nsys.context import DenseNumbers, NsysContext, process_keys
from flame.core.readers.nsys.nvtx_frames import (
    CATEGORY,
    DOMAIN,
    PUSH_POP,
    START_END,
    TABLE,
    RangeFrames,
    TextCodes,
    int_or_zero,
    read_names,
    rows_at,
)
from flame.core.readers.shared.row_ids import RowNumbers
from flame.core.readers.sqlite.source import FILLED, NULL, ROWID, Chunk, TableQuery
from flame.core.units import format_counted

_KEYS = ("textId", "domainId", "category")
_COLUMNS = ("start", "end", "eventType", "globalTid", *_KEYS, ROWID)
_PAYLOADS = (
    "uint64Value",
    "int64Value",
    "doubleValue",
    "uint32Value",
    "int32Value",
    "floatValue",
)
_MAX_PAYLOADS = 2_000


def _present_payloads(context: NsysContext) -> list[str]:
    """Return the columns of payloads that the table has."""
    have = context.source.columns(TABLE)
    return [name for name in ("jsonText", "jsonTextId", *_PAYLOADS) if name in have]


class _RangeTable:
    """What one pass over the table finds: ranges, and the rows to be looked at more closely."""

    def __init__(self, context: NsysContext) -> None:
        self._context = context
        self.texts = TextCodes(context.options.nvtx_names == "clean")
        self._wanted = [PUSH_POP, START_END] if context.options.nvtx_start_end else [PUSH_POP]
        self._ranges = TableBuilder(RawRanges, context.source.size(TABLE))
        self._kinds = RowNumbers(len(_KEYS) + 2)
        self._threads = DenseNumbers()
        self.naming: list[I8] = []
        self.with_payload: list[I8] = []
        self._payloads = 0
        self.unplaced = 0

    def read(self) -> None:
        """Read the table."""
        texts = {"text": self.texts.__getitem__}
        payloads = _present_payloads(self._context)
        query = TableQuery(TABLE, _COLUMNS, texts, payloads, self.texts.running)
        for chunk in self._context.source.chunks(query):
            self._add(chunk)
            self._context.advance("reading NVTX ranges", len(chunk["start"]))

    def _add(self, chunk: Chunk) -> None:
        chunk |= {name: self._context.times(chunk[name]) for name in ("start", "end")}
        kind = chunk["eventType"]
        is_range = np.isin(kind, self._wanted)
        rows = np.flatnonzero(is_range & (chunk["globalTid"] != NULL) & (chunk["start"] != NULL))
        self.unplaced += int(np.count_nonzero(is_range)) - len(rows)
        self._note_others(chunk)
        if len(rows) < len(kind):
            chunk = {name: column[rows] for name, column in chunk.items()}
        names = [chunk[name] for name in ("text", *_KEYS)]
        self._ranges.add(
            start=chunk["start"],
            end=np.where(chunk["end"] == NULL, OPEN, chunk["end"]),
            thread=self._threads(chunk["globalTid"]),
            frame=self._kinds.number([*names, process_keys(chunk["globalTid"])]),
        )

    def _note_others(self, chunk: Chunk) -> None:
        """Note the rows that name domains and categories, and the first with a payload."""
        kind = chunk["eventType"]
        naming = np.isin(kind, (CATEGORY, DOMAIN))
        if naming.any():
            self.naming.append(chunk[ROWID][naming])
        if FILLED in chunk and self._payloads < _MAX_PAYLOADS and chunk[FILLED].any():
            of_ranges = np.isin(kind, (PUSH_POP, START_END))
            more = np.flatnonzero(chunk[FILLED] & of_ranges)[: _MAX_PAYLOADS - self._payloads]
            self.with_payload.append(chunk[ROWID][more])
            self._payloads += len(more)

    def build(self, frames: RangeFrames) -> RawRanges:
        """Give the ranges their frames; those without one are left out."""
        frame = np.full(len(self._kinds) + 1, NONE, np.int32)
        for number, row in self._kinds.in_order():
            frame[number] = frames.frame_id(*row)
        ranges = self._ranges.build()
        ranges = replace(ranges, frame=frame[ranges.frame])
        if (frame[:-1] < 0).any():
            ranges = ranges.take(np.flatnonzero(ranges.frame >= 0))
        return replace(ranges, thread=self._known_threads(ranges.thread))

    def _known_threads(self, thread: I4) -> I4:
        """Make known to the context the threads of the ranges that are kept."""
        keys = np.array(self._threads.keys, np.int64)
        used = np.flatnonzero(np.bincount(thread, minlength=len(keys)))
        number = np.full(len(keys), NONE, np.int32)
        number[used] = self._context.thread_numbers(keys[used])
        return number[thread]


def read_ranges(context: NsysContext) -> RawRanges:
    """Read all push/pop ranges; start/end ranges too where the options ask for them."""
    table = _RangeTable(context)
    table.read()
    if table.unplaced:
        name = format_counted(table.unplaced, "NVTX range names", "NVTX ranges name")
        context.warnings.append(f"{name} no thread or no start: left out")
    frames = RangeFrames(context, table.texts, read_names(context, table.naming))
    ranges = table.build(frames)
    _read_payloads(context, frames, table.with_payload)
    return ranges


def _read_payloads(context: NsysContext, frames: RangeFrames, rowids: list[I8]) -> None:
    """Keep a few payloads per range as examples (they differ from instance to instance)."""
    names = ["text", "textId", "domainId", "category", "globalTid", "jsonText", "jsonTextId"]
    filled = " OR ".join(f"{name} IS NOT NULL" for name in _present_payloads(context)) or "0"
    condition = f"eventType IN ({PUSH_POP}, {START_END}) AND ({filled}) LIMIT {_MAX_PAYLOADS}"
    for row in rows_at(context, [*names, *_PAYLOADS], rowids, condition):
        _add_payload(context, frames, row)


def _add_payload(context: NsysContext, frames: RangeFrames, row: tuple[object, ...]) -> None:
    text, text_id, domain, category, thread, json_text, json_id, *numbers = row
    code = frames.texts.code(text) if isinstance(text, str) else 0
    registered = text_id if isinstance(text_id, int) else NULL
    process = int_or_zero(thread) & ~0xFFFFFF
    frame = frames.frame_id(code, registered, int_or_zero(domain), int_or_zero(category), process)
    json = json_text if isinstance(json_text, str) else context.text_of(json_id)
    values = [
        f"{name} {value}"
        for name, value in zip(_PAYLOADS, numbers, strict=True)
        if value is not None
    ]
    payload = payload_text(json) if json else ", ".join(values)
    if frame >= 0 and payload:
        context.frames.add_example(frame, payload)
