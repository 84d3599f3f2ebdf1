"""Keep of a run what comparing with it needs: sums, iterations, budgets, findings, facts."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.iterations import iteration_of_activities
from flame.core.columns import I8, sum_by, unique_rows
from flame.core.compare.basis import periods_of, seconds_of
from flame.core.compare.comparable import (
    gpu_facts_of,
    held_by_profiler,
    losses_of,
    producers_of,
)
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.kept.base_file import (
    KeptDurations,
    KeptFacts,
    KeptPart,
    KeptQuantity,
    KeptRunData,
    KeptSteps,
)
from flame.core.compare.kept.keep_table import KeptTable, keep_table
from flame.core.compare.kept.kept_durations import keep_durations
from flame.core.compare.kept.kept_profile import MEASURED
from flame.core.compare.sections.budget import run_budget
from flame.core.compare.sections.finding_changes import run_findings
from flame.core.compare.sides import Run, Sides
from flame.core.errors import UsageError
from flame.core.projection.filters import passing_rows
from flame.core.projection.selection import Selection
from flame.core.projection.weights import Weights, weigh_groups
from flame.core.report.gate.quantities import QUANTITIES

_MOST_SUMS = 100_000
"""Sums by iteration that are kept: of the heaviest groups."""


def keep_run(run: Run, selection: Selection) -> KeptRunData:
    """Collect what is kept of the part of ``run`` that ``selection`` chooses.

    Raises UsageError where it has no GPU activities, as `compare` where there is nothing of them.
    """
    profile = run.profile
    if run.summary is not None:
        raise UsageError(
            f"{run.label} is a summary of ranks: that is small, and can be compared as it is"
        )
    if not run.has_rows or not len(profile.activities):
        raise UsageError(f"{run.label}: has no GPU activities to keep a base of")
    alone = Sides((run,), (run,))
    whole = compare(alone, selection, "total")
    weights = _weights(whole)
    table = keep_table(profile, weights.activities > 0)
    steady = compare(alone, selection)
    has_steps = steady.basis.kind == "step"
    return KeptRunData(
        table.frames,
        table.stack_parent,
        table.stack_frame,
        table.groups,
        table.iterations,
        _part(whole, table, weights),
        _part(steady, table, _weights(steady)) if has_steps else None,
        _steps(steady, table) if has_steps else None,
        _facts(whole),
    )


def _weights(comparison: Comparison) -> Weights:
    run = comparison.sides.runs[0]
    where = run.selection(comparison.selection).where
    return weigh_groups(run.profile, MEASURED[0], where)


def _part(comparison: Comparison, table: KeptTable, weights: Weights) -> KeptPart:
    run, scope = comparison.sides.runs[0], comparison.scopes[0]
    measured = {name: measure(scope) for name, measure in QUANTITIES.items()}
    return KeptPart(
        *table.sums(weights),
        seconds_of(run, comparison.selection),
        dict(run_budget(run, scope)),
        {name: KeptQuantity(*one) for name, one in measured.items() if one is not None},
        run_findings(run, scope) or [],
        _durations(run, comparison.selection, table),
    )


def _durations(run: Run, selection: Selection, table: KeptTable) -> KeptDurations:
    rows, group = _kept_rows(run, selection, table)
    durations = np.maximum(run.profile.activities.duration[rows], 0)
    return keep_durations(group, durations, len(table.groups.kind))


def _kept_rows(run: Run, selection: Selection, table: KeptTable) -> tuple[I8, I8]:
    """(row, kept group) of the activities that pass the filters."""
    profile, activities = run.profile, run.profile.activities
    chosen = passing_rows(profile, activities, run.selection(selection).where)
    rows = np.flatnonzero(np.ones(len(activities), bool) if chosen is None else chosen)
    group = table.of_group[activities.groups.of_row[rows]]
    kept = group >= 0
    return rows[kept], group[kept]


def _steps(comparison: Comparison, table: KeptTable) -> KeptSteps:
    run = comparison.sides.runs[0]
    found = periods_of(run, comparison.selection)
    step, group, total = _launched(run, comparison.selection, table, found.number)
    first, place = unique_rows([step, group])
    sums = sum_by(place, total, len(first))
    kept = _heaviest(group[first], sums)
    columns = (step[first][kept], group[first][kept], sums[kept])
    return KeptSteps(found.period.tolist(), *(column.tolist() for column in columns))


def _launched(run: Run, selection: Selection, table: KeptTable, number: I8) -> tuple[I8, I8, I8]:
    """(place in ``number``, kept group, ns) of the activities launched in these iterations."""
    profile, activities = run.profile, run.profile.activities
    rows, group = _kept_rows(run, selection, table)
    of = iteration_of_activities(profile)[rows]
    place = profile.iterations.places_among(number, of)
    inside = np.flatnonzero(place >= 0)
    return place[inside], group[inside], activities.duration[rows[inside]]


def _heaviest(group: I8, sums: I8) -> I8:
    """The places of as many sums as are kept: all of a group, the heaviest groups first."""
    size = int(group.max(initial=-1)) + 1
    order = np.argsort(-sum_by(group, sums, size), kind="stable")
    held = np.cumsum(np.bincount(group, minlength=size)[order])
    kept = np.zeros(size, bool)
    kept[order[held <= _MOST_SUMS]] = True
    return np.flatnonzero(kept[group])


def _facts(comparison: Comparison) -> KeptFacts:
    run, gpus = comparison.sides.runs[0], gpu_facts_of(comparison, 0)
    return KeptFacts(
        gpus.gpus,
        sorted(gpus.models),
        gpus.graphs,
        gpus.nodes,
        gpus.serialized,
        producers_of(run),
        run.profile.duration,
        held_by_profiler(run),
        losses_of(run),
    )
