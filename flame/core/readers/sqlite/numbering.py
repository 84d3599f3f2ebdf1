"""Number texts, and rows of several columns, while a table is read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from flame.core.columns import I4, I8, Column, unique_rows
from flame.core.compiled.library import compiled
from flame.core.compiled.rows import RowTable
from flame.core.compiled.texts import TextTable
from flame.core.lazy_dataclass import dataclass

NO_TEXT = -1


@dataclass(frozen=True)
class Stripping:
    """Say what of a text does not count: what ``strip`` leaves out.

    Of texts that begin with one of the ``kept`` strings it leaves out nothing. It must be what
    `csrc/texts.c` does.
    """

    strip: Callable[[bytes], bytes]
    kept: Sequence[bytes]


class _Texts(dict[bytes | None, int]):
    """Numbers of texts as recorded; those of which something is left out are not kept."""

    def __init__(self, strip: Callable[[bytes], bytes] | None) -> None:
        super().__init__({None: NO_TEXT})
        self.numbers: dict[bytes, int] = {}
        self._strip = strip

    def __missing__(self, text: bytes) -> int:
        counting = self._strip(text) if self._strip else text
        number = self.numbers.setdefault(counting, len(self.numbers))
        if counting == text:
            self[text] = number
        return number


class TextNumbers:
    """Number texts (UTF-8 as stored) in the order in which they first come."""

    def __init__(self, stripping: Stripping | None = None) -> None:
        kept = stripping.kept if stripping else None
        self.table = TextTable(kept) if compiled() else None
        self._texts = _Texts(stripping.strip if stripping else None)

    def __len__(self) -> int:
        return len(self._texts.numbers if self.table is None else self.table)

    def number(self, texts: Sequence[bytes | None]) -> I8:
        """Return the numbers of ``texts``, new or known, i8[n]; `NO_TEXT` for None."""
        if self.table is None:
            return np.fromiter(map(self._texts.__getitem__, texts), np.int64, len(texts))
        one = self.table.number
        return np.array([NO_TEXT if text is None else one(text) for text in texts], np.int64)

    def __iter__(self) -> Iterator[bytes]:
        if self.table is None:
            return iter(self._texts.numbers)
        return map(self.table.text, range(len(self)))


class _Rows(dict[tuple[int, ...], int]):
    """Numbers of rows."""

    def __missing__(self, row: tuple[int, ...]) -> int:
        number = self[row] = len(self)
        return number


class RowNumbers:
    """Number rows of ``width`` integers in the order in which different ones first come."""

    def __init__(self, width: int) -> None:
        self.table = RowTable(width) if compiled() else None
        self._width = width
        self._numbers = _Rows()

    def __len__(self) -> int:
        return len(self._numbers if self.table is None else self.table)

    def number(self, columns: Sequence[Column]) -> I4:
        """Return the numbers of all rows of ``columns``, new or known, i4[n]."""
        if self.table is None:
            return self._number(columns)
        numbered = self.table.number(columns)
        if numbered is None:
            raise MemoryError
        return numbered[1]

    def _number(self, columns: Sequence[Column]) -> I4:
        first, kind = unique_rows(columns)
        order = np.argsort(first)
        rows = zip(*(column[first[order]].tolist() for column in columns), strict=True)
        numbers = np.empty(len(first), np.int32)
        numbers[order] = np.fromiter(map(self._numbers.__getitem__, rows), np.int32, len(order))
        return numbers[kind]

    def rows(self, begin: int = 0) -> I8:
        """Return the different rows from number ``begin`` on, i8[n, width]."""
        if self.table is not None:
            return self.table.rows(begin)
        found = list(itertools.islice(self._numbers, begin, None))
        return np.array(found, np.int64).reshape(-1, self._width)


class KeyColumns:
    """Hold columns that follow from the keys of rows: ``derive`` makes them, once for each key.

    It is given new keys, i8[n, width], and returns a value for each in every column.
    """

    def __init__(self, rows: RowNumbers, derive: Callable[[I8], Sequence[Column]]) -> None:
        self._rows = rows
        self._derive = derive
        self._known = 0
        self._columns: list[Column] = []

    def of(self, number: I4) -> list[Column]:
        """Return the columns of the rows whose keys have these numbers."""
        if self._known < len(self._rows) or not self._columns:
            self._learn()
        place = number.astype(np.intp)  # once: numpy would do so for each column
        return [column[place] for column in self._columns]

    def _learn(self) -> None:
        new = self._rows.rows(self._known)
        derived = [np.asarray(column) for column in self._derive(new)]
        known = self._columns or [column[:0] for column in derived]
        self._columns = [np.concatenate(pair) for pair in zip(known, derived, strict=True)]
        self._known += len(new)
