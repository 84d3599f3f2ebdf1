"""Measure what a summary of ranks tells of the terms of a condition, and how far ranks differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.columns import F8, I8
from flame.core.compare.basis import periods_of
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.collective_noise import (
    deviation_of,
    ratio_deviation,
    time_in_collectives,
)
from flame.core.compare.over_ranks.questions import ask
from flame.core.compare.over_ranks.rank_samples import summary_at, why_no_spread
from flame.core.compare.sides import BASE, NEW, Run
from flame.core.model.frames import Kind
from flame.core.projection.project import shown_profile
from flame.core.projection.weights import weigh_groups
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.ranks.rank_diff import DEVIATIONS, compare_ranks
from flame.core.ranks.rank_sections.rank_findings import find_in_ranks
from flame.core.report.gate.condition import Term
from flame.core.report.gate.named import measure_named, outermost_matches
from flame.core.report.gate.quantity import Quantity
from flame.core.report.scope import Scope

_TIMES = ("gpu_time", "frame.total")
"""Quantities that each rank has of its own."""


def measure_ranks(run: Run, scope: Scope, term: Term) -> Quantity | None:
    """Measure what ``term`` names on all ranks of ``run``; None where a summary cannot tell."""
    if term.text is not None:
        alone = term.name.startswith("frame.")
        return measure_named(scope, term, lambda scope, groups: None) if alone else None
    what, _, part = term.name.partition(".")
    if term.name == "gpu_time":
        return Quantity(int(scope.tree.total[0]), "ns")
    if term.name == "kernels":
        return Quantity(_kernels(scope), "count")
    if what == "step":
        return _step(run, scope, part)
    if what == "findings":
        questions = ask(run, scope.selection)
        found = [] if questions is None else find_in_ranks(questions)
        return Quantity(sum(one.severity == part for one in found), "count")
    return None


def _kernels(scope: Scope) -> int:
    profile, tree = shown_profile(scope.profile, scope.selection), scope.tree
    count = weigh_groups(profile, tree.metric, scope.selection.where).activities
    chosen = (tree.node_of_group >= 0) & (profile.activities.groups.kind == Kind.KERNEL)
    return int(count[chosen].sum())


def _step(run: Run, scope: Scope, part: str) -> Quantity | None:
    """Measure the steps after the warm-up, each by its slowest rank."""
    found = distribution(periods_of(run, scope.selection).period)
    if found is None:
        return None
    parts = {"max": found.maximum, "mean": found.mean}
    return Quantity(parts[part] if part in parts else getattr(found, part), "ns")


def half_of_ranks(comparison: Comparison, term: Term) -> float | None:
    """Tell how far the change of ``term`` may be off by what ranks differ, in percent of the base.

    None where ranks do not tell.
    """
    if term.name not in _TIMES or why_no_spread(comparison):
        return None
    base, new = (_of_side(comparison, term, side) for side in (BASE, NEW))
    found = compare_ranks(base.values[None], new.values[None])
    parts = [(one.time / len(one.values), one.calls / len(one.values)) for one in (base, new)]
    in_common = deviation_of(parts[0], parts[1], ratio_deviation(comparison))
    median = float(found.base_median[0])
    far = float(np.hypot(found.deviation, in_common)[0])
    return 100 * DEVIATIONS * far / median if median else None


class _OfSide(NamedTuple):
    """Hold what each rank of a side has, f8[ranks], and all of them in collectives, f8[1] each."""

    values: F8
    time: F8
    calls: F8


def _of_side(comparison: Comparison, term: Term, side: int) -> _OfSide:
    places = np.flatnonzero(np.array(comparison.sides.side_of_run) == side).tolist()
    found = [_of_run(comparison, term, at) for at in places]
    return _OfSide(
        np.concatenate([one.values for one in found]),
        *(np.sum(column, axis=0) for column in zip(*(one[1:] for one in found), strict=True)),
    )


def _of_run(comparison: Comparison, term: Term, at: int) -> _OfSide:
    """What the ranks of a run have, on the basis of the comparison, each for itself."""
    tree = comparison.scopes[at].tree
    nodes: I8 = np.zeros(1, np.int64)
    if term.text is not None:
        nodes = outermost_matches(tree, term.text)
    values = values_of_ranks(summary_at(comparison, at), tree, nodes).sum(axis=0)
    scale = len(values) / comparison.basis.divisor[at]
    time, calls = time_in_collectives(tree, tree.own, tree.own_count)
    return _OfSide(
        values.astype(np.float64) * scale,
        time[nodes].sum(keepdims=True).astype(np.float64) * scale,
        calls[nodes].sum(keepdims=True).astype(np.float64),
    )
