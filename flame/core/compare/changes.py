"""Measure how much each node of a union tree has changed from base to new."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, Column
from flame.core.compare.basis import Basis
from flame.core.compare.sides import BASE, NEW
from flame.core.compare.union_tree import UnionTree
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree

Width = Literal["new", "base", "both"]

_HELD = 0.8
"""The part of a change that the deepest frame has that the change is told of."""


@dataclass(frozen=True, eq=False)
class Side:
    """Sum up one side: ``total`` and ``count``, i8[n], and what they are divided by, f8[n]."""

    total: I8
    count: I8
    divisor: F8

    @cached_property
    def value(self) -> F8:
        """The total on the basis of the comparison, f8[n]; 0 where there is nothing."""
        return np.divide(self.total, self.divisor, out=np.zeros(len(self.total)), where=self._has)

    @cached_property
    def scaled_count(self) -> F8:
        """The number of activities on the same basis, f8[n]."""
        return np.divide(self.count, self.divisor, out=np.zeros(len(self.total)), where=self._has)

    def at(self, places: Column) -> Side:
        """Choose those of ``places``."""
        return Side(self.total[places], self.count[places], self.divisor[places])

    @cached_property
    def mean(self) -> F8:
        """The mean of an activity, f8[n]; 0 where there is none."""
        return np.divide(
            self.total, self.count, out=np.zeros(len(self.total)), where=self.count > 0
        )

    @cached_property
    def is_there(self) -> Bool:
        """Mark what this side has anything of, bool[n]: parts of activities may count as none."""
        marks: Bool = (self.count > 0) | (self.total != 0)
        return marks

    @property
    def _has(self) -> Bool:
        return self.divisor > 0


@dataclass(frozen=True, eq=False)
class Changes:
    """Say how values of ``base`` differ from those of ``new``: of nodes, rows or frames, n each.

    ``delta`` is new - base: positive where it grew. It is the sum of ``by_count``, what more or
    fewer activities of the base's mean duration take, and ``by_duration``, what the new activities
    take longer each.
    """

    base: Side
    new: Side

    def at(self, places: Column) -> Changes:
        """Choose those of ``places``, ids or bool[n]."""
        return Changes(self.base.at(places), self.new.at(places))

    @cached_property
    def delta(self) -> F8:
        """How much the value grew, f8[n]."""
        return self.new.value - self.base.value

    @cached_property
    def ratio(self) -> F8:
        """The change as a part of the base, f8[n]: inf of what is new, 0 where nothing is."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.delta / self.base.value, nan=0.0, posinf=np.inf)

    @cached_property
    def by_count(self) -> F8:
        """The part of ``delta`` that is due to the number of activities, f8[n]."""
        usual = np.where(self.base.count > 0, self.base.mean, self.new.mean)
        return (self.new.scaled_count - self.base.scaled_count) * usual

    @cached_property
    def by_duration(self) -> F8:
        """The part of ``delta`` that is due to the duration of each activity, f8[n]."""
        return self.delta - self.by_count

    @cached_property
    def is_new(self) -> Bool:
        """Mark what the base has nothing of, bool[n]."""
        marks: Bool = ~self.base.is_there & self.new.is_there
        return marks

    @cached_property
    def is_gone(self) -> Bool:
        """Mark what the new side has nothing of, bool[n]."""
        marks: Bool = ~self.new.is_there & self.base.is_there
        return marks


class Limits(NamedTuple):
    """Say from where on a change counts: a part of the base and a part of the root, 0..1."""

    of_base: float
    of_root: float


USUAL_LIMITS = Limits(0.05, 0.005)


def parse_limits(text: str) -> Limits:
    """Parse what ``--min-change`` is given, such as ``5%,0.5%``; UsageError where it is wrong."""
    parts = [part.strip().removesuffix("%") for part in text.split(",")]
    try:
        shares = [float(part) / 100 for part in parts]
    except ValueError:
        shares = []
    if len(shares) not in (1, 2) or not all(0 <= share < math.inf for share in shares):
        raise UsageError(f"--min-change '{text}': write parts of the base and of the root: 5%,0.5%")
    return Limits(shares[0], shares[1] if len(shares) > 1 else USUAL_LIMITS.of_root)


