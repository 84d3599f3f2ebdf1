"""The stacks of a projection as columns, one per step down, and what filters leave of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct
from flame.core.model.activities import Activities
from flame.core.model.profile import Profile
from flame.core.model.tree import Arrangement
from flame.core.projection.filters import (
    Filter,
    HideFrames,
    HideStacks,
    ShowFrom,
    ShowStacks,
    StackFilter,
)
from flame.core.projection.levels import STACK_LEVELS
from flame.core.regex import matching


@dataclass(frozen=True)
class Steps:
    """Stacks with the numbers ``rows`` (i8[n]), from the root down.

    ``frames`` holds for each step the frame id in every stack (i4[n] each), -1 for none.
    """

    rows: I8
    frames: tuple[Column, ...]

    def only(self, kept: Bool) -> Steps:
        """The stacks in ``kept`` (bool[n])."""
        if kept.all():
            return self
        return Steps(self.rows[kept], tuple(step[kept] for step in self.frames))

    def without_gaps(self) -> Steps:
        """The same stacks, each with its first frame at the first step, its second at the next."""
        packed = np.full((len(self.frames), len(self.rows)), -1, np.int32)
        depth = np.zeros(len(self.rows), np.int64)
        for step in self.frames:
            rows = np.flatnonzero(step >= 0)
            packed[depth[rows], rows] = step[rows]
            depth[rows] += 1
        return Steps(self.rows, tuple(packed[: depth.max(initial=0)]))

    def anywhere(self, marked: Bool) -> Bool:
        """Stacks with any frame in ``marked`` (bool[frame id + 1], the last for none), bool[n]."""
        found = np.zeros(len(self.rows), bool)
        for step in self.frames:
            found |= marked[step]
        return found


def steps(
    profile: Profile, table: Activities, kept: I8, levels: Iterable[str], shown: I4
) -> tuple[Column, ...]:
    """The steps of the groups ``kept`` under ``levels``; frames are those ``shown`` for them."""
    shown = np.append(shown, np.int32(-1))
    return tuple(shown[step] for step in _recorded(profile, table, kept, levels))


def _recorded(
    profile: Profile, table: Activities, kept: I8, levels: Iterable[str]
) -> Iterator[Column]:
    """For each step down the stack, the frame id (-1: none) of every kept group."""
    for level in levels:
        if level in STACK_LEVELS:
            used, place = distinct(getattr(table.groups, level)[kept].astype(np.int64))
            yield from (step[place] for step in table.stacks.paths(used).T)
        else:
            yield _single(profile, table, kept, level)


def _single(profile: Profile, table: Activities, kept: I8, level: str) -> Column:
    """Frame ids (-1: none) of a level that is one frame per group."""
    grouping, groups = profile.grouping, table.groups
    if level in ("kernel", "launch"):
        own: Column = groups.frame if level == "kernel" else groups.launch
        return own[kept]
    if level == "stream":
        return grouping.stream_of(groups.stream[kept])
    if level == "shapes":
        return table.stacks.innermost(grouping.shapes)[groups.nvtx[kept]]
    frames: I4 = getattr(grouping, level)
    index: I4 = groups.process if level == "rank" else getattr(groups, level)
    found: I4 = np.append(frames, np.int32(-1))[index[kept]]
    return found


def filtered(stacks: Steps, where: Iterable[Filter], text: tuple[str, ...]) -> Steps:
    """What the stack filters in ``where`` leave of ``stacks``, whose frames are called ``text``.

    Whole stacks are shown or hidden first, then those left are cut, then frames are hidden. Several
    `ShowFrom` must all match, and the stack begins where the last of them first has.
    """
    filters = [one for one in where if isinstance(one, StackFilter)]
    if not filters:
        return stacks
    marks = _marks(stacks, filters, text)
    for one, marked in marks:
        if isinstance(one, ShowStacks | ShowFrom):
            stacks = stacks.only(stacks.anywhere(marked))
        elif isinstance(one, HideStacks):
            stacks = stacks.only(~stacks.anywhere(marked))
    first = [marked for one, marked in marks if isinstance(one, ShowFrom)]
    hidden = [marked for one, marked in marks if isinstance(one, HideFrames)]
    if first:
        stacks = _from_first(stacks, first)
    return _without(stacks, reduce(np.logical_or, hidden)) if hidden else stacks


def _marks(
    stacks: Steps, filters: Iterable[StackFilter], text: tuple[str, ...]
) -> list[tuple[StackFilter, Bool]]:
    """For each filter the frames whose name it matches, as `Steps.anywhere` takes them."""
    used = np.zeros(len(text) + 1, bool)
    for step in stacks.frames:
        used[step] = True
    frames = np.flatnonzero(used[:-1])
    found = []
    for one in filters:
        marked = np.zeros(len(text) + 1, bool)
        marked[matching(text, frames, one.compile())] = True
        found.append((one, marked))
    return found


def _from_first(stacks: Steps, marks: list[Bool]) -> Steps:
    """Stacks from the step on by which each of ``marks`` has had its first match."""
    seen = np.zeros((len(marks), len(stacks.rows)), bool)
    kept = []
    for step in stacks.frames:
        seen |= [marked[step] for marked in marks]
        kept.append(np.where(seen.all(axis=0), step, -1))
    return Steps(stacks.rows, tuple(kept))


def _without(stacks: Steps, marked: Bool) -> Steps:
    return Steps(stacks.rows, tuple(np.where(marked[step], -1, step) for step in stacks.frames))


def arranged(stacks: Steps, arrangement: Arrangement) -> Steps:
    """``stacks`` with recursion collapsed and turned round as ``arrangement`` says."""
    frames = stacks.frames
    if arrangement.collapsed:
        frames = tuple(_collapsed(frames, len(stacks.rows)))
    return Steps(stacks.rows, frames[::-1] if arrangement.inverted else frames)


def _collapsed(frames: Iterable[Column], size: int) -> Iterator[Column]:
    """``frames`` without those that the step above them, of those that are any, has too."""
    above: Column = np.full(size, -1, np.int32)
    for step in frames:
        yield np.where(step == above, -1, step)
        above = np.where(step >= 0, step, above)
