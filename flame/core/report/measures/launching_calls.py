"""Find the calls that launched something, and the processes of threads."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, unique_rows
from flame.core.model.activities import Activities
from flame.core.model.profile import Profile


def first_of_launches(table: Activities) -> Bool:
    """Mark one row of ``table`` for each call that launched any, bool[n]."""
    rows = np.flatnonzero(table.launched)
    where = (table.process, table.thread, table.launch_start, table.launch_end)
    first, _ = unique_rows([column[rows] for column in where])
    marks = np.zeros(len(table), bool)
    marks[rows[first]] = True
    return marks


def process_of_threads(profile: Profile) -> I8:
    """Look up the process of each thread, i8[threads + 1]; -1 of the last, who is not known."""
    return np.array([*(thread.process for thread in profile.threads), -1], np.int64)
