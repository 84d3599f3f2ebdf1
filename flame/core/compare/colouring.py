"""Say in which strength of which of two colours a node is drawn, by how much it has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from flame.core.columns import F8, Bool
from flame.core.compare.amounts import change_words, format_ratio
from flame.core.compare.changes import USUAL_LIMITS, Changes, Limits, large_changes
from flame.core.compare.sided_tree import SidedTree
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.core.units import MINUS

if TYPE_CHECKING:
    from flame.core.compare.noise.beyond_noise import BeyondNoise, NoiseMarks

Measured = Literal["total", "self"]
"""Whether a node is drawn by the change of all that is below it too, or of itself alone."""

NEW_SIGN, GONE_SIGN, GREW_SIGN, SHRANK_SIGN = "+", MINUS, "▲", "▼"
ONE_SIDED = (NEW_SIGN, GONE_SIGN)

_FLOOR = 0.01
"""Part of a frame below which it is drawn as unchanged in any case."""


@dataclass(frozen=True, eq=False)
class Colouring:
    """Colour the nodes of a tree by how ``measured`` has changed between ``sides``.

    ``everything`` is coloured, or what has changed beyond noise by the ``marks`` alone: until
    these are known, and where nothing tells noise, what reaches the ``limits``. A ``derived`` tree
    has other nodes than the union.
    """

    sides: SidedTree
    measured: Measured = "total"
    everything: bool = False
    limits: Limits = USUAL_LIMITS
    marks: NoiseMarks | None = None
    derived: bool = False

    @property
    def tree(self) -> StackTree:
        """The tree whose nodes are coloured."""
        return self.sides.tree

    def derive(self, make: Callable[[StackTree], StackTree]) -> Colouring:
        """Colour what ``make`` makes of the tree; see `SidedTree.derive`."""
        return replace(self, sides=self.sides.derive(make), derived=True)

    @property
    def changes(self) -> Changes:
        """The changes that are drawn, of all nodes."""
        return self.sides.own_changes if self.measured == "self" else self.sides.changes

    @property
    def found(self) -> BeyondNoise | None:
        """What is known of noise so far."""
        return None if self.marks is None else self.marks.found

    @property
    def strength(self) -> F8:
        """The strength of each node's colour, f8[n]: grown from 0 to 1, shrunk from 0 to -1."""
        return self.strength_by(self.found)

    def strength_by(self, beyond_noise: BeyondNoise | None) -> F8:
        """Work out the strength as it is, or will be, by what is ``beyond_noise``; it is kept."""
        if beyond_noise not in self._strengths:
            self._strengths[beyond_noise] = self._strength(beyond_noise)
        return self._strengths[beyond_noise]

    @cached_property
    def _strengths(self) -> dict[BeyondNoise | None, F8]:
        return {}

    def _strength(self, found: BeyondNoise | None) -> F8:
        changes = self.changes
        larger = np.maximum(changes.base.value, changes.new.value)
        part = np.divide(changes.delta, larger, out=np.zeros(len(larger)), where=larger > 0)
        drawn = np.abs(part) >= _FLOOR
        if not self.everything:
            drawn &= large_changes(changes, self.limits, self.sides.largest)
            if found is not None:
                drawn &= self._beyond(found)
        return np.where(drawn, np.sign(part) * np.sqrt(np.abs(part)), 0.0)

    def _beyond(self, found: BeyondNoise) -> Bool:
        """Mark the nodes of which noise cannot be all, or nothing is known, bool[n].

        Tests are of totals: what a frame is itself they tell only where nothing is below it. Of a
        derived tree they tell whether the frame has changed at any place; callers have so much of
        what they call at last.
        """
        tree = self.sides.tree
        if self.derived:
            return found.frames[tree.frame[:1] if tree.layout.inverted else tree.frame]
        if self.measured == "self":
            return found.nodes | (tree.end > np.arange(len(tree)) + 1)
        return found.nodes

    def sign(self, node: int) -> str:
        """How ``node`` has changed, as a sign; empty where it is not coloured."""
        changes, strength = self.changes, float(self.strength[node])
        if changes.is_new[node]:
            return NEW_SIGN
        if changes.is_gone[node]:
            return GONE_SIGN
        return (GREW_SIGN if strength > 0 else SHRANK_SIGN) if strength else ""

    def is_one_sided(self, node: int) -> bool:
        """Tell whether ``node`` is new, or gone."""
        return self.sign(node) in ONE_SIDED

    def words(self, node: int) -> list[str]:
        """How ``node`` has changed, in few words, the most important first."""
        changes, amounts = self.changes, self.sides.amounts
        if changes.is_new[node] or changes.is_gone[node]:
            return [*change_words(changes, node, amounts)]
        delta = float(changes.delta[node])
        if not delta:
            return [amounts.value(float(changes.new.value[node]))]
        return [format_ratio(float(changes.ratio[node])), amounts.delta(delta)]
