"""Divide what a condition names among the steps in which it was launched."""

from __future__ import annotations

import numpy as np

from flame.core.columns import F8, I8, Bool, sum_by, taken
from flame.core.compare.basis import periods_of
from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import KeptRun
from flame.core.report.gate.condition import Term
from flame.core.report.gate.named import NamedWork, named_work
from flame.core.report.scope import Scope


def sums_by_step(comparison: Comparison, term: Term) -> tuple[F8, F8] | None:
    """Sum the GPU time that ``term`` names by step, of the steps that are compared of each side.

    None where the steps have not all of it, or a side has none of it.
    """
    sides: tuple[list[F8], list[F8]] = ([], [])
    for at, side in enumerate(comparison.sides.side_of_run):
        found = _sums_of_run(comparison, at, term)
        if found is None:
            return None
        sides[side].append(found)
    base, new = (np.concatenate(side) for side in sides)
    return (base, new) if base.any() and new.any() else None


def _sums_of_run(comparison: Comparison, at: int, term: Term) -> F8 | None:
    run, scope = comparison.sides.runs[at], comparison.scopes[at]
    work = None if run.summary is not None or scope.tree.parts else _work(scope, term)
    if work is None:
        return None
    number = periods_of(run, comparison.selection).number
    if isinstance(run, KeptRun):
        place, value = _kept(run, work.groups)
    else:
        place, value = _launched(scope, work.groups, number)
    sums = sum_by(place, value, len(number))
    return sums.astype(np.float64) if int(sums.sum()) == work.total else None


def _work(scope: Scope, term: Term) -> NamedWork | None:
    if term.text is not None:
        return named_work(scope, term)
    tree = scope.tree
    total, count = int(tree.total[0]), int(tree.count[0])
    return NamedWork(total, count, total, tree.groups_below(np.ones(len(tree), bool)))


def _launched(scope: Scope, groups: Bool, number: I8) -> tuple[I8, I8]:
    """(place in ``number``, ns) of the activities of marked groups that these steps launched."""
    iterations, table, rows = scope.profile.iterations, scope.shown.activities, scope.rows
    chosen = rows[groups[table.groups.of_row[rows]]]
    place = iterations.places_among(number, taken(iterations.of(table), chosen))
    inside = place >= 0
    return place[inside], table.duration[chosen[inside]]


def _kept(run: KeptRun, groups: Bool) -> tuple[I8, I8]:
    if run.steps is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    step, group, total = (
        np.array(column, np.int64) for column in (run.steps.step, run.steps.group, run.steps.total)
    )
    chosen = groups[group]
    return step[chosen], total[chosen]
