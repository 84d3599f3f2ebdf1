"""Join stacks to new ones, and mark the frames that were open elsewhere."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameBuilder
from flame.core.model.stacks import StackBuilder

Mark = tuple[str, str]
"""Entry of `Frame.extra` on a frame that does not stand where it was open."""

CAPTURED: Mark = ("captured", "yes")
FORWARD: Mark = ("forward", "yes")
PLACED: Mark = ("placed", "by GPU time")
SEPARATING_MARKS = (CAPTURED, PLACED)
"""Marks that make a frame another frame. Not `FORWARD`: a backward pass and the forward pass that
caused it are to add up in one place."""


@dataclass(frozen=True)
class StackJoiner:
    """Make new stacks of the ``stacks`` built so far."""

    frames: FrameBuilder
    stacks: StackBuilder

    def mark(self, stacks: Column, mark: Mark) -> I4:
        """Put ``mark`` on all frames of ``stacks``."""
        kinds, place = distinct(stacks.astype(np.int64))
        result = np.zeros(len(kinds), np.int64)
        for step in self.stacks.build().paths(kinds).T:
            rows = np.flatnonzero(step >= 0)
            result[rows] = self.stacks.extend(result[rows], self._mark_frames(step[rows], mark))
        return result[place].astype(np.int32)

    def join(self, outer: Column, inner: Column) -> I4:
        """Put the frames of the stacks ``inner`` on top of the stacks ``outer``."""
        return join_stacks(self.stacks, outer, inner)

    def join_below(self, outer: Column, inner: Column, common: Column, mark: Mark | None) -> I4:
        """Mark the stacks ``outer``, if at all, and put the frames of ``inner`` on top of them.

        Frames at the outer end of both are not repeated, and not marked, where ``common`` is true.
        """
        first, place = unique_rows([outer, inner, common])
        table = self.stacks.build()
        above, own = table.paths(outer[first]), table.paths(inner[first])
        shared = np.where(common[first], count_shared(above, own), 0)
        result = np.zeros(len(first), np.int64)
        for depth, step in enumerate(above.T):
            rows = np.flatnonzero(step >= 0)
            plain = step[rows]
            marked = self._mark_frames(plain, mark) if mark else plain
            frames = np.where(depth < shared[rows], plain, marked)
            result[rows] = self.stacks.extend(result[rows], frames)
        return put_beyond(self.stacks, result, own, shared)[place]

    def _mark_frames(self, frames: Column, mark: Mark) -> I8:
        """Ids of ``frames`` with ``mark``."""
        used, place = distinct(frames.astype(np.int64))
        plain = [self.frames[frame] for frame in used.tolist()]
        marked = [self.frames.add(frame._replace(extra=(*frame.extra, mark))) for frame in plain]
        ids: I8 = np.array(marked, np.int64)[place]
        return ids


def join_stacks(stacks: StackBuilder, outer: Column, inner: Column) -> I4:
    """Put the frames of the stacks ``inner`` on top of the stacks ``outer``."""
    pairs, place = distinct((outer.astype(np.int64) << 32) | inner.astype(np.int64))
    paths = stacks.build().paths(pairs & 0xFFFFFFFF)
    return put_beyond(stacks, pairs >> 32, paths, np.zeros(len(pairs), np.int64))[place]


def put_beyond(stacks: StackBuilder, base: Column, paths: I4, shared: I8) -> I4:
    """Put the frames of ``paths`` (rows as of `StackTable.paths`) on top of the stacks ``base``.

    Of each without the first ones, as many as are ``shared``.
    """
    result = base.copy()
    for depth, step in enumerate(paths.T):
        rows = np.flatnonzero((step >= 0) & (depth >= shared))
        result[rows] = stacks.extend(result[rows], step[rows])
    return result.astype(np.int32)


def count_shared(above: I4, own: I4) -> I8:
    """How many frames two stacks (rows of paths) have in common at their outer ends."""
    width = min(above.shape[1], own.shape[1])
    equal = (above[:, :width] == own[:, :width]) & (above[:, :width] >= 0)
    shared: I8 = np.cumprod(equal, axis=1, dtype=np.int64).sum(axis=1)
    return shared
