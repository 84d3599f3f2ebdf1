"""Name the stacks and groups of a table by what they are, without who ran them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import Bool, Column
from flame.core.model.activities import Activities
from flame.core.model.frames import FrameTable
from flame.core.model.stacks import EMPTY, StackTable
from flame.core.rank_summary.content_hash import Hashes, hash_frames, hash_numbers, hash_rows
from flame.core.rank_summary.summary import FRAMES, STACKS


class HashedGroups(NamedTuple):
    """Hold the hashes of the stacks of a table (zeros of the empty one), and of its groups."""

    stack: Hashes
    group: Hashes


def hash_used_frames(frames: FrameTable, tables: Sequence[Activities]) -> Hashes:
    """Hash those of ``frames`` that ``tables`` refer to; zeros of others, and of none, the last."""
    used = np.zeros(len(frames) + 1, bool)
    for table in tables:
        used[table.stacks.frame] = True
        for name in FRAMES:
            used[getattr(table.groups, name)] = True
    used[-1] = False
    found = np.zeros((len(used), 2), np.uint64)
    found[used] = hash_frames(frames[at] for at in np.flatnonzero(used).tolist())
    return found


def hash_table(table: Activities, frame_hash: Hashes, host: bool) -> HashedGroups:
    """Hash the groups of ``table``, the ``host``'s or a GPU's."""
    groups = table.groups
    stack = hash_stacks(table.stacks, frame_hash)
    stacks = [stack[getattr(groups, name)] for name in STACKS]
    frames = [frame_hash[getattr(groups, name)] for name in FRAMES]
    group = hash_groups(groups.kind, groups.launched, np.full(len(groups), host), stacks, frames)
    return HashedGroups(stack, group)


def hash_stacks(stacks: StackTable, frame_hash: Hashes) -> Hashes:
    """Hash ``stacks`` by their frames; zeros of the empty one."""
    found = np.zeros((len(stacks), 2), np.uint64)
    for rows in stacks.by_depth():
        found[rows] = hash_rows([found[stacks.parent[rows]], frame_hash[stacks.frame[rows]]])
    return found


def hash_groups(
    kind: Column, launched: Column, host: Column, stacks: Sequence[Hashes], frames: Sequence[Hashes]
) -> Hashes:
    """Hash groups by what they are, and by the hashes of their `STACKS` and `FRAMES`."""
    sort = launched.astype(np.int64) + 2 * host.astype(np.int64)
    return hash_rows([hash_numbers(kind), hash_numbers(sort), *stacks, *frames])


def used_stacks(table: Activities, groups: Column) -> Bool:
    """Mark the stacks of ``groups`` of ``table`` and all those above them, bool[stacks]."""
    stacks, used = table.stacks, np.zeros(len(table.stacks), bool)
    for name in STACKS:
        used[getattr(table.groups, name)[groups]] = True
    for rows in reversed(list(stacks.by_depth())):
        used[stacks.parent[rows[used[rows]]]] = True
    used[EMPTY] = False
    return used
