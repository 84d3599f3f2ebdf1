"""Give ids to rows of numbers, such as a frame to the symbol and module of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from flame.core.columns import I4, Column, unique_rows
from flame.core.model.activities import NONE

_Key = TypeVar("_Key", bound=tuple[Any, ...])


class IdByKey(dict[_Key, int]):
    """Hold ids by key; ``make`` is called once for each key, with its parts."""

    def __init__(self, make: Callable[..., int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> int:
        number = self[key] = self._make(*key)
        return number


class RowIds:
    """Hold ids of rows of numbers; ``make`` is called once for each row, with its numbers.

    They are kept by rows as texts, whose hash has a secret in Python: a file can choose numbers so
    that the hashes of all its rows collide.
    """

    def __init__(self, make: Callable[..., int]) -> None:
        self._make = make
        self._ids: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def set(self, number: int, *row: int) -> None:
        """Set the id of a row."""
        self._ids[str(row)] = number

    def get(self, *row: int) -> int:
        """Return the id of a row, `NONE` where it has none yet."""
        return self._ids.get(str(row), NONE)

    def look_up(self, columns: list[Column]) -> I4:
        """Return the ids of all rows of ``columns``, i4[n]."""
        first, kind = unique_rows(columns)
        distinct_rows = zip(*(column[first].tolist() for column in columns), strict=True)
        return np.array([self._id(row) for row in distinct_rows], np.int32)[kind]

    def _id(self, row: tuple[int, ...]) -> int:
        key = str(row)
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = self._make(*row)
        return number
