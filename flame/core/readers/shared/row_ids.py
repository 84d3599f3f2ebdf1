"""Give ids to rows of numbers, such as a frame to the symbol and module of a call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, Column, unique_rows


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
