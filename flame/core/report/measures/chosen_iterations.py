"""Choose the iterations that filters leave, and count what one of them has."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.columns import LATEST, Bool, Column
from flame.core.model.profile import Profile
from flame.core.projection.filters import Pids, Ranks, Steps, Time
from flame.core.report.host_calls import HostCalls
from flame.core.report.scope import Scope


def chosen_iterations(scope: Scope) -> Bool:
    """Mark the iterations that the filters by step, time and process leave, bool[n]."""
    profile, found = scope.profile, scope.profile.iterations
    kept = np.ones(len(found), bool)
    for filter_ in scope.selection.where:
        if isinstance(filter_, Steps):
            kept &= filter_.chosen(found.number)
        elif isinstance(filter_, Time):
            kept &= found.start >= (-LATEST if filter_.begin is None else filter_.begin)
            kept &= found.start < (LATEST if filter_.end is None else filter_.end)
        elif isinstance(filter_, Pids):
            kept &= np.isin(found.process, _with_pid(profile, filter_))
        elif isinstance(filter_, Ranks):
            groups = profile.activities.groups
            used = groups.process[filter_.groups(profile, profile.activities)]
            kept &= np.isin(found.process, used)
    return kept


def _with_pid(profile: Profile, chosen: Pids) -> list[int]:
    return [at for at, process in enumerate(profile.processes) if process.pid in chosen.ids]


def per_iteration(scope: Scope, iteration: Column, among: Bool) -> int | None:
    """Count how many an iteration has, as a median: ``iteration`` is the one of each, -1 in none.

    ``among``, bool[n], marks the iterations that count; None without any.
    """
    chosen = chosen_iterations(scope) & among
    number = distribution(np.bincount(iteration[iteration >= 0], minlength=len(chosen))[chosen])
    return number.p50 if number else None


def calls_per_iteration(scope: Scope, calls: HostCalls) -> int | None:
    """Count how many of ``calls`` an iteration has, as a median; None without iterations."""
    found = scope.profile.iterations
    return per_iteration(scope, found.at(calls.process, calls.start), np.ones(len(found), bool))


def iteration_notes(number: int | None) -> tuple[str, ...]:
    """Say for people how many calls an iteration has; nothing where there are no iterations."""
    return () if number is None else (f"an iteration has {number:,} of these, as a median",)
