"""Read NVTX ranges in one pass over their table, and examples of their payloads."""

from __future__ import annotations

import itertools

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column, is_any
from flame.core.model.activities import NONE
from flame.core.model.raw import OPEN, RawRanges, TableBuilder
from flame.core.names.nvtx import payload_text
from flame.core.readers.nsys.context import NsysContext
from flame.core.readers.nsys.nvtx_events import (
    NOTED,
    NotedRows,
    NumberedRows,
    NvtxEvents,
    find_events,
)
from flame.core.readers.nsys.nvtx_frames import (
    CATEGORY,
    DOMAIN,
    PUSH_POP,
    START_END,
    TABLE,
    RangeFrames,
    RangeNames,
    RangeTexts,
    int_or_zero,
    read_names,
    rows_at,
)
from flame.core.readers.sqlite.numbering import KeyColumns, RowNumbers
from flame.core.readers.sqlite.source import (
    FILLED,
    NULL,
    NUMBER,
    ROWID,
    TEXT,
    Chunk,
    TableKey,
    TableQuery,
)
from flame.core.units import format_counted

_KEY = (TEXT, "textId", "domainId", "category", "globalTid", "eventType", FILLED)
_PAYLOADS = (
    "uint64Value",
    "int64Value",
    "doubleValue",
    "uint32Value",
    "int32Value",
    "floatValue",
)
_MAX_PAYLOADS = 2_000
_RANGE, _PLACED, _NAMES, _PAID, _NOTED = 1, 2, 4, 8, 16  # what rows are good for; may be added


def _present_payloads(context: NsysContext) -> list[str]:
    """Return the columns of payloads that the table has."""
    have = context.source.columns(TABLE)
    return [name for name in ("jsonText", "jsonTextId", *_PAYLOADS) if name in have]


class _RangeTable:
    """What one pass over the table finds: ranges, and the rows to be looked at more closely."""

    def __init__(self, context: NsysContext) -> None:
        self._context = context
        self.texts = RangeTexts(context.options.nvtx_names == "clean")
        self._wanted = [PUSH_POP, START_END] if context.options.nvtx_start_end else [PUSH_POP]
        self._keys = RowNumbers(len(_KEY))
        self._uses = KeyColumns(self._keys, self._find_uses)
        self._known = [0]
        self._ranges = TableBuilder(NumberedRows, context.source.size(TABLE))
        self._others = TableBuilder(NotedRows)
        self._placed = 0
        self.naming: list[I8] = []
        self.with_payload: list[I8] = []
        self._payloads = 0
        self.unplaced = 0

    def read(self) -> None:
        """Read the table."""
        payloads = _present_payloads(self._context)
        key = TableKey(_KEY, self._keys, "text", self.texts.numbers, payloads)
        for chunk in self._context.source.chunks(TableQuery(TABLE, ("start", "end", ROWID), key)):
            (uses,) = self._uses.of(chunk[NUMBER])
            self._known.append(len(self._keys))
            self._add(chunk, uses)
            self._note_others(chunk, uses)
            self._context.advance("reading NVTX ranges", TABLE, len(uses))

    def _find_uses(self, keys: I8) -> list[Column]:
        """Find what rows with these ``keys`` are good for."""
        *_, thread, kind, filled = keys.T
        of_ranges = is_any(kind, (PUSH_POP, START_END))
        uses = is_any(kind, self._wanted) * _RANGE + (thread != NULL) * _PLACED
        uses += is_any(kind, (CATEGORY, DOMAIN)) * _NAMES + (of_ranges & (filled > 0)) * _PAID
        uses += is_any(kind, NOTED) * _NOTED
        return [uses.astype(np.uint8)]

    def _add(self, chunk: Chunk, uses: U1) -> None:
        start, end = (self._context.times(chunk[name]) for name in ("start", "end"))
        is_placed = ((uses & (_RANGE | _PLACED)) == _RANGE | _PLACED) & (start != NULL)
        self.unplaced += int(np.count_nonzero(uses & _RANGE) - np.count_nonzero(is_placed))
        if end.min(initial=0) == NULL:
            end = np.where(end == NULL, OPEN, end)
        columns = {"start": start, "end": end, "number": chunk[NUMBER]}
        noted = np.flatnonzero(uses & _NOTED)
        if len(noted):
            self._note(columns, noted, is_placed)
        if not is_placed.all():
            rows = np.flatnonzero(is_placed)
            columns = {name: column[rows] for name, column in columns.items()}
        self._ranges.add(**columns)
        self._placed += len(columns["start"])

    def _note(self, columns: Chunk, rows: I8, is_placed: Bool) -> None:
        """Note ``rows`` of a chunk as what may be events."""
        before = np.cumsum(is_placed, dtype=np.int64)[rows] - is_placed[rows]
        noted = {name: column[rows] for name, column in columns.items()}
        self._others.add(**noted, place=self._placed + before)

    def _note_others(self, chunk: Chunk, uses: U1) -> None:
        """Note the rows that name domains and categories, and the first with a payload."""
        naming = np.flatnonzero(uses & _NAMES)
        if len(naming):
            self.naming.append(chunk[ROWID][naming])
        paid = np.flatnonzero(uses & _PAID)[: _MAX_PAYLOADS - self._payloads]
        if len(paid):
            self.with_payload.append(chunk[ROWID][paid])
            self._payloads += len(paid)

    def build(self, frames: RangeFrames, names: RangeNames) -> tuple[RawRanges, NvtxEvents | None]:
        """Give the ranges their threads and frames; those without a frame are left out.

        And find the events; None where no rows are any.
        """
        numbered, keys = self._ranges.build(), self._keys.rows()
        keys[:, 0] = self.texts.codes()[keys[:, 0]]
        frame, thread = self._describe_keys(frames, keys, numbered.number)
        frame_of, thread_of = frame[numbered.number], thread[numbered.number]
        ranges = RawRanges(numbered.start, numbered.end, thread_of, frame_of)
        if frame_of.min(initial=0) < 0:
            ranges = ranges.take(np.flatnonzero(ranges.frame >= 0))
        return ranges, find_events(frames, names, keys, self._others.build(), numbered)

    def _describe_keys(self, frames: RangeFrames, keys: I8, number: I4) -> tuple[I4, I4]:
        """Find frame and thread of every key of a range: i4[keys], -1 for the others.

        New ones of each chunk are met in the order of their values.
        """
        used = np.bincount(number, minlength=len(keys)) > 0
        frame, thread = (np.full(len(keys), NONE, np.int32) for _ in range(2))
        for low, high in itertools.pairwise(self._known):
            new = low + np.flatnonzero(used[low:high])
            if len(new):
                frame[new] = frames.look_up(keys[new])
                kept = new[frame[new] >= 0]
                thread[kept] = self._context.thread_numbers(keys[kept, 4])
        return frame, thread


def read_ranges(context: NsysContext) -> tuple[RawRanges, NvtxEvents | None]:
    """Read all push/pop ranges; start/end ranges too where the options ask for them.

    And what is in the table besides; None where nothing is.
    """
    table = _RangeTable(context)
    table.read()
    if table.unplaced:
        name = format_counted(table.unplaced, "NVTX range names", "NVTX ranges name")
        context.warnings.append(f"{name} no thread or no start: left out")
    names = read_names(context, table.naming)
    context.domains = names.domains
    frames = RangeFrames(context, table.texts, names)
    found = table.build(frames, names)
    _read_payloads(context, frames, table.with_payload)
    return found


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
