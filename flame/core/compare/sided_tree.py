"""Hold a tree with what each side of a comparison has of its nodes, also of trees made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.compare.amounts import Amounts
from flame.core.compare.basis import Basis
from flame.core.compare.changes import Changes, Whole, side_sums
from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import BASE, NEW
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree, subtree_sums

_BOTH = (BASE, NEW)
_SUMS = ("_total", "_count", "changes")


@dataclass(frozen=True, eq=False)
class SidedTree:
    """Hold ``tree``, however wide, with ``own`` and ``own_count`` of both sides, i8[2, nodes].

    ``whole`` i8[2] is what shares of each side are of.
    """

    tree: StackTree
    basis: Basis
    own: I8
    own_count: I8
    whole: I8

    @property
    def amounts(self) -> Amounts:
        """How values are written."""
        return Amounts(self.tree.metric.unit, self.basis.kind)

    @cached_property
    def changes(self) -> Changes:
        """The changes of all nodes, with what is below them."""
        return self._changes(self._total, self._count)

    @cached_property
    def own_changes(self) -> Changes:
        """The changes of what ends exactly at each node."""
        return self._changes(self.own, self.own_count)

    @property
    def largest(self) -> Whole:
        """All that is compared, on the side that has more of it."""
        root = self._changes(self.whole[:, None], np.ones((2, 1), np.int64))
        return Whole.of(root, self.basis.kind)

    @cached_property
    def _total(self) -> I8:
        return np.stack([subtree_sums(own, self.tree.end) for own in self.own])

    @cached_property
    def _count(self) -> I8:
        return np.stack([subtree_sums(own, self.tree.end) for own in self.own_count])

    def _changes(self, total: I8, count: I8) -> Changes:
        return side_sums(self.basis, _BOTH, total, count, self.whole)

    def sums(self, nodes: I8, place: I8, size: int) -> Changes:
        """The changes of ``size`` sums over ``nodes``, each at a ``place`` from 0 on."""
        return self._summed(self._total, self._count, nodes, place, size)

    def own_sums(self, place: I8, size: int) -> Changes:
        """The changes of ``size`` sums of what all nodes have themselves, each at a ``place``."""
        return self._summed(self.own, self.own_count, np.arange(len(self.tree)), place, size)

    def _summed(self, total: I8, count: I8, nodes: I8, place: I8, size: int) -> Changes:
        summed = [
            np.stack([sum_by(place, side[nodes], size) for side in sides])
            for sides in (total, count)
        ]
        return self._changes(summed[0], summed[1])

    def beside(self, tree: StackTree) -> SidedTree:
        """Put the sides beside ``tree``, which differs in how wide it is: sums stay as they are."""
        made = replace(self, tree=tree)
        made.__dict__.update({name: getattr(self, name) for name in _SUMS})
        return made

    def derive(self, make: Callable[[StackTree], StackTree]) -> SidedTree:
        """Make another tree of this one, with what each side has of its nodes.

        ``make`` must put nodes in an order that does not depend on counts, which it adds up.
        """
        made = make(self.tree)
        own, count = (np.stack([*self._made(make, sides)]) for sides in (self.own, self.own_count))
        return replace(self, tree=made, own=own, own_count=count)

    def _made(self, make: Callable[[StackTree], StackTree], sides: I8) -> Iterable[I8]:
        for side in sides:
            yield make(replace(self.tree, own_count=side)).own_count


def sided(comparison: Comparison, tree: StackTree) -> SidedTree:
    """Put the two sides of ``comparison`` beside ``tree``, its union in any width."""
    return _sided(comparison).beside(tree)


@kept
def _sided(comparison: Comparison) -> SidedTree:
    side_of_run, union = np.array(comparison.sides.side_of_run), comparison.union
    own, count = (
        np.stack([column[side_of_run == side].sum(axis=0) for side in _BOTH])
        for column in (union.own, union.own_count)
    )
    divisor = np.array(comparison.basis.divisor)
    divisors = tuple(float(divisor[side_of_run == side].sum()) for side in _BOTH)
    basis = replace(comparison.basis, divisor=divisors)
    return SidedTree(union.tree, basis, own, count, own.sum(axis=1))
