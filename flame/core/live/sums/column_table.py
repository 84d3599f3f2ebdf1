"""Define tables of columns of one length, which are cut and concatenated as wholes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from flame.core.columns import Column
from flame.core.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A table: all fields of a subclass are columns of the same length."""

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    def columns(self) -> list[Column]:
        """Return all columns in the order of their declaration."""
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def take(self, rows: Column | slice) -> Self:
        """Return the rows that ``rows`` (indices, a mask or a slice) selects."""
        return type(self)(*(column[rows] for column in self.columns()))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the rows of all ``parts``, of which there is at least one."""
        if len(parts) == 1:
            return parts[0]
        return cls(*map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))
