"""Measure how much of idle time passed while the host collected garbage, or waited for the GIL."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, sum_by
from flame.core.model.activities import NONE
from flame.core.report.scope import Scope
from flame.core.report.sections.states import COLLECTION, States, program_states
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.idle_parts import IdleParts
from flame.core.timeline.lane_intervals import LaneIntervals

WAITING_FOR_GIL = "waiting for the GIL"
"""The state of a thread that waits for Python's lock."""


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
    states, none = scope.once(program_states), np.zeros(len(chosen), np.int64)
    if states is None or not len(states):
        return HeldHost(none, none)
    collecting, waiting = _is(states, COLLECTION), _is(states, WAITING_FOR_GIL)
    if not collecting.any() and not waiting.any():
        return HeldHost(none, none)
    rows = np.flatnonzero(chosen & (parts.after[parts.gap] >= 0))
    thread = scope.profile.activities.thread[parts.after[parts.gap[rows]]].astype(np.int64)

    def held(marks: Bool) -> I8:
        some = np.flatnonzero(marks & (states.thread >= 0))
        times = (states.thread[some], states.start[some], states.end[some])
        found = LaneIntervals.union(*times).cut(thread, parts.low[rows], parts.high[rows])
        inside = found.where(found.by != NONE)
        lengths = windows.sums_until(inside.end) - windows.sums_until(inside.begin)
        return sum_by(rows[inside.source], lengths, len(chosen))

    gc = held(collecting)
    return HeldHost(gc, held(collecting | waiting) - gc)


def _is(states: States, state: str) -> Bool:
    marks: Bool = np.array([one == state for one in states.states], bool)[states.name]
    return marks
