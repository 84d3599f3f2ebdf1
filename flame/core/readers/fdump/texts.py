"""The texts of a dump, by id."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

import numpy as np

from flame.core.columns import Column, distinct
from flame.core.readers.fdump.ids import ABSENT, Ids
from flame.core.readers.fdump.layout import TEXT
from flame.core.readers.fdump.records import Records

LOST = "[lost]"
_RECORD = struct.Struct("<II")


class Texts:
    """All texts. Kept as the bytes that were written: a program may name a million ranges.

    ``damaged`` counts places from which on a chunk holds something else.
    """

    def __init__(self) -> None:
        self.damaged = 0
        self._data = bytearray()
        self._start, self._size = array("q"), array("q")
        self._ids = Ids()

    def learn(self, records: Records) -> None:
        """Add the texts among ``records``."""
        first, numbers = len(self._start), array("q")
        for piece in records.pieces(TEXT):
            numbers.extend(self._add(records.content(piece)))
        rows = np.arange(first, len(self._start))
        self._ids.learn(np.array(numbers, np.int64), rows)

    def _add(self, data: bytes) -> Iterator[int]:
        """Keep the bytes of one piece; the ids of the texts in it."""
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

    def of(self, *columns: Column) -> dict[int, str]:
        """The texts with the ids in ``columns``: nothing for 0, `LOST` where the dump lacks it."""
        return dict(self.each(*columns))

    def each(self, *columns: Column) -> Iterator[tuple[int, str]]:
        """The same, one at a time: there may be a million."""
        wanted, _ = distinct(np.concatenate([np.zeros(1, np.int64), *columns]))
        for number, row in zip(wanted.tolist(), self._ids.of(wanted).tolist(), strict=True):
            yield number, self._text(row) if row != ABSENT else LOST if number else ""

    def _text(self, row: int) -> str:
        start = self._start[row]
        return self._data[start : start + self._size[row]].decode("utf-8", "replace")
