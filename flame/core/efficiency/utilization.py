"""Measure the FLOP utilization of the steps of a program: of their whole wall time, on all GPUs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, unique
from flame.core.efficiency.precisions import precisions_of
from flame.core.efficiency.sums import count_operators
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile

_ALL = slice(None)


class StepUtilization(NamedTuple):
    """Hold how much of the peak the steps used, as parts of 1, together.

    ``hardware`` (HFU) counts what was executed, also what was recomputed; only operators with a
    formula and a known peak, so that it is a lower bound. ``model`` (MFU) counts what the user says
    that the model needs, None where he does not. ``wall_ns`` is the time of the steps, times the
    GPUs of their process.
    """

    steps: int
    wall_ns: int
    hardware: float
    model: float | None


def step_utilization(profile: Profile) -> StepUtilization | None:
    """Measure the iterations of ``profile``; None without any, and where no peak is known.

    A kernel is of the step in which it starts, on a GPU of the process whose step it is.
    """
    counts, work, steps = count_operators(profile), profile.work, profile.iterations
    if counts is None or work is None or not len(steps.number) or not counts.rated.any():
        return None
    table, rows, compute_ps = (
        profile.activities,
        work.shared.rows,
        work.rate(work.shared, _ALL).compute_ps,
    )
    needed = wall = 0
    for process in unique(steps.process).tolist():
        own = steps.process == process
        mine = _ALL if process == NONE else np.flatnonzero(table.process == process)
        gpus = len(unique(table.device[mine]))
        some = _ALL if process == NONE else np.flatnonzero(table.process[rows] == process)
        inside = _within(table.start[rows[some]], steps.start[own], steps.end[own])
        needed += int(compute_ps[some][inside].sum())
        wall += gpus * int((steps.end[own] - steps.start[own]).sum())
    if not wall:
        return None
    count = len(unique(steps.number))
    return StepUtilization(count, wall, needed / (wall * 1000), _model(profile, count, wall))


def _within(time: I8, begin: I8, end: I8) -> I8:
    """Places of those times that are in any of the intervals, which do not overlap."""
    order = np.argsort(begin, kind="stable")
    place = np.searchsorted(begin[order], time, "right") - 1
    return np.flatnonzero((place >= 0) & (time < end[order][place]))


def _model(profile: Profile, steps: int, wall: int) -> float | None:
    """What the model needs in all steps, by what the GPUs could do in their time."""
    work, needs = profile.work, profile.work_options.model_flops
    if needs is None or work is None:
        return None
    precision = precisions_of(profile, work)[0]
    rated = work.shared.rows[work.rate(work.shared, _ALL).rated]
    used = unique(profile.activities.device[rated]).tolist()
    peaks = {peak.tflops[precision] for at in used if (peak := profile.peaks[at])}
    return needs * steps / (peaks.pop() * wall * 1000) if len(peaks) == 1 else None
