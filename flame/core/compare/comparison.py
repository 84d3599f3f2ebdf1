"""Compare two sides under one selection: the union of their trees, and what has changed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from flame.core.columns import Bool
from flame.core.compare.basis import Basis, Per, choose_basis, scope_of
from flame.core.compare.changes import (
    USUAL_LIMITS,
    Changes,
    Limits,
    Whole,
    Width,
    large_changes,
    own_changes,
    tree_changes,
    widths,
)
from flame.core.compare.levels import LeftOut, common_levels
from flame.core.compare.sides import Sides
from flame.core.compare.union_tree import UnionTree, unite
from flame.core.errors import NoMatchError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import Metric
from flame.core.model.tree import StackTree
from flame.core.projection.filters import MinShare
from flame.core.projection.selection import Selection
from flame.core.report.scope import Scope
from flame.core.sampling.paired_code import pair_code


@dataclass(frozen=True, eq=False)
class Comparison:
    """Hold what two sides show under one ``selection``, whose levels and metric are chosen.

    ``sides`` are the ``whole`` ones, narrowed to what the ``basis`` counts; ``trees`` are those of
    their runs, and ``left_out`` the levels that cannot be compared.
    """

    whole: Sides
    sides: Sides
    selection: Selection
    basis: Basis
    left_out: tuple[LeftOut, ...]
    trees: tuple[StackTree, ...]
    union: UnionTree
    limits: Limits

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """What reports of the runs are about, one for each."""
        return tuple(scope_of(run, self.selection) for run in self.sides.runs)

    @property
    def metric(self) -> Metric:
        """What is measured."""
        return self.union.tree.metric

    @cached_property
    def counting(self) -> Bool:
        """Mark the nodes whose change counts, being within no limit, bool[n]."""
        return large_changes(self.changes, self.limits, self.largest)

    @property
    def largest(self) -> Whole:
        """All that is compared, on the side that has more of it."""
        return Whole.of(self.changes, self.basis.kind)

    @cached_property
    def changes(self) -> Changes:
        """The changes of all nodes, with what is below them."""
        return tree_changes(self.union, self.basis, self.sides.side_of_run)

    @cached_property
    def own_changes(self) -> Changes:
        """The changes of what ends exactly at each node."""
        return own_changes(self.union, self.basis, self.sides.side_of_run)

    def tree(self, width: Width) -> StackTree:
        """Return the union as a tree that is as wide as one of its sides, or the wider of both."""
        return replace(self.union.tree, own=widths(self.own_changes, width))


def compare(
    sides: Sides,
    selection: Selection | None = None,
    per: Per = "",
    limits: Limits = USUAL_LIMITS,
) -> Comparison:
    """Compare ``sides`` under ``selection`` on the basis ``per``; ``limits`` say what counts.

    Raises NoMatchError where filters leave nothing of either side, UsageError where they have no
    metric, level or basis in common.
    """
    selection = selection or Selection()
    sides.check_ranks()
    metric = sides.metric(selection.metric)
    levels, left_out = common_levels(sides, metric, selection)
    naming = sides.naming(selection.naming)
    selection = replace(selection, metric=metric.key, levels=levels, naming=naming)
    basis = choose_basis(sides, selection, per)
    counted = sides.narrowed(basis.where)
    trees = tuple(run.tree(selection) for run in counted.runs)
    if not any(tree.count[0] for tree in trees):
        raise NoMatchError("nothing in BASE or NEW matches the selection")
    scale = [basis.divisor[-1] / divisor for divisor in basis.divisor]
    iterations = [run.profile.iterations.frames for run in counted.runs]
    named = pair_code(trees, [run.profile for run in counted.runs])
    union = unite(named, iterations, scale, _min_share(selection))
    return Comparison(sides, counted, selection, basis, left_out, trees, union, limits)


def _min_share(selection: Selection) -> float:
    """The part in percent below which siblings are merged; 0 where none are."""
    return max((one.percent for one in selection.where if isinstance(one, MinShare)), default=0.0)
