"""Find the calls that launched something, and the processes of threads."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, unique_rows
from flame.core.kept_results import kept
from flame.core.model.profile import Profile


@kept
def first_of_launches(profile: Profile) -> Bool:
    """Mark one activity for each call that launched any, bool[n]."""
    table = profile.activities
    rows = np.flatnonzero(table.launched)
    where = (table.process, table.thread, table.launch_start, table.launch_end)
    first, _ = unique_rows([column[rows] for column in where])
    marks = np.zeros(len(table), bool)
    marks[rows[first]] = True
    return marks


def process_of_threads(profile: Profile) -> I8:
    """Look up the process of each thread, i8[threads + 1]; -1 of the last, who is not known."""
    return np.array([*(thread.process for thread in profile.threads), -1], np.int64)
