"""Measure how much of idle time passed while the host collected garbage, or waited for the GIL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.report.scope import Scope
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import Pieces
from flame.core.timeline.thread_states.holdups import HOLDUPS, find_holdups, split


class HeldHost(NamedTuple):
    """Say how much of each idle part its thread collected garbage, and else waited for the GIL.

    i8[parts] each, in ns: nothing is in both.
    """

    gc: I8
    gil: I8


def held_host(scope: Scope, parts: IdleParts, chosen: Bool, windows: BusyTime) -> HeldHost:
    """Measure it of the ``chosen`` parts (bool[parts]), as far as they lie in ``windows``.

    The thread is the one that launched what ended the gap.
    """
    sums = {cause: np.zeros(len(chosen), np.int64) for cause in HOLDUPS}
    if not find_holdups(scope.profile).known:
        return HeldHost(*sums.values())
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    rest = Pieces(rows, np.full(len(rows), -1, np.int64), parts.low[rows], parts.high[rows])
    thread = scope.profile.activities.thread[parts.after[parts.gap]].astype(np.int64)
    for cause, lanes in find_holdups(scope.profile).known:
        inside, rest = split(rest, thread[rest.source], lanes)
        length = windows.sums_until(inside.end) - windows.sums_until(inside.begin)
        sums[cause] = sum_by(inside.source, length, len(chosen))
    return HeldHost(*sums.values())
