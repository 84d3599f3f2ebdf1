"""Whose GPU work it is in traces of several processes, put together into one file."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, pack
from flame.core.profile import NONE
from flame.core.raw import Activities, Calls


def owners(activities: Activities, calls: Calls, process_of: I4) -> I4:
    """Process of each activity: that of the last call with its correlation id before it started.

    A GPU event names no process, and ids repeat from process to process. -1 where there is no such
    call.
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
    before = np.maximum(np.searchsorted(have[order], want, "right") - 1, 0)
    call = rows[order[before]]
    same = (calls.correlation[call] == activities.correlation) & (activities.correlation > 0)
    return np.where(same, process_of[calls.thread[call]], NONE).astype(np.int32)
