"""Measure how much each node of a union tree has changed from base to new."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from flame.core.columns import I8, Bool, Column
from flame.core.compare.basis import Basis
from flame.core.compare.sides import BASE, NEW
from flame.core.compare.union_tree import UnionTree

F8 = NDArray[np.float64]
Width = Literal["new", "base", "both"]


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

    @property
    def mean(self) -> F8:
        """The mean of an activity, f8[n]; 0 where there is none."""
        return np.divide(
            self.total, self.count, out=np.zeros(len(self.total)), where=self.count > 0
        )

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

    @property
    def ratio(self) -> F8:
        """The change as a part of the base, f8[n]: inf of what is new, 0 where nothing is."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.delta / self.base.value, nan=0.0, posinf=np.inf)

    @cached_property
    def by_count(self) -> F8:
        """The part of ``delta`` that is due to the number of activities, f8[n]."""
        usual = np.where(self.base.count > 0, self.base.mean, self.new.mean)
        return (self.new.scaled_count - self.base.scaled_count) * usual

    @property
    def by_duration(self) -> F8:
        """The part of ``delta`` that is due to the duration of each activity, f8[n]."""
        return self.delta - self.by_count

    @property
    def is_new(self) -> Bool:
        """Mark what the base has nothing of, bool[n]."""
        marks: Bool = (self.base.count == 0) & (self.new.count > 0)
        return marks

    @property
    def is_gone(self) -> Bool:
        """Mark what the new side has nothing of, bool[n]."""
        marks: Bool = (self.new.count == 0) & (self.base.count > 0)
        return marks


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


def widths(own: Changes, width: Width) -> I8:
    """Choose how wide to draw each node itself, i8[n], in the scale of the new side.

    ``both`` is as wide as the wider side, so that what is gone is seen, too.
    """
    base, new = _comparable(own.base, own.new), own.new.total
    return {"new": new, "base": base, "both": np.maximum(base, new)}[width]


def _comparable(base: Side, new: Side) -> I8:
    """The totals of ``base`` as they would be with the divisors of ``new``."""
    both = (base.divisor > 0) & (new.divisor > 0)
    scale = np.divide(new.divisor, base.divisor, out=np.ones(len(base.total)), where=both)
    scaled: I8 = np.rint(base.total * scale).astype(np.int64)
    return scaled
