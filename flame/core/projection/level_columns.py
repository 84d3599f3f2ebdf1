"""Lay out the stacks of a projection as columns, one per step down from the root."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.profile import Profile
from flame.core.model.tree import TreeLayout
from flame.core.projection.levels import MADE_LEVELS, PART_LEVELS, STACK_LEVELS
from flame.core.projection.modules import modules_among
from flame.core.projection.phases import phase_frames


@dataclass(frozen=True)
class StackColumns:
    """Hold stacks with the numbers ``rows`` (integers[n]), from the root down.

    ``frames`` holds for each step the frame id in every stack (i4[n] each), -1 for none.
    """

    rows: Column
    frames: tuple[Column, ...]

    def select(self, kept: Bool) -> StackColumns:
        """Keep the stacks in ``kept`` (bool[n])."""
        if kept.all():
            return self
        return StackColumns(self.rows[kept], tuple(step[kept] for step in self.frames))

    def rename(self, shown: I4) -> StackColumns:
        """Put the frame that each is ``shown`` as (i4[frames]) in its place."""
        shown = np.append(shown, np.int32(-1))
        return StackColumns(self.rows, tuple(shown[step] for step in self.frames))

    def close_gaps(self) -> StackColumns:
        """Move the frames of each stack up to the first steps, so that none is missing between."""
        steps = itertools.pairwise(self.frames)
        if not any(((above < 0) & (below >= 0)).any() for above, below in steps):
            return self
        packed = np.full((len(self.frames), len(self.rows)), -1, np.int32)
        depth = np.zeros(len(self.rows), np.int64)
        for step in self.frames:
            rows = np.flatnonzero(step >= 0)
            packed[depth[rows], rows] = step[rows]
            depth[rows] += 1
        return StackColumns(self.rows, tuple(packed[: depth.max(initial=0)]))

    def contain_any(self, marked: Bool) -> Bool:
        """Tell which stacks have a frame in ``marked`` (bool[frame id + 1], the last for none)."""
        containing = np.zeros(len(self.rows), bool)
        for step in self.frames:
            containing |= marked[step]
        return containing


def level_columns(
    profile: Profile, table: Activities, kept: I8, levels: Iterable[str], shown: I4
) -> list[Column | str]:
    """Lay out ``levels`` for the groups ``kept``: frame ids (i4[kept]), a column per step.

    Frames are those ``shown`` for the recorded ones. A level of parts is not known per group: its
    name stands in its place.
    """
    shown = np.append(shown, np.int32(-1))
    columns: list[Column | str] = []
    for level in levels:
        if level in PART_LEVELS:
            columns.append(level)
        else:
            columns += (shown[step] for step in _recorded_frames(profile, table, kept, level))
    return columns


def _recorded_frames(profile: Profile, table: Activities, kept: I8, level: str) -> Iterator[Column]:
    """For each step of ``level`` the frame id (-1: none) of every kept group."""
    if level in STACK_LEVELS:
        yield from _stack_frames(table, getattr(table.groups, level)[kept])
    elif level in MADE_LEVELS:
        yield from _made_frames(profile, table, kept, level)
    else:
        yield _single_frames(profile, table, kept, level)


def _stack_frames(table: Activities, stacks: Column) -> Iterator[Column]:
    used, place = distinct(stacks.astype(np.int64))
    yield from (step[place] for step in table.stacks.paths(used).T)


def _made_frames(profile: Profile, table: Activities, kept: I8, level: str) -> Iterator[Column]:
    """The steps of nested functions and ranges; or the modules among them."""
    groups = table.groups
    nested = (groups.python, groups.nvtx) if groups.nested is None else (groups.nested,)
    steps = (step for stacks in nested for step in _stack_frames(table, stacks[kept]))
    if level == "nested":
        yield from steps
    else:
        modules = modules_among(profile.frames)
        yield from (np.where(modules[step], step, np.int32(-1)) for step in steps)


def _single_frames(profile: Profile, table: Activities, kept: I8, level: str) -> Column:
    """Frame ids (-1: none) of a level that is one frame per group."""
    grouping, groups = profile.grouping, table.groups
    if level in ("kernel", "launch"):
        own: Column = groups.frame if level == "kernel" else groups.launch
        return own[kept]
    if level == "phase":
        return phase_frames(profile, table)[kept]
    if level in ("cause", "pool"):
        found: I4 | None = getattr(groups, level)
        return np.full(len(kept), -1, np.int32) if found is None else found[kept]
    if level == "category":
        return np.append(grouping.category, np.int32(-1))[groups.frame[kept]]
    if level == "stream":
        return grouping.stream_of(groups.stream[kept])
    if level == "shapes":
        return table.stacks.innermost(grouping.shapes)[groups.nvtx[kept]]
    frames: I4 = getattr(grouping, level)
    index: I4 = groups.process if level == "rank" else getattr(groups, level)
    column: I4 = np.append(frames, np.int32(-1))[index[kept]]
    return column


def arrange_stacks(stacks: StackColumns, layout: TreeLayout) -> StackColumns:
    """Collapse recursion in ``stacks`` and turn them round as ``layout`` says."""
    frames = stacks.frames
    if layout.collapsed:
        frames = tuple(_collapse(frames, len(stacks.rows)))
    return StackColumns(stacks.rows, frames[::-1] if layout.inverted else frames)


def _collapse(frames: Iterable[Column], size: int) -> Iterator[Column]:
    """Leave out each frame that equals the next frame above it; steps without one are skipped."""
    above: Column = np.full(size, -1, np.int32)
    for step in frames:
        yield np.where(step == above, -1, step)
        above = np.where(step >= 0, step, above)
