"""The texts of a dump, by id."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator

import numpy as np

from flame.core.columns import Column, distinct
from flame.core.readers.fdump.chunks import Records
from flame.core.readers.fdump.ids import ABSENT, Ids
from flame.core.readers.fdump.layout import TEXT

LOST = "[lost]"
_RECORD = struct.Struct("<II")


class Texts:
    """All texts. Kept as the bytes that were written: a program may name a million ranges.

    ``damaged`` counts chunks that hold something else from some place on.
    """

    def __init__(self, records: Records) -> None:
        self.damaged = 0
        content = [records.content(one) for one in records.chunks(TEXT)]
        self._data = b"".join(content)
        columns = array("q"), array("q"), array("q")
        base = 0
        for data in content:
            for number, start, size in self._records(data):
                columns[0].append(number)
                columns[1].append(base + start)
                columns[2].append(size)
            base += len(data)
        ids, self._start, self._size = (np.array([*column, 0], np.int64) for column in columns)
        self._ids = Ids(ids, [self._start, self._size])

    def _records(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, size) of the texts in the bytes of one chunk."""
        at = 0
        while at + _RECORD.size <= len(data):
            number, size = _RECORD.unpack_from(data, at)
            start = at + _RECORD.size
            if number == 0 or start + size > len(data):
                self.damaged += 1
                return
            yield number, start, size
            at = start + (size + 7) // 8 * 8

    def of(self, *columns: Column) -> dict[int, str]:
        """The texts with the ids in ``columns``: nothing for 0, `LOST` where the dump lacks it."""
        return dict(self.each(*columns))

    def each(self, *columns: Column) -> Iterator[tuple[int, str]]:
        """The same, one at a time: there may be a million."""
        wanted, _ = distinct(np.concatenate([np.zeros(1, np.int64), *columns]))
        rows = self._ids.of(wanted)
        places = (column.tolist() for column in (wanted, rows, self._start[rows], self._size[rows]))
        for number, row, start, size in zip(*places, strict=True):
            yield number, self._text(start, size) if row != ABSENT else LOST if number else ""

    def _text(self, start: int, size: int) -> str:
        return self._data[start : start + size].decode("utf-8", "replace")
