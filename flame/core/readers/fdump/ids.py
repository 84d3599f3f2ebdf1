"""Look up values by the ids with which records of a dump refer to one another."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from flame.core.columns import I8, Bool, Column, distinct, run_starts
from flame.core.model.activities import NONE
from flame.core.readers.fdump.layout import TEXT
from flame.core.readers.fdump.records import Records
from flame.core.readers.shared.row_ids import RowIds

LOST = "[lost]"

_RECORD = struct.Struct("<II")


ABSENT = -1


class IdTable:
    """Values (>= 0) by id. An id has one value: where records give it several, it has none.

    ``ids`` are sorted; ``values`` are `ABSENT` where they contradict one another.
    """

    def __init__(self) -> None:
        self.ids: I8 = np.zeros(0, np.int64)
        self.values: I8 = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def learn(self, ids: I8, values: I8) -> None:
        """Add the values of ``ids``; ids that are not positive stand for nothing."""
        ids, values = _settle(ids, values)
        place, known = self._find(ids)
        old = place[known]
        self.values[old] = np.where(self.values[old] == values[known], values[known], ABSENT)
        if not known.all():
            new = np.searchsorted(self.ids, ids[~known])
            self.ids = np.insert(self.ids, new, ids[~known])
            self.values = np.insert(self.values, new, values[~known])

    def look_up(self, wanted: Column) -> I8:
        """Return the values of the ids ``wanted``, `ABSENT` where there is none."""
        place, known = self._find(wanted)
        values = np.full(len(wanted), ABSENT)
        values[known] = self.values[place[known]]
        return values

    def contains(self, wanted: Column) -> Bool:
        """Return which of the ids ``wanted`` have come, whether or not their values agree."""
        return self._find(wanted)[1]

    def _find(self, wanted: Column) -> tuple[I8, Bool]:
        """Return the places of the ids ``wanted``, and which of them are there at all."""
        if not len(self.ids):
            return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
        place = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return place, (self.ids[place] == wanted) & (wanted > 0)


def _settle(ids: I8, values: I8) -> tuple[I8, I8]:
    """Return distinct ids, sorted, and the value of each, `ABSENT` where several contradict."""
    rows = np.flatnonzero(ids > 0)
    order = rows[np.lexsort((values[rows], ids[rows]))]
    ids, values = ids[order], values[order]
    first = run_starts(ids)
    last = np.append(first, len(ids))[1:] - 1
    return ids[first], np.where(values[first] == values[last], values[first], ABSENT)


class OptionalRowIds(RowIds):
    """Ids of rows, among which `NONE` alone stands for no row and keeps the id `NONE`."""

    def __init__(self, make: Callable[..., int]) -> None:
        super().__init__(make)
        self.set(NONE, NONE)


class DumpTextTable:
    """All texts of a dump, kept as the bytes written: a program may name a million ranges.

    ``damaged`` counts places from which on a chunk holds something else.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._data = bytearray()
        self._start, self._size = array("q"), array("q")
        self._ids = IdTable()

    def learn(self, records: Records) -> None:
        """Add the texts among ``records``."""
        first, numbers = len(self._start), array("q")
        for piece in records.pieces(TEXT):
            numbers.extend(self._add(records.content(piece)))
        rows = np.arange(first, len(self._start))
        self._ids.learn(np.array(numbers, np.int64), rows)

    def _add(self, data: bytes) -> Iterator[int]:
        """Keep the bytes of one piece, and yield the ids of the texts in it."""
        at, base = 0, len(self._data)
        while at + _RECORD.size <= len(data):
            number, size = _RECORD.unpack_from(data, at)
            start = at + _RECORD.size
            if number == 0 or start + size > len(data):
                self.damaged += 1
                break
            self._start.append(base + start)
            self._size.append(size)
            yield number
            at = start + (size + 7) // 8 * 8
        self._data += data[:at]

    def look_up(self, *columns: Column) -> dict[int, str]:
        """Return the texts of the ids in ``columns``: empty for 0, `LOST` where there is none."""
        return dict(self.look_up_each(*columns))

    def look_up_each(self, *columns: Column) -> Iterator[tuple[int, str]]:
        """Yield what `look_up` returns, one text at a time: there may be a million."""
        wanted, _ = distinct(np.concatenate([np.zeros(1, np.int64), *columns]))
        for number, row in zip(wanted.tolist(), self._ids.look_up(wanted).tolist(), strict=True):
            yield number, self._text(row) if row != ABSENT else LOST if number else ""

    def _text(self, row: int) -> str:
        start = self._start[row]
        return self._data[start : start + self._size[row]].decode("utf-8", "replace")
