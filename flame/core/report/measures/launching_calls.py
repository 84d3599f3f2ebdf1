"""Find the calls that launched something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, order_by
from flame.core.kept_results import kept
from flame.core.model.activities import NONE, Activities
from flame.core.model.profile import Profile
from flame.core.report.scope import Scope


@kept
def launch_order(profile: Profile) -> I8:
    """Order the launched activities by thread, process and when they were launched: i8[n] rows."""
    table = profile.activities
    if table.launched.all():
        return order_by(_launch_keys(table))
    rows = np.flatnonzero(table.launched)
    return rows[order_by([column[rows] for column in _launch_keys(table)])]


def in_launch_order(profile: Profile, rows: I8) -> I8:
    """Order those of ``rows`` that were launched, as `launch_order` does."""
    order = launch_order(profile)
    chosen = np.zeros(len(profile.activities), bool)
    chosen[rows] = True
    return order[chosen[order]]


def _launch_keys(table: Activities) -> tuple[Column, ...]:
    return table.launch_start, table.process, table.thread


@kept
def launch_numbers(profile: Profile) -> I4:
    """Number the calls that launched anything: that of each activity, i4[n]; -1 not known."""
    table, order = profile.activities, launch_order(profile)
    number = np.full(len(table), NONE, np.int32)
    where = (table.launch_end, *_launch_keys(table))
    # Most calls end in the order in which they begin: then nothing is left to order by ends.
    fresh = _differ([column[order] for column in where[1:]])
    end = table.launch_end[order]
    if (~fresh[1:] & (end[1:] != end[:-1])).any():
        order = order[order_by([column[order] for column in where])]
        fresh = _differ([column[order] for column in where])
    number[order] = np.cumsum(fresh) - 1
    return number


def _differ(columns: Sequence[Column]) -> Bool:
    """Mark the rows that differ from those before them, bool[n]."""
    fresh = np.zeros(len(columns[0]), bool)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


@kept
def first_of_launches(profile: Profile) -> Bool:
    """Mark one activity for each call that launched any, bool[n]."""
    marks = np.zeros(len(profile.activities), bool)
    marks[first_rows(launch_numbers(profile), np.flatnonzero(profile.activities.launched))] = True
    return marks


@kept
def launches_by_group(scope: Scope) -> I8:
    """Count the calls whose first activity passes, by group of activities, i8[groups]."""
    groups = scope.profile.activities.groups
    rows = scope.rows[first_of_launches(scope.profile)[scope.rows]]
    return np.bincount(groups.of_row[rows], minlength=len(groups)).astype(np.int64)


def first_rows(number: I4, rows: I8) -> I8:
    """Find the first of ``rows`` of each ``number`` (i4[all], not below 0 at ``rows``)."""
    first = np.full(int(number.max(initial=NONE)) + 1, NONE, np.int64)
    first[number[rows[::-1]]] = rows[::-1]
    return first[first >= 0]
