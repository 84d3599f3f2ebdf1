"""Colour frames by how much of their time perfect kernels would have needed: in five steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from flame.core.columns import F8, I8, sum_by
from flame.core.efficiency.columns import BOUND, WorkColumns
from flame.core.efficiency.sums import count_nodes
from flame.core.efficiency.verdict import COVERED, TOO_MUCH
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.projection.filters import Filter
from flame.core.units import format_value, format_whole_percent

STRENGTHS = (1.0, 0.6, 0.3, -0.5, -1.0)
"""How the steps are drawn, as `Palette.change` takes it: warm far from the bound, cold near it."""

SIGNS = "▁▂▄▆█"
"""What stands before the names of frames of each step, the less the farther from the bound."""

STEPS = ("0–20 %", "20–40 %", "40–60 %", "60–80 %", "80–100 %")
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class EfficiencyColours:
    """Colour the nodes of ``tree`` by their % of bound; grey where that is not known.

    ``count`` makes the work of each node, once it is asked for: None where nothing is known of any.
    Where less than half of the kernels' time is rated, a share says nothing of the frame; where
    TF32 makes it another step, either may be wrong.
    """

    tree: StackTree
    count: Callable[[], WorkCounts | None]

    @cached_property
    def found(self) -> WorkCounts | None:
        """The work of each node, a row each."""
        return self.count()

    @cached_property
    def _columns(self) -> WorkColumns | None:
        return None if self.found is None else WorkColumns(self.found)

    @cached_property
    def _steps(self) -> F8:
        """The step of each node, f8[n], `UNKNOWN` of grey ones."""
        if self.found is None:
            return np.full(len(self.tree), UNKNOWN, np.float64)
        share, fast = self.found.bound_share, self.found.fast_bound_share
        step, other = (
            np.clip(np.floor(each * len(STEPS)), 0, len(STEPS) - 1) for each in (share, fast)
        )
        known = (self.found.rated_coverage >= COVERED) & (share <= TOO_MUCH) & (step == other)
        return np.where(known, step, UNKNOWN)

    @cached_property
    def strength(self) -> F8:
        """The strength of each node's colour, f8[n]."""
        strengths: F8 = np.array([*STRENGTHS, 0.0])[self._steps.astype(np.int64)]
        return strengths

    def is_one_sided(self, node: int) -> bool:
        """No node is of one of two sides."""
        return False

    def sign(self, node: int) -> str:
        """Say the step of ``node`` without a colour; empty where it is grey."""
        step = int(self._steps[node])
        return SIGNS[step] if step >= 0 else ""

    def words(self, node: int) -> list[str]:
        """Say how near ``node`` is to its bound, of which part of the time, and what it weighs."""
        value = format_value(int(self.tree.total[node]), self.tree.metric.unit)
        if self._columns is None or not (share := self._columns.cell(node, BOUND)):
            return [value]
        part = format_whole_percent(100 * float(self._columns.counts.rated_coverage[node]))
        return [f"{share} of bound over {part}", value]

    def derive(self, make: Callable[[StackTree], StackTree]) -> EfficiencyColours:
        """Colour what ``make`` makes of the tree, which adds up numbers of nodes.

        It must put nodes in an order that does not depend on these.
        """
        made = make(self.tree)
        return EfficiencyColours(made, partial(self._made, make, made))

    def _made(self, make: Callable[[StackTree], StackTree], made: StackTree) -> WorkCounts | None:
        """What tells the colours of the nodes of ``made``; all else is 0."""
        found, tree = self.found, self.tree
        if found is None:
            return None

        def added_up(column: I8) -> I8:
            own = column - sum_by(tree.parent[1:], column[1:], len(tree))
            return subtree_sums(make(replace(tree, own_count=own)).own_count, made.end)

        return replace(
            WorkCounts.none(len(made), found.memory_known),
            kernel_ns=added_up(found.kernel_ns),
            rated_ns=added_up(found.rated_ns),
            bound_ps=added_up(found.bound_ps),
            fast_bound_ps=added_up(found.fast_bound_ps),
        )


def efficiency_colours(
    profile: Profile, tree: StackTree, filters: tuple[Filter, ...]
) -> EfficiencyColours:
    """Colour ``tree``, which `project` made of ``profile`` with ``filters``; may read the file."""
    found = count_nodes(profile, tree, filters)
    return EfficiencyColours(tree, lambda: found)
