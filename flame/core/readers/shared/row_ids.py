"""Give ids to rows of numbers, such as a frame to the symbol and module of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from flame.core.columns import I4, Column, unique_rows

_Key = TypeVar("_Key", bound=tuple[Any, ...])


class IdByKey(dict[_Key, int]):
    """Hold ids by key; ``make`` is called once for each key, with its parts."""

    def __init__(self, make: Callable[..., int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> int:
        number = self[key] = self._make(*key)
        return number


class RowIds(IdByKey[tuple[int, ...]]):
    """Hold ids of rows of numbers."""

    def look_up(self, columns: list[Column]) -> I4:
        """Return the ids of all rows of ``columns``, i4[n]."""
        first, kind = unique_rows(columns)
        distinct_rows = zip(*(column[first].tolist() for column in columns), strict=True)
        return np.array([self[row] for row in distinct_rows], np.int32)[kind]
