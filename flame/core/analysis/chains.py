"""Find the chains of a tree: frames that each hand nearly all they hold on to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flame.core.columns import I4, I8, Bool
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.core.units import format_count

LEAST = 3
"""Frames from which on a chain is worth a row less."""

_LOST = 100
"""At most one part in so many of what the first frame of a chain holds leaves it on the way."""

_JOINED = (Kind.PYTHON, Kind.NATIVE, Kind.NVTX, Kind.FRAME)
"""Kinds of which there are chains: frames of any other kind are what one looks for."""

_MODULE = "nn.Module: "
SIGN = "›"


@dataclass(frozen=True)
class Chains:
    """Hold the chains of a tree, each of frames of one kind.

    Chain ``k`` is ``nodes[bounds[k]:bounds[k + 1]]`` (i8 both), from its first frame down;
    ``of`` (i4[n]) is the chain of every node, -1 where it is in none.
    """

    nodes: I8
    bounds: I8
    of: I4

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def first(self) -> I8:
        """First node of every chain."""
        return self.nodes[self.bounds[:-1]]

    def members(self, chain: int) -> I8:
        """Return the nodes of ``chain``, from its first frame down."""
        return self.nodes[self.bounds[chain] : self.bounds[chain + 1]]

    def around(self, node: int) -> I8:
        """Return the nodes of the chain that ``node`` is in; none where it is in no chain."""
        chain = int(self.of[node])
        return self.members(chain) if chain >= 0 else self.nodes[:0]


def find_chains(tree: StackTree) -> Chains:
    """Find the chains of ``tree``, from the root down.

    A chain goes on to a child of the same kind as long as that holds at least 99 % of what the
    first frame of the chain holds; it has three frames or more. Work grows with the tree, and
    with the logarithm of the longest chain.
    """
    nodes, path = _paths(_goes_on(tree))
    begins = np.flatnonzero(_begins(tree.total[nodes], path))
    length = np.diff(np.append(begins, len(nodes)))
    kept = np.flatnonzero(length >= LEAST)
    inside = np.repeat(length >= LEAST, length)
    of = np.full(len(tree), -1, np.int32)
    of[nodes[inside]] = np.repeat(np.arange(len(kept)), length[kept])
    return Chains(nodes[inside], np.concatenate([[0], np.cumsum(length[kept])]), of)


def _goes_on(tree: StackTree) -> I4:
    """The parent of every node of its kind that it has nearly all of; itself of all others."""
    total, node = tree.total, np.arange(len(tree), dtype=np.int32)
    above, kind = total[tree.parent], tree.frames.kind[tree.frame]
    # Of two children only one can have more than half of what is above both.
    follows = (above - total <= above // _LOST) & (total > 0)
    follows &= (kind == kind[tree.parent]) & np.isin(kind, _JOINED)
    follows[0] = False
    return np.where(follows, tree.parent, node)


def _paths(above: I4) -> tuple[I8, I8]:
    """Nodes linked by ``above``, those of one path side by side from the top, and their path."""
    start, inner = above.copy(), np.flatnonzero(above != np.arange(len(above)))
    while True:
        further = start[start[inner]]
        if np.array_equal(further, start[inner]):
            break
        start[inner] = further
    linked = np.zeros(len(above), bool)
    linked[inner] = linked[start[inner]] = True
    nodes = np.flatnonzero(linked)
    # A child has a higher number than its parent.
    nodes = nodes[np.argsort(start[nodes], kind="stable")]
    return nodes, start[nodes].astype(np.int64)


def _begins(total: I8, path: I8) -> Bool:
    """Where chains begin along each ``path``: where too much of the first frame has left."""
    place = np.arange(len(path))
    begins = np.append(True, path[1:] != path[:-1])[: len(path)]
    while True:
        first = total[np.maximum.accumulate(np.where(begins, place, 0))]
        late = first - total > first // _LOST
        if not late.any():
            return begins
        begins |= late & ~np.append(False, late[:-1])


# Words


def telling(names: Sequence[str]) -> int:
    """Choose which of the ``names`` of a chain says most: the last module's, or else the last."""
    modules = (place for place in range(len(names) - 1, -1, -1) if names[place].startswith(_MODULE))
    return next(modules, len(names) - 1)


def spell_chain(names: Sequence[str], shown: Sequence[int]) -> list[str]:
    """List those of ``names`` that are ``shown`` (places, ascending), and what is left out.

    ``["main", "… 30 frames", "forward"]``; where more is left out than one stretch of several
    frames, their number is not said.
    """
    edges = [-1, *shown, len(names)]
    gaps = [after - before - 1 for before, after in pairwise(edges)]
    single = sum(gap > 0 for gap in gaps) == 1
    words = []
    for gap, place in zip(gaps, edges[1:], strict=True):
        if gap:
            words.append(f"… {frames_word(gap)}" if single and gap > 1 else "…")
        words += names[place : place + 1]
    return words


def frames_word(number: int) -> str:
    """Write ``30 frames``."""
    return f"{format_count(number)} frames"
