"""Find the collectives of activities: told with them, or with the calls that launched them."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import Bool
from flame.core.model.activities import Activities
from flame.core.model.launches import Collectives, RawCollectives


def find_collectives(raw: RawCollectives, table: Activities) -> Collectives:
    """Find the collective of each activity of ``table`` that has one.

    Where the trace does not tell it with the activity, it is that of the innermost call of a
    collective in which its thread launched it.
    """
    told, calls = raw
    launched = _launched_alone(told, table)
    rows = np.flatnonzero(launched)
    opened = OpenIntervals(calls.thread, calls.start, calls.end)
    call = opened.innermost(table.thread[rows], table.launch_start[rows])
    rows, call = rows[call >= 0], call[call >= 0]
    row = np.concatenate([told.row, rows])
    order = np.argsort(row, kind="stable")
    kind = np.concatenate([told.kind, calls.kind[call]])
    sequence = np.concatenate([told.sequence, calls.sequence[call]])
    return Collectives(row[order], kind[order], sequence[order], told.kinds)


def _launched_alone(told: Collectives, table: Activities) -> Bool:
    """Mark the activities with a known launch of which nothing is ``told``."""
    marked: Bool = table.launched & (table.thread >= 0)
    marked[told.row] = False
    return marked
