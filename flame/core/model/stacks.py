"""Intern stacks in a prefix trie of frame ids: each call chain or NVTX path is one row."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct, order_by
from flame.core.lazy_dataclass import dataclass

EMPTY = 0


@dataclass(frozen=True)
class StackTable:
    """Hold stacks by id (their row). Row 0 is the empty stack; parents come before children.

    ``parent`` i4[n], ``frame`` i4[n] (-1 in row 0), ``depth`` i4[n] (0 in row 0).
    """

    parent: I4
    frame: I4
    depth: I4

    @classmethod
    def of_links(cls, parent: I4, frame: I4) -> StackTable:
        """Make the table of these columns, whose depths are not known."""
        return cls(parent, frame, stack_depths(parent))

    def __len__(self) -> int:
        return len(self.parent)

    def path(self, stack: int) -> list[int]:
        """List the frame ids of ``stack``, outermost first."""
        frames: list[int] = []
        while stack != EMPTY:
            frames.append(int(self.frame[stack]))
            stack = int(self.parent[stack])
        return frames[::-1]

    def paths(self, stacks: Column) -> I4:
        """List the frame ids of ``stacks``, i4[len(stacks), deepest]; -1 beyond their own depth."""
        current = np.asarray(stacks, np.int64)
        deepest = int(self.depth[current].max(initial=0))
        result = np.empty((deepest, len(current)), np.int32)
        for level in range(deepest, 0, -1):
            here = self.depth[current] == level
            result[level - 1] = np.where(here, self.frame[current], -1)
            current = np.where(here, self.parent[current], current)
        return result.T

    def contain_any(self, frames: Bool) -> Bool:
        """Tell which stacks have a frame that is marked in ``frames`` (bool[frame id]), bool[n]."""
        result = np.zeros(len(self), bool)
        for rows in self.by_depth() if frames.any() else ():
            result[rows] = frames[self.frame[rows]] | result[self.parent[rows]]
        return result

    def innermost(self, values: I4) -> I4:
        """Find, for every stack, the innermost frame's ``values[frame]`` that is >= 0, else -1."""
        result = np.full(len(self), -1, np.int32)
        for rows in self.by_depth() if (values >= 0).any() else ():
            own = values[self.frame[rows]]
            result[rows] = np.where(own >= 0, own, result[self.parent[rows]])
        return result

    def by_depth(self) -> Iterable[I8]:
        """List the rows of depth 1, 2, …: parents come before their children."""
        order = order_by([self.depth])
        bounds = np.cumsum(np.bincount(self.depth))
        return [order[low:high] for low, high in itertools.pairwise(bounds)]


class StackBuilder:
    """Intern (parent stack, frame) pairs, whole columns at a time."""

    def __init__(self) -> None:
        self._parent: list[I4] = [np.array([-1], np.int32)]
        self._frame: list[I4] = [np.array([-1], np.int32)]
        self._keys: I8 = np.zeros(0, np.int64)
        self._ids: I4 = np.zeros(0, np.int32)
        self._size = 1
        self._table: StackTable | None = None

    @classmethod
    def from_table(cls, table: StackTable) -> StackBuilder:
        """Make a builder that goes on where ``table`` ends; its stacks are sorted when needed."""
        builder = cls()
        builder._table, builder._size = table, len(table)
        return builder

    def __len__(self) -> int:
        return self._size

    def extend(self, parents: Column, frames: Column) -> I4:
        """Put ``frames`` on top of ``parents`` and return the ids, i4[n]; new stacks are added."""
        keys = (np.asarray(parents, np.int64) << 32) | np.asarray(frames, np.int64)
        wanted, place = distinct(keys)
        return self._lookup(wanted)[place]

    def add_path(self, frames: Iterable[int], base: int = EMPTY) -> int:
        """Add the stack of ``frames``, outermost first, on top of ``base``, and return its id."""
        for frame in frames:
            base = int(self.extend(np.array([base]), np.array([frame]))[0])
        return base

    def absorb(self, table: StackTable, frames: I4) -> I4:
        """Add all stacks of ``table``; return their ids, i4; ``frames`` are ids of its frames."""
        ids = np.zeros(len(table), np.int32)
        for rows in table.by_depth():
            ids[rows] = self.extend(ids[table.parent[rows]], frames[table.frame[rows]])
        return ids

    def _lookup(self, wanted: I8) -> I4:
        self._index_table()
        at = np.searchsorted(self._keys, wanted)
        present = np.zeros(len(wanted), bool)
        inside = at < len(self._keys)
        present[inside] = self._keys[at[inside]] == wanted[inside]
        ids = np.empty(len(wanted), np.int32)
        ids[present] = self._ids[at[present]]
        if not present.all():
            ids[~present] = self._add(wanted[~present], at[~present])
        return ids

    def _index_table(self) -> None:
        """Make the keys of the stacks that were there from the beginning."""
        if self._table is None:
            return
        parent, frame = self._table.parent, self._table.frame
        self._parent, self._frame, self._table = [parent], [frame], None
        keys = (parent[1:].astype(np.int64) << 32) | frame[1:]
        order = np.argsort(keys)
        self._keys, self._ids = keys[order], (order + 1).astype(np.int32)

    def _add(self, keys: I8, at: I8) -> I4:
        ids = np.arange(self._size, self._size + len(keys), dtype=np.int32)
        self._size += len(keys)
        self._parent.append((keys >> 32).astype(np.int32))
        self._frame.append((keys & 0xFFFFFFFF).astype(np.int32))
        self._keys = np.insert(self._keys, at, keys)
        self._ids = np.insert(self._ids, at, ids)
        return ids

    def build(self) -> StackTable:
        """Build the table of the stacks added so far."""
        if self._table is not None:
            return self._table
        return StackTable.of_links(np.concatenate(self._parent), np.concatenate(self._frame))


def stack_depths(parent: I4) -> I4:
    """Depth of every row by pointer doubling: log2(deepest) passes, however deep."""
    depth = (parent >= 0).astype(np.int32)
    above = np.maximum(parent, 0)
    while above.any():
        depth = depth + depth[above]
        above = above[above]
    return depth
