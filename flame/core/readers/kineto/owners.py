"""Whose GPU work it is in traces of several processes, put together into one file."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, pack
from flame.core.model.activities import NONE
from flame.core.model.raw import Activities, Calls


def owners(activities: Activities, calls: Calls, process_of: I4) -> I4:
    """Process of each activity: that of the last call with its correlation id before it started.

    A GPU event names no process, and ids repeat from process to process. Clocks may disagree a
    little: where no call was before, the first one after counts. -1 where there is no such call.
    """
    rows = np.flatnonzero(calls.correlation > 0)
    if not len(rows):
        return activities.process
    keys = pack(
        [
            np.append(calls.correlation[rows], activities.correlation),
            np.append(calls.start[rows], activities.start),
        ]
    )
    have, want = keys[: len(rows)], keys[len(rows) :]
    order = np.argsort(have, kind="stable")
    known = np.append(calls.correlation[rows[order]], 0)
    process = np.append(process_of[calls.thread[rows[order]]], NONE)
    last = np.searchsorted(have[order], want, "right") - 1
    found = np.where(known[last] == activities.correlation, last, last + 1)
    same = (known[found] == activities.correlation) & (activities.correlation > 0)
    return np.where(same, process[found], NONE).astype(np.int32)