class Whole(NamedTuple):
    """Say how much all that is compared is, on the side that has more of it.

    Changes of means (``of_means``) count as often as there are activities: the mean of a few is no
    part of the mean of all.
    """

    amount: float
    of_means: bool

    @classmethod
    def of(cls, root: Changes, kind: str) -> Whole:
        """Choose the larger side of a ``root`` on the basis ``kind``; it stands at the place 0."""
        of_means = kind == "activity"
        sides = (root.base, root.new)
        amounts = (side.total[0] if of_means else side.value[0] for side in sides)
        return cls(float(max(amounts)), of_means)

    def amounts(self, changes: Changes) -> F8:
        """Return how much each of ``changes`` is beside the whole, f8[n]."""
        size = np.abs(changes.delta)
        most = np.maximum(changes.base.count, changes.new.count)
        return size * most if self.of_means else size


def large_changes(changes: Changes, limits: Limits, whole: Whole) -> Bool:
    """Mark the changes that reach both ``limits``, bool[n]; the second is of a ``whole``."""
    size = np.abs(changes.delta)
    reach = size >= limits.of_base * changes.base.value
    reach &= whole.amounts(changes) >= limits.of_root * whole.amount
    large: Bool = reach & (size > 0)
    return large


def side_sums(basis: Basis, sides: tuple[int, ...], total: I8, count: I8, root: I8) -> Changes:
    """Sum up ``total`` and ``count`` (i8[runs, n]) of runs by their ``sides``.

    ``root`` i8[runs] is the total of each run, which shares are of.
    """
    of = np.array(sides)
    return Changes(*(_side(basis, of == side, total, count, root) for side in (BASE, NEW)))


def _side(basis: Basis, runs: Bool, total: I8, count: I8, root: I8) -> Side:
    sums, counts = total[runs].sum(axis=0), count[runs].sum(axis=0)
    if basis.kind == "activity":
        return Side(sums, counts, counts.astype(np.float64))
    whole = float(root[runs].sum()) / 100
    divisor = whole if basis.kind == "share" else float(np.array(basis.divisor)[runs].sum())
    return Side(sums, counts, np.full(len(sums), divisor))


def tree_changes(union: UnionTree, basis: Basis, sides: tuple[int, ...]) -> Changes:
    """Measure the changes of all nodes of ``union``, with what is below them."""
    return side_sums(basis, sides, union.total, union.count, union.total[:, 0])


def own_changes(union: UnionTree, basis: Basis, sides: tuple[int, ...]) -> Changes:
    """Measure the changes of what ends exactly at each node of ``union``."""
    return side_sums(basis, sides, union.own, union.own_count, union.total[:, 0])


def heirs(tree: StackTree, delta: F8) -> I8:
    """For each node the child that has most of its change, if that is enough; -1 without."""
    heir = np.full(len(tree), -1, np.int64)
    parent = tree.parent[1:]
    part = np.sign(delta[parent]) * delta[1:]
    enough = (part >= _HELD * np.abs(delta[parent])) & (part > 0)
    nodes = np.flatnonzero(enough) + 1
    # The last one written stays: so the largest comes last, of equals the first in the tree.
    nodes = nodes[np.lexsort((-nodes, part[nodes - 1]))]
    heir[tree.parent[nodes]] = nodes
    return heir


def widths(own: Changes, width: Width) -> I8:
    """Choose how wide to draw each node itself, i8[n], in the scale of the new side.

    ``both`` is as wide as the wider side, so that what is gone is seen, too.
    """
    base, new = base_as_new(own), own.new.total
    return {"new": new, "base": base, "both": np.maximum(base, new)}[width]


def base_as_new(own: Changes) -> I8:
    """Scale the totals of the base to the divisors of the new side, i8[n].

    They are rounded so that their sum is right: those with the largest rest are rounded up.
    """
    base, new = own.base, own.new
    both = (base.divisor > 0) & (new.divisor > 0)
    scale = np.divide(new.divisor, base.divisor, out=np.ones(len(base.total)), where=both)
    exact = base.total * scale
    whole = np.floor(exact)
    left = round(float(exact.sum())) - int(whole.sum())
    up = np.argsort(whole - exact, kind="stable")[:left]
    whole[up] += 1
    return whole.astype(np.int64)
