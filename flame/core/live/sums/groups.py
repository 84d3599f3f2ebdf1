"""Group rows that differ in nothing but time, by numbers that never change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, Column, unique_rows
from flame.core.errors import InputError
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.stack_joins import StackJoiner
from flame.core.model.stacks import EMPTY

_MOST = 1 << 22
"""They are kept for good: with more there is no memory for them."""


class RowInterner:
    """Numbers rows of whole numbers: equal rows have one number, in order of first appearance.

    A program may have a million: a row is known by its bytes, which take far less room than a tuple
    of its numbers. What is known of a row stays in its place, so that nobody needs a copy. With too
    many InputError is raised.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._numbers: dict[bytes, int] = {}
        self._table: I4 = np.zeros((len(names), 1), np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def intern(self, columns: Sequence[Column]) -> I4:
        """Return the numbers of rows, i4[n]; ``columns`` (32 bits) are in the order of names."""
        first, kind = unique_rows(columns)
        rows = np.array([column[first] for column in columns], np.int32)
        keys: list[bytes] = rows.T.copy().view(f"V{4 * len(rows)}").ravel().tolist()
        known = self._numbers
        before = len(known)
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], np.int32)
        self._add(rows[:, numbers >= before])
        if len(known) > _MOST:
            raise InputError(
                f"too much: more than {_MOST:,} combinations of stack, stream and thread"
            )
        return numbers[kind]

    def _add(self, rows: I4) -> None:
        size, room = len(self), self._table.shape[1]
        if size > room:
            self._table = np.pad(self._table, ((0, 0), (0, max(size, 2 * room) - room)))
        self._table[:, size - rows.shape[1] : size] = rows

    def column(self, name: str) -> I4:
        """Return a column of all rows there are, by number."""
        column: I4 = self._table[self._names.index(name), : len(self)]
        return column


WORK_COLUMNS = (
    *("kind", "process", "thread", "device", "stream", "python", "nvtx"),
    *("captured_python", "captured_nvtx", "graph", "launch", "launched", "frame"),
)


class ActivityGroups(RowInterner):
    """Groups of GPU activities.

    ``whole``: their stacks ``python`` and ``nvtx``, with those of captures on top, i4[groups] each.
    """

    def __init__(self, joiner: StackJoiner) -> None:
        super().__init__(WORK_COLUMNS)
        self._joiner = joiner
        self.joined_stacks = {name: np.zeros(0, np.int32) for name in ("python", "nvtx")}

    def intern(self, columns: Sequence[Column]) -> I4:
        """Return the numbers of rows as `RowInterner.intern`, and join stacks of new groups."""
        numbers = super().intern(columns)
        for name, known in self.joined_stacks.items():
            if len(known) < len(self):
                self.joined_stacks[name] = np.concatenate(
                    [known, self._join_stacks(name, len(known))]
                )
        return numbers

    def _join_stacks(self, name: str, known: int) -> I4:
        """Join the stacks of groups that are not ``known`` yet with those of captures."""
        outer = self.column(name)[known:].copy()
        inner = self.column(f"captured_{name}")[known:]
        rows = np.flatnonzero(inner != EMPTY)
        if len(rows):
            outer[rows] = self._joiner.join(outer[rows], inner[rows])
        return outer


class HostGroups(RowInterner):
    """Groups of API calls and of push/pop ranges: ``launch`` is -1 for ranges."""

    def __init__(self) -> None:
        super().__init__(("kind", "process", "thread", "nvtx", "launch"))

    def intern_ranges(self, process: int, thread: Column, nvtx: Column) -> I4:
        """Return the groups of ranges with the paths ``nvtx``; -1 for the empty path."""
        size = len(thread)
        kind, none = np.full(size, int(Kind.NVTX)), np.full(size, NONE)
        groups = np.full(size, NONE, np.int32)
        rows = np.flatnonzero(nvtx != EMPTY)
        columns = (kind, np.full(size, process), thread, nvtx, none)
        if len(rows):
            groups[rows] = self.intern([column[rows] for column in columns])
        return groups

    def intern_calls(self, process: int, thread: Column, nvtx: Column, frame: Column) -> I4:
        """Return the groups of API calls made within the paths ``nvtx``."""
        size = len(thread)
        kind = np.full(size, int(Kind.LAUNCH))
        return self.intern((kind, np.full(size, process), thread, nvtx, frame))
