"""Apply the filters on stacks: show or hide whole stacks, cut them, hide frames in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from flame.core.columns import Bool
from flame.core.model.frames import FrameTable
from flame.core.projection.filters import (
    Filter,
    HideFrames,
    HideFramework,
    HideStacks,
    ShowFrom,
    ShowStacks,
    StackFilter,
)
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.matching import matching_frames

_HIDING = HideFrames | HideFramework


def filter_stacks(
    stacks: StackColumns, filters: Iterable[Filter], frames: FrameTable, text: Sequence[str]
) -> StackColumns:
    """Apply the stack filters in ``filters`` to ``stacks`` of ``frames``, which ``text`` names.

    Whole stacks are shown or hidden first, then those left are cut, then frames are hidden. Several
    `ShowFrom` must all match, and the stack begins where the last of them first has.
    """
    stack_filters = [filter_ for filter_ in filters if isinstance(filter_, StackFilter)]
    marks = _mark_frames(stacks, stack_filters, frames, text)
    for filter_, marked in marks:
        if isinstance(filter_, ShowStacks | ShowFrom):
            stacks = stacks.select(stacks.contain_any(marked))
        elif isinstance(filter_, HideStacks):
            stacks = stacks.select(~stacks.contain_any(marked))
    first = [marked for filter_, marked in marks if isinstance(filter_, ShowFrom)]
    hidden = [marked for filter_, marked in marks if isinstance(filter_, _HIDING)]
    if first:
        stacks = _cut_above(stacks, first)
    return _hide_frames(stacks, reduce(np.logical_or, hidden)) if hidden else stacks


def _mark_frames(
    stacks: StackColumns, filters: list[StackFilter], table: FrameTable, text: Sequence[str]
) -> list[tuple[StackFilter, Bool]]:
    """Mark for each filter the frames it matches, as `StackColumns.contain_any` takes them."""
    if not filters:
        return []
    used = np.zeros(len(text) + 1, bool)
    for step in stacks.frames:
        used[step] = True
    frames = np.flatnonzero(used[:-1])
    marks = []
    for filter_ in filters:
        marked = np.zeros(len(text) + 1, bool)
        if isinstance(filter_, HideFramework):
            marked[filter_.fits(table, frames)] = True
        else:
            marked[matching_frames(table, text, frames, filter_.compile())] = True
        marks.append((filter_, marked))
    return marks


def _cut_above(stacks: StackColumns, marks: list[Bool]) -> StackColumns:
    """Cut off what stands above the step by which each of ``marks`` has had its first match."""
    seen = np.zeros((len(marks), len(stacks.rows)), bool)
    kept = []
    for step in stacks.frames:
        seen |= [marked[step] for marked in marks]
        kept.append(np.where(seen.all(axis=0), step, -1))
    return StackColumns(stacks.rows, tuple(kept))


def _hide_frames(stacks: StackColumns, marked: Bool) -> StackColumns:
    frames = tuple(np.where(marked[step], -1, step) for step in stacks.frames)
    return StackColumns(stacks.rows, frames)
