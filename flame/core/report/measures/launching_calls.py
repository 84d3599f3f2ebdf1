"""Find the calls that launched something."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, unique_rows
from flame.core.kept_results import kept
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile


@kept
def launch_numbers(profile: Profile) -> I8:
    """Number the calls that launched anything: that of each activity, i8[n]; -1 not known."""
    table = profile.activities
    rows = np.flatnonzero(table.launched)
    where = (table.process, table.thread, table.launch_start, table.launch_end)
    number = np.full(len(table), NONE, np.int64)
    _, number[rows] = unique_rows([column[rows] for column in where])
    return number


@kept
def first_of_launches(profile: Profile) -> Bool:
    """Mark one activity for each call that launched any, bool[n]."""
    marks = np.zeros(len(profile.activities), bool)
    marks[first_rows(launch_numbers(profile), np.flatnonzero(profile.activities.launched))] = True
    return marks


def first_rows(number: I8, rows: I8) -> I8:
    """Find the first of ``rows`` of each ``number`` (i8[all], not below 0 at ``rows``)."""
    first = np.full(int(number.max(initial=NONE)) + 1, NONE, np.int64)
    first[number[rows[::-1]]] = rows[::-1]
    return first[first >= 0]
