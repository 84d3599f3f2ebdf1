"""Groups of rows that differ in nothing but time, by numbers that never change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column, unique_rows
from flame.core.frames import Kind
from flame.core.marks import Joiner
from flame.core.profile import NONE
from flame.core.stacks import EMPTY


class Interned:
    """Numbers for rows of whole numbers: equal rows have one, in the order of first appearance."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._table: I8 = np.zeros((len(names), 0), np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, columns: Sequence[Column]) -> I4:
        """The numbers of rows, i4[n]; ``columns`` are in the order of the names."""
        first, kind = unique_rows(columns)
        rows = zip(*(column[first].tolist() for column in columns), strict=True)
        before = len(self._numbers)
        numbers = np.array(
            [self._numbers.setdefault(row, len(self._numbers)) for row in rows], np.int32
        )
        new = first[np.flatnonzero(numbers >= before)]
        if len(new):
            added = np.array([column[new] for column in columns], np.int64)
            self._table = np.concatenate([self._table, added], axis=1)
        return numbers[kind]

    def column(self, name: str) -> I8:
        """One column of all rows there are, by number."""
        found: I8 = self._table[self._names.index(name)]
        return found


WORK_COLUMNS = (
    *("kind", "process", "thread", "device", "stream", "python", "nvtx"),
    *("captured_python", "captured_nvtx", "graph", "launch", "launched", "frame"),
)


class WorkGroups(Interned):
    """Groups of GPU activities.

    ``whole``: their stacks ``python`` and ``nvtx``, with those of captures on top, i4[groups] each.
    """

    def __init__(self, joiner: Joiner) -> None:
        super().__init__(WORK_COLUMNS)
        self._joiner = joiner
        self.whole = {name: np.zeros(0, np.int32) for name in ("python", "nvtx")}

    def of(self, columns: Sequence[Column]) -> I4:
        """As `Interned.of`."""
        numbers = super().of(columns)
        for name, known in self.whole.items():
            if len(known) < len(self):
                self.whole[name] = np.concatenate([known, self._stacks(name, len(known))])
        return numbers

    def _stacks(self, name: str, known: int) -> I4:
        """Where groups stand that are not ``known`` yet."""
        outer = self.column(name)[known:].astype(np.int32)
        inner = self.column(f"captured_{name}")[known:]
        rows = np.flatnonzero(inner != EMPTY)
        if len(rows):
            outer[rows] = self._joiner.joined(outer[rows], inner[rows])
        return outer


class HostGroups(Interned):
    """Groups of API calls and of push/pop ranges: ``launch`` is -1 for these."""

    def __init__(self) -> None:
        super().__init__(("kind", "process", "thread", "nvtx", "launch"))

    def of_ranges(self, process: int, thread: Column, nvtx: Column) -> I4:
        """The groups of ranges with the paths ``nvtx``; -1 for the empty path."""
        size = len(thread)
        kind, none = np.full(size, int(Kind.NVTX)), np.full(size, NONE)
        found = np.full(size, NONE, np.int32)
        rows = np.flatnonzero(nvtx != EMPTY)
        columns = (kind, np.full(size, process), thread, nvtx, none)
        if len(rows):
            found[rows] = self.of([column[rows] for column in columns])
        return found

    def of_calls(self, process: int, thread: Column, nvtx: Column, frame: Column) -> I4:
        """The groups of API calls made within the paths ``nvtx``."""
        size = len(thread)
        kind = np.full(size, int(Kind.LAUNCH))
        return self.of((kind, np.full(size, process), thread, nvtx, frame))
