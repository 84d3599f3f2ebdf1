"""Find the calls that launched something."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, order_by, runs_in_order, unique, unique_rows
from flame.core.compiled.order import RowRuns
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
    if len(rows) == len(profile.activities):
        return order
    chosen = np.zeros(len(profile.activities), bool)
    chosen[rows] = True
    return order[chosen[order]]


def _launch_keys(table: Activities) -> tuple[Column, ...]:
    return table.launch_start, table.process, table.thread


@kept
def early_rows(profile: Profile) -> I8:
    """Find the activities that began before they were launched: clocks differ, i8[n] rows."""
    table = profile.activities
    rows: I8 = np.flatnonzero((table.start < table.launch_start) & table.launched)
    return rows


@kept
def shorter_than_launch(profile: Profile) -> Bool:
    """Mark the activities that took less time than the call that launched them, bool[n]."""
    table = profile.activities
    shorter: Bool = table.duration < table.launch_end - table.launch_start
    return shorter


@kept
def launch_numbers(profile: Profile) -> I4:
    """Number the calls that launched anything: that of each activity, i4[n]; -1 not known."""
    table, order, known = profile.activities, launch_order(profile), _begun_together(profile)
    keys = (table.launch_end, *_launch_keys(table))
    # Most calls end in the order in which they begin: then nothing is left to order by ends.
    if known.runs == len(order) or runs_in_order(keys, order).runs == known.runs:
        return known.number
    return runs_in_order(keys, order[order_by([column[order] for column in keys])]).number


@kept
def _begun_together(profile: Profile) -> RowRuns:
    """The activities that a thread began to launch at one time, in the order of launches."""
    return runs_in_order(_launch_keys(profile.activities), launch_order(profile))


@kept
def launched_alone(profile: Profile) -> bool:
    """Tell whether all activities have a launch, and no thread began two of these at one time."""
    table, groups = profile.activities, profile.activities.groups
    if not table.launched.all():
        return False
    first, _ = unique_rows([groups.thread, groups.process])
    if len(first) > len(unique(groups.thread)):  # processes tell apart what one thread launched
        return False
    return _begun_together(profile).runs == len(table)


@kept
def first_of_launches(profile: Profile) -> Bool:
    """Mark one activity for each call that launched any, bool[n]; not to be written to."""
    if launched_alone(profile):
        return profile.activities.launched
    marks = np.zeros(len(profile.activities), bool)
    marks[first_rows(launch_numbers(profile), np.flatnonzero(profile.activities.launched))] = True
    return marks


@kept
def launches_by_group(scope: Scope) -> I8:
    """Count the calls whose first activity passes, by group of activities, i8[groups]."""
    if launched_alone(scope.profile):
        return scope.own_weights.activities
    groups = scope.profile.activities.groups
    rows = scope.rows[first_of_launches(scope.profile)[scope.rows]]
    return np.bincount(groups.of_row[rows], minlength=len(groups)).astype(np.int64)


def first_rows(number: I4, rows: I8) -> I8:
    """Find the first of ``rows`` of each ``number`` (i4[all], not below 0 at ``rows``)."""
    first = np.full(int(number.max(initial=NONE)) + 1, NONE, np.int64)
    first[number[rows[::-1]]] = rows[::-1]
    return first[first >= 0]
