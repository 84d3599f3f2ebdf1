"""Measure what conditions name by texts: frames by an expression, phases by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct
from flame.core.errors import NoMatchError
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.kernel_category import RULES
from flame.core.names.phases import TOLD_BY_RANGES
from flame.core.projection.filters import Phases
from flame.core.projection.matching import matching_frames
from flame.core.projection.phases import phase_names
from flame.core.projection.project import empty_tree, project
from flame.core.regex import compile_expression
from flame.core.report.gate.condition import Term
from flame.core.report.gate.percentiles import P99, Durations
from flame.core.report.gate.quantity import Quantity
from flame.core.report.scope import Scope

PARTS = {"frame": ("total", "count", "mean", "p99"), "phase": ("total",)}
"""What is measured of what has a name: of frames that match, and of phases."""


class NamedWork(NamedTuple):
    """Hold the GPU time and the number of ``activities`` that a term names, ``whole`` of how much.

    ``groups`` bool[groups] marks the groups of activities that these are of.
    """

    total: int
    activities: int
    whole: int
    groups: Bool

    @property
    def mean(self) -> float | None:
        """How long an activity took, ns; None of none."""
        return self.total / self.activities if self.activities else None


DurationsOf = Callable[[Scope, Bool], Durations | None]
"""Collect how long the activities of marked groups took; None where that is not known."""


def named_work(scope: Scope, term: Term) -> NamedWork | None:
    """Find the work that ``term`` names by its text; None where the trace has no such phases."""
    if term.name.startswith("phase."):
        return _work_of_phase(scope, term.text or "")
    nodes = outermost_matches(scope.tree, term.text or "")
    return _work_at(scope.tree, nodes, int(scope.tree.total[0]))


def _work_of_phase(scope: Scope, name: str) -> NamedWork | None:
    phases = Phases((name,))
    if not any(map(phases.fits, known_phases(scope.profile))):
        return None
    where = (*scope.selection.where, phases)
    selection = replace(scope.selection, metric="gpu", where=where)
    try:
        tree = project(scope.profile, selection)
    except NoMatchError:
        tree = empty_tree(scope.profile, selection)
    return _work_at(tree, np.zeros(1, np.int64), int(scope.tree.total[0]))


def known_phases(profile: Profile) -> tuple[str, ...]:
    """List the phases that a trace tells, also those that none of its work is of."""
    others: list[str] = []
    if profile.phases is None:
        others = [name for name, _ in RULES]
    elif profile.phases.told is not None:
        others = [*TOLD_BY_RANGES]
    return tuple(dict.fromkeys([*phase_names(profile), *others]))


def _work_at(tree: StackTree, nodes: I8, whole: int) -> NamedWork:
    """What is at ``nodes``, which are below no other of them."""
    total, count = int(tree.total[nodes].sum()), int(tree.count[nodes].sum())
    return NamedWork(total, count, whole, _groups_at(tree, nodes))


def _groups_at(tree: StackTree, nodes: I8) -> Bool:
    change = np.zeros(len(tree) + 1, np.int64)
    change[nodes] += 1
    np.subtract.at(change, tree.end[nodes], 1)
    return tree.groups_below(np.cumsum(change[:-1]) > 0)


def outermost_matches(tree: StackTree, text: str) -> I8:
    """List the outermost nodes whose names match the expression ``text``."""
    used = distinct(tree.frame.astype(np.int64))[0]
    marked = np.isin(
        tree.frame, matching_frames(tree.frames, tree.text, used, compile_expression(text))
    )
    # Nodes within another one that matches are a part of that.
    return np.flatnonzero(tree.outermost(marked))


def measure_named(scope: Scope, term: Term, durations_of: DurationsOf) -> Quantity | None:
    """Measure ``frame("attention").total`` and its like; None where the trace cannot tell.

    None where no activity has a mean.
    """
    found = named_work(scope, term)
    if found is None:
        return None
    part = term.name.partition(".")[2]
    if part == "count":
        return Quantity(found.activities, "count")
    if part == "mean":
        return None if found.mean is None else Quantity(found.mean, "ns")
    if part == "p99":
        times = durations_of(scope, found.groups) if found.activities else None
        return None if times is None else Quantity(times.percentile(P99), "ns")
    return Quantity(found.total, "ns", found.whole)


def recorded_durations(scope: Scope, groups: Bool) -> Durations | None:
    """Collect how long those activities of ``groups`` (bool[groups]) took that pass.

    None where they are divided among instructions, of which only the sums are known.
    """
    if scope.tree.parts is not None:
        return None
    table, rows = scope.shown.activities, scope.rows
    chosen = rows[groups[table.groups.of_row[rows]]]
    return Durations.of(table.duration[chosen])
