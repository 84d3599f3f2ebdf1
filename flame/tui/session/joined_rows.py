"""Work out which row every frame is shown in: the frames of a closed chain share one."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.analysis.chains import Chains, find_chains
from flame.core.columns import I4, I8, Bool, order_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree


class OpenChains(NamedTuple):
    """Which chains of a tree are open: ``everything`` or nothing, ``but`` some.

    Those are named by their first node.
    """

    everything: bool = False
    but: frozenset[int] = frozenset()

    def switched(self, first: int) -> OpenChains:
        """Open the chain that begins with ``first``, or close it."""
        return self._replace(but=self.but ^ {first})


ALL_CLOSED = OpenChains()
ALL_OPEN = OpenChains(everything=True)


@dataclass(frozen=True)
class JoinedRows:
    """The rows of ``tree`` with the chains that are ``opened``; ``known`` are all its chains."""

    tree: StackTree
    opened: OpenChains = ALL_CLOSED
    known: Chains | None = None

    def reopened(self, opened: OpenChains) -> JoinedRows:
        """Return the rows with other chains open."""
        return JoinedRows(self.tree, opened, self.chains)

    @cached_property
    def chains(self) -> Chains:
        """The chains of the tree, open or closed."""
        return find_chains(self.tree) if self.known is None else self.known

    @cached_property
    def closed(self) -> Bool:
        """Which of the chains are closed, bool[chains]."""
        closed = np.full(len(self.chains), not self.opened.everything)
        but = self.chains.of[list(self.opened.but)]
        closed[but[but >= 0]] ^= True
        return closed

    @cached_property
    def first(self) -> I4:
        """First frame of the closed chain that each node is in, else the node itself, i4[n]."""
        chains, length = self.chains, np.diff(self.chains.bounds)
        inside = np.repeat(self.closed, length)
        first = np.arange(len(self.tree), dtype=np.int32)
        first[chains.nodes[inside]] = np.repeat(chains.first[self.closed], length[self.closed])
        return first

    @cached_property
    def number(self) -> I4:
        """The number of rows above each node, i4[n]."""
        size, end = len(self.tree), self.tree.end
        saved = np.flatnonzero(self.first != np.arange(size))
        if not len(saved):
            return self.tree.depth
        # Whatever is below a frame that takes no row is one row higher.
        step = np.zeros(size + 1, np.int32)
        step[saved] = 1
        step -= np.bincount(end[saved], minlength=size + 1).astype(np.int32)
        number: I4 = self.tree.depth - np.cumsum(step[:-1], dtype=np.int32)
        return number

    @cached_property
    def rows(self) -> tuple[I8, ...]:
        """Nodes of each row, left to right; of a closed chain the first."""
        if self.number is self.tree.depth:
            return self.tree.rows
        shown = np.flatnonzero(self.first == np.arange(len(self.tree)))
        number = self.number[shown]
        order = order_by([number])
        return tuple(np.split(shown[order], np.cumsum(np.bincount(number))[:-1]))

    def members(self, node: int) -> I8:
        """Return the frames that share the row of ``node`` as one: a closed chain, or itself."""
        chain = int(self.chains.of[node])
        if chain >= 0 and self.closed[chain]:
            return self.chains.members(chain)
        return np.array([node])

    def marked(self, mask: Bool) -> Bool:
        """Mark, instead of frames in closed chains, the first of the chain, bool[n]."""
        found = np.flatnonzero(mask & (self.first != np.arange(len(mask))))
        marked = mask.copy()
        marked[found] = False
        marked[self.first[found]] = True
        return marked
