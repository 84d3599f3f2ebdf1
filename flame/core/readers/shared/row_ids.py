"""Give ids or numbers to rows of numbers, such as a frame to the symbol and module of a call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from flame.core.columns import I4, Column, unique_rows
from flame.core.compiled.library import compiled
from flame.core.compiled.rows import RowTable


class RowIds(dict[tuple[int, ...], int]):
    """Ids by row; ``make`` is called once for each distinct row, with its numbers."""

    def __init__(self, make: Callable[..., int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, row: tuple[int, ...]) -> int:
        number = self[row] = self._make(*row)
        return number

    def look_up(self, columns: list[Column]) -> I4:
        """Return the ids of all rows of ``columns``, i4[n]."""
        first, kind = unique_rows(columns)
        distinct_rows = zip(*(column[first].tolist() for column in columns), strict=True)
        return np.array([self[row] for row in distinct_rows], np.int32)[kind]


class RowNumbers:
    """Number rows of ``width`` integers in the order in which different ones first come."""

    def __init__(self, width: int) -> None:
        self._table = RowTable(width) if compiled() else None
        self._numbers: dict[tuple[int, ...], int] = {}
        self._bounds = [0]

    def __len__(self) -> int:
        return self._bounds[-1]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """List the different rows, by number."""
        return self._table.rows() if self._table else list(self._numbers)

    def number(self, columns: list[Column]) -> I4:
        """Return the numbers of all rows of ``columns``, new or known, i4[n]."""
        if self._table is None:
            numbers = self._look_up(columns)
            self._bounds.append(len(self._numbers))
        else:
            numbered = self._table.number(columns)
            if numbered is None:
                raise MemoryError
            numbers = numbered[1]
            self._bounds.append(len(self._table))
        return numbers

    def _look_up(self, columns: list[Column]) -> I4:
        first, kind = unique_rows(columns)
        order = np.argsort(first)
        rows = zip(*(column[first[order]].tolist() for column in columns), strict=True)
        numbers = np.empty(len(first), np.int32)
        numbers[order] = [self._numbers.setdefault(row, len(self._numbers)) for row in rows]
        return numbers[kind]

    def in_order(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield all numbers and rows, the new ones of each call in the order of their values."""
        rows = self.rows
        for low, high in itertools.pairwise(self._bounds):
            if low < high:
                columns = [
                    np.array(column, np.int64) for column in zip(*rows[low:high], strict=True)
                ]
                for place in unique_rows(columns)[0].tolist():
                    yield low + place, rows[low + place]
