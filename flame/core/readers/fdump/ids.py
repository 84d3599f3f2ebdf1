"""Lookups by the ids that records of a dump name one another with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, unique_rows
from flame.core.profile import NONE

ABSENT = -1


class Ids:
    """Rows by id. Ids are never given twice: of different rows with one id none is believed."""

    def __init__(self, ids: I8, columns: list[Column]) -> None:
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(twice):
            first, _ = unique_rows([ids, *columns])
            _, kind = unique_rows([ids[first]])
            alone = first[np.bincount(kind)[kind] == 1]
            order = alone[np.argsort(ids[alone], kind="stable")]
            ordered = ids[order]
        known = ordered > 0
        self.ids: I8 = ordered[known]
        self._rows = np.append(order[known], ABSENT)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> I8:
        """The row of every id, in the order of the ids."""
        return self._rows[:-1]

    def of(self, wanted: Column) -> I8:
        """The rows with the ids ``wanted``, `ABSENT` where there is none."""
        return self._rows[self.places(wanted)]

    def places(self, wanted: Column) -> I8:
        """Places of ``wanted`` in ``ids``, `ABSENT` where they are not."""
        place = np.searchsorted(self.ids, wanted)
        found = np.append(self.ids, ABSENT)[place] == wanted
        return np.where(found & (wanted > 0), place, ABSENT)


class Numbers:
    """Dense numbers for sparse ids (threads, GPUs), in order of appearance; `NONE` stays."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {NONE: NONE}

    def __call__(self, ids: Column) -> I4:
        """The numbers of ``ids``, new or known."""
        values, place = distinct(ids.astype(np.int64))
        known = [self._ids.setdefault(one, len(self._ids) - 1) for one in values.tolist()]
        return np.array(known, np.int32)[place]

    @property
    def ids(self) -> list[int]:
        """All ids, by number."""
        return list(self._ids)[1:]


class Made(dict[tuple[int, ...], int]):
    """What stands for rows of numbers (a frame for a symbol); each is worked out once."""

    def __init__(self, make: Callable[..., int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, row: tuple[int, ...]) -> int:
        found = self[row] = self._make(*row)
        return found

    def rows(self, columns: list[Column]) -> I4:
        """That of all rows of ``columns``."""
        first, kind = unique_rows(columns)
        rows = zip(*(column[first].tolist() for column in columns), strict=True)
        return np.array([self[row] for row in rows], np.int32)[kind]
