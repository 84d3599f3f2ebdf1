"""Keep of a run what comparing with it needs: sums, iterations, budgets, findings, facts."""

from __future__ import annotations

from typing import NamedTuple

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
    rows = _kept_rows(steady, table) if has_steps else None
    return KeptRunData(
        table.frames,
        table.stack_parent,
        table.stack_frame,
        table.groups,
        table.iterations,
        _part(whole, table, weights, _kept_rows(whole, table)),
        _part(steady, table, _weights(steady), rows) if rows else None,
        _steps(steady, rows) if rows else None,
        _facts(whole),
    )


def _weights(comparison: Comparison) -> Weights:
    run = comparison.sides.runs[0]
    where = run.selection(comparison.selection).where
    return weigh_groups(run.profile, MEASURED[0], where)


class _KeptRows(NamedTuple):
    """Activities that pass the filters, and their groups among those that are kept."""

    row: I8
    group: I8


def _kept_rows(comparison: Comparison, table: KeptTable) -> _KeptRows:
    run = comparison.sides.runs[0]
    profile, activities = run.profile, run.profile.activities
    chosen = passing_rows(profile, activities, run.selection(comparison.selection).where)
    rows = np.flatnonzero(np.ones(len(activities), bool) if chosen is None else chosen)
    group = table.of_group[activities.groups.of_row[rows]]
    kept = group >= 0
    return _KeptRows(rows[kept], group[kept])


def _part(comparison: Comparison, table: KeptTable, weights: Weights, rows: _KeptRows) -> KeptPart:
    run, scope = comparison.sides.runs[0], comparison.scopes[0]
    measured = {name: measure(scope) for name, measure in QUANTITIES.items()}
    return KeptPart(
        *table.sums(weights),
        seconds_of(run, comparison.selection),
        dict(run_budget(run, scope)),
        {name: KeptQuantity(*one) for name, one in measured.items() if one is not None},
        run_findings(run, scope) or [],
        _durations(run, rows, len(table.groups.kind)),
    )


def _durations(run: Run, rows: _KeptRows, groups: int) -> KeptDurations:
    durations = np.maximum(run.profile.activities.duration[rows.row], 0)
    return keep_durations(rows.group, durations, groups)


def _steps(comparison: Comparison, rows: _KeptRows) -> KeptSteps:
    run = comparison.sides.runs[0]
    found = periods_of(run, comparison.selection)
    step, group, total = _launched(run, rows, found.number)
    first, place = unique_rows([step, group])
    sums = sum_by(place, total, len(first))
    kept = _heaviest(group[first], sums)
    columns = (step[first][kept], group[first][kept], sums[kept])
    return KeptSteps(found.period.tolist(), *(column.tolist() for column in columns))


def _launched(run: Run, rows: _KeptRows, number: I8) -> tuple[I8, I8, I8]:
    """(place in ``number``, kept group, ns) of the activities launched in these iterations."""
    profile = run.profile
    of = iteration_of_activities(profile)[rows.row]
    place = profile.iterations.places_among(number, of)
    inside = np.flatnonzero(place >= 0)
    return place[inside], rows.group[inside], profile.activities.duration[rows.row[inside]]


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
