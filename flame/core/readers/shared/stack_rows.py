"""Build all stacks of a file at once: of rows that spell them out, or of a tree of calls.

Level by level, where all stacks of a depth are known once all rows have got there. `StackBuilder`
would search, and move, all that it knows for each level, which one row makes 10,000 times if it is
so deep.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, I8, Column, distinct
from flame.core.model.stacks import StackBuilder, StackTable

DEEPEST = 10_000
"""Frames of a stack in a file of stacks: deeper ones exist in broken files only, and every level
takes time and memory, however few bytes it is."""
_FRAME_BITS = 32

Tick = Callable[[], None]
"""Called between pieces of work; may raise to stop."""


def build_row_stacks(frames: I4, lengths: I8, tick: Tick) -> tuple[StackBuilder, I4]:
    """Build the stacks of rows; return a builder that holds them, and each row's id, i4[rows].

    ``frames`` are the frame ids of all rows one after another, outermost first; ``lengths`` is how
    many of them each row has.
    """
    deepest_first = np.argsort(-lengths, kind="stable").astype(np.int32)
    first = (np.cumsum(lengths) - lengths)[deepest_first]
    levels = _Levels()
    stack = np.zeros(len(lengths), np.int32)
    for level, rows in enumerate(_rows_by_level(lengths[deepest_first])):
        tick()
        stack[:rows] = levels.ids(stack[:rows], frames[first[:rows] + level])
    ids = np.empty(len(lengths), np.int32)
    ids[deepest_first] = stack
    return levels.build(), ids


def _rows_by_level(descending: I8) -> list[int]:
    """Count the rows that are longer than 0, than 1, and so on."""
    levels = np.arange(1, int(descending.max(initial=0)) + 1)
    longer: list[int] = (len(descending) - np.searchsorted(descending[::-1], levels)).tolist()
    return longer


def build_tree_stacks(
    parent: Column, frame: Column, depth: Column, tick: Tick
) -> tuple[StackBuilder, I4]:
    """Build the stacks of a tree's nodes; return a builder and each node's id, i4[nodes].

    ``parent`` is a node, that of a root is itself; ``depth`` of a root is 0, and its stack empty.
    """
    by_depth = np.argsort(depth, kind="stable")
    levels = _Levels()
    ids = np.zeros(len(depth), np.int32)
    for nodes in np.split(by_depth, np.cumsum(np.bincount(depth)))[1:-1]:
        tick()
        ids[nodes] = levels.ids(ids[parent[nodes]], frame[nodes])
    return levels.build(), ids


class _Levels:
    """Numbers stacks from 1 on, those of one depth at a time, by parent and then by frame."""

    def __init__(self) -> None:
        self._parents: list[I4] = [np.array([-1], np.int32)]
        self._frames: list[I4] = [np.array([-1], np.int32)]
        self._known = 1

    def ids(self, parents: Column, frames: Column) -> I4:
        """Return ids of ``parents``, all stacks of the level above, with ``frames`` on top."""
        wanted = parents.astype(np.int64) << _FRAME_BITS
        wanted |= frames
        keys, place = distinct(wanted)
        self._parents.append((keys >> _FRAME_BITS).astype(np.int32))
        self._frames.append((keys & ((1 << _FRAME_BITS) - 1)).astype(np.int32))
        ids = place.astype(np.int32)
        ids += self._known
        self._known += len(keys)
        return ids

    def build(self) -> StackBuilder:
        sizes = [len(parents) for parents in self._parents]
        depth = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        table = StackTable(np.concatenate(self._parents), np.concatenate(self._frames), depth)
        return StackBuilder.from_table(table)
