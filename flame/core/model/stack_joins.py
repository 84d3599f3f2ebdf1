"""Stacks put together of several, with marks on the frames that were open elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, unique_rows
from flame.core.model.frames import FrameBuilder
from flame.core.model.stacks import StackBuilder

Mark = tuple[str, str]
"""What `Frame.extra` says of a frame that does not stand where it was open."""

CAPTURED: Mark = ("captured", "yes")
FORWARD: Mark = ("forward", "yes")
PLACED: Mark = ("placed", "by GPU time")
APART = (CAPTURED, PLACED)
"""Marks that keep a frame apart from the same one without: a backward pass and what caused it are
to add up in one place."""


@dataclass(frozen=True)
class Joiner:
    """Makes new stacks of the known ones."""

    frames: FrameBuilder
    stacks: StackBuilder

    def marked(self, stacks: Column, mark: Mark) -> I4:
        """``stacks`` with ``mark`` on all their frames."""
        kinds, place = distinct(stacks.astype(np.int64))
        result = np.zeros(len(kinds), np.int64)
        for step in self.stacks.build().paths(kinds).T:
            rows = np.flatnonzero(step >= 0)
            result[rows] = self.stacks.extend(result[rows], self._mark(step[rows], mark))
        return result[place].astype(np.int32)

    def joined(self, outer: Column, inner: Column) -> I4:
        """Stacks ``outer`` with the frames of ``inner`` on top."""
        pairs, place = distinct((outer.astype(np.int64) << 32) | inner.astype(np.int64))
        result = pairs >> 32
        for step in self.stacks.build().paths(pairs & 0xFFFFFFFF).T:
            rows = np.flatnonzero(step >= 0)
            result[rows] = self.stacks.extend(result[rows], step[rows])
        return result[place].astype(np.int32)

    def below(self, outer: Column, inner: Column, common: Column, mark: Mark) -> I4:
        """Stacks ``outer``, marked, and those of ``inner`` on top.

        Frames at the outer end of both are not repeated, and not marked, where ``common`` is true.
        """
        first, place = unique_rows([outer, inner, common])
        table = self.stacks.build()
        above, own = table.paths(outer[first]), table.paths(inner[first])
        shared = np.where(common[first], _shared(above, own), 0)
        result = np.zeros(len(first), np.int64)
        for depth, step in enumerate(above.T):
            rows = np.flatnonzero(step >= 0)
            plain, marked = step[rows], self._mark(step[rows], mark)
            frames = np.where(depth < shared[rows], plain, marked)
            result[rows] = self.stacks.extend(result[rows], frames)
        for depth, step in enumerate(own.T):
            rows = np.flatnonzero((step >= 0) & (depth >= shared))
            result[rows] = self.stacks.extend(result[rows], step[rows])
        return result[place].astype(np.int32)

    def _mark(self, frames: Column, mark: Mark) -> I8:
        """Ids of ``frames`` with ``mark``."""
        known, place = distinct(frames.astype(np.int64))
        plain = [self.frames[frame] for frame in known.tolist()]
        marked = [self.frames.add(one._replace(extra=(*one.extra, mark))) for one in plain]
        ids: I8 = np.array(marked, np.int64)[place]
        return ids


def _shared(one: I4, other: I4) -> I8:
    """How many frames two stacks (rows of paths) have in common at their outer ends."""
    width = min(one.shape[1], other.shape[1])
    equal = (one[:, :width] == other[:, :width]) & (one[:, :width] >= 0)
    shared: I8 = np.cumprod(equal, axis=1, dtype=np.int64).sum(axis=1)
    return shared
