"""Say in which strength of which colour a frame is drawn, by how far ranks are apart in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from flame.core.columns import F8, I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.core.ranks.node_spread import NodeSpread, same_nodes
from flame.core.units import MINUS, format_value

LEAST = 0.05
"""From this part of the median on a rank is drawn as another than the others."""

_FULL = 0.5
"""From this part on the colour is at its strongest."""

MORE, LESS, ONLY = "▲", "▼", "+"
_MOST_PERCENT = 999.5


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Colour the nodes of ``tree`` by the rank that is ``found`` farthest from the median.

    Warm where that one has more, cold where it has less; those that only some ranks have are of a
    colour of their own. ``labels`` name the ranks.
    """

    tree: StackTree
    found: NodeSpread
    labels: Sequence[str]

    @cached_property
    def strength(self) -> F8:
        """The strength of each node's colour, f8[n]: more from 0 to 1, less from 0 to -1."""
        return strength_of(self.found.deviation)

    def is_one_sided(self, node: int) -> bool:
        """Tell whether most ranks have nothing of ``node``."""
        return bool(np.isposinf(self.found.deviation[node]))

    def sign(self, node: int) -> str:
        """Say in a sign whether the farthest rank has more, less, or alone has anything."""
        return symbol_of(float(self.found.deviation[node]))

    def words(self, node: int) -> list[str]:
        """Say how far which rank is from the median, and what the mean of all is."""
        spread, at = self.found.spread, int(self.found.farthest[node])
        mean = format_value(float(spread.mean[node]), self.tree.metric.unit)
        if at < 0 or not self.sign(node):
            return [mean]
        if self.is_one_sided(node):
            return [on_ranks(int(spread.there[node]), spread.ranks, self.labels[at]), mean]
        percent = deviation_words(float(self.found.deviation[node]))
        return [f"{percent} {self.labels[at]}", mean]

    def derive(self, make: Callable[[StackTree], StackTree]) -> None:
        """Colour nothing: what is made of a tree has no sums of each rank."""


@dataclass(frozen=True, eq=False)
class AgainstMedian:
    """Colour the nodes of ``tree``, which is of some ranks, by how far these are off all ranks.

    ``deviation`` f8[n] is how far their mean is above the ``median`` (i8[n]) of all, as a part of
    it: infinite where most have nothing, NaN where it is not known.
    """

    tree: StackTree
    deviation: F8
    median: I8

    @property
    def found(self) -> AgainstMedian:
        """What the colours come of."""
        return self

    @cached_property
    def strength(self) -> F8:
        """The strength of each node's colour, f8[n]: more from 0 to 1, less from 0 to -1."""
        return strength_of(self.deviation)

    def is_one_sided(self, node: int) -> bool:
        """Tell whether most ranks have nothing of ``node``."""
        return bool(np.isposinf(self.deviation[node]))

    def sign(self, node: int) -> str:
        """Say in a sign whether there is more than on most ranks, less, or only here anything."""
        return symbol_of(float(self.deviation[node]))

    def words(self, node: int) -> list[str]:
        """Say what ``node`` has here, and how far that is from the median of all ranks."""
        value = format_value(int(self.tree.total[node]), self.tree.metric.unit)
        if self.is_one_sided(node):
            return ["most ranks lack it", value]
        return [*filter(None, [deviation_words(float(self.deviation[node]))]), value]

    def derive(self, make: Callable[[StackTree], StackTree]) -> None:
        """Colour nothing: what is made of a tree has no sums of each rank."""


def against_median(
    tree: StackTree, ranks: int, whole: StackTree, spread: NodeSpread
) -> AgainstMedian:
    """Compare ``tree``, of so many ``ranks``, with the ``spread`` of all in the ``whole``."""
    place = same_nodes(tree, whole)
    median = np.where(place >= 0, spread.spread.median[place], 0)
    above = tree.total / ranks - median
    far = np.where(above > 0, np.inf, 0.0)
    np.divide(above, median, out=far, where=median > 0)
    return AgainstMedian(tree, np.where(place >= 0, far, np.nan), median)


def strength_of(deviation: F8) -> F8:
    """Turn deviations from the median, as parts of it, into strengths of colours."""
    known = np.nan_to_num(deviation, nan=0.0, posinf=_FULL, neginf=-_FULL)
    part = np.clip(known / _FULL, -1, 1)
    return np.where(np.abs(known) >= LEAST, np.sign(part) * np.sqrt(np.abs(part)), 0.0)


def symbol_of(deviation: float) -> str:
    """Return the sign of a deviation from the median; empty where it is drawn as none."""
    if np.isposinf(deviation):
        return ONLY
    if np.isnan(deviation) or abs(deviation) < LEAST:
        return ""
    return MORE if deviation > 0 else LESS


def deviation_words(deviation: float) -> str:
    """Write a deviation from the median: ``+25.0 %``."""
    if np.isnan(deviation) or np.isinf(deviation):
        return ""
    percent = abs(100 * deviation)
    sign = MINUS if deviation < 0 else "+"
    if percent >= _MOST_PERCENT:
        return f"{deviation + 1:,.0f}×"
    return f"{sign}{percent:.1f} %" if percent >= 0.05 else "0 %"


def on_ranks(there: int, ranks: int, first: str) -> str:
    """Say how many of the ranks have something: ``on 1 of 256 ranks: rank 5``."""
    which = f": {first}" if there == 1 else ""
    return f"on {there:,} of {ranks:,} ranks{which}"
