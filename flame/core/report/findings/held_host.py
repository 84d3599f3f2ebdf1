"""Measure how much of idle time passed while the host collected garbage, or waited for the GIL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.report.host.host_code import find_holdups
from flame.core.report.scope import Scope
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import LaneIntervals, Pieces


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
    holdups, none = find_holdups(scope.profile), np.zeros(len(chosen), np.int64)
    if holdups is None:
        return HeldHost(none, none)
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    rest = Pieces(rows, np.full(len(rows), -1, np.int64), parts.low[rows], parts.high[rows])
    thread = scope.profile.activities.thread[parts.after[parts.gap]].astype(np.int64)
    sums = []
    for lanes in holdups:
        inside, rest = _cut(lanes, thread, rest)
        length = windows.sums_until(inside.end) - windows.sums_until(inside.begin)
        sums.append(sum_by(inside.source, length, len(chosen)))
    return HeldHost(*sums)


def _cut(lanes: LaneIntervals | None, thread: I8, pieces: Pieces) -> tuple[Pieces, Pieces]:
    """What of ``pieces`` of parts, whose threads are given, lies in ``lanes``, and the rest."""
    if lanes is None:
        return pieces.where(pieces.source < 0), pieces
    found = lanes.cut(thread[pieces.source], pieces.begin, pieces.end)
    of_parts = found._replace(source=pieces.source[found.source])
    return of_parts.where(found.by >= 0), of_parts.where(found.by < 0)
