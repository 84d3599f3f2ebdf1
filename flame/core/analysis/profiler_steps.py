"""Sum up each step of the PyTorch profiler: how long it took, and the GPU time launched in it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, sum_by
from flame.core.model.activities import Activities
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile


class StepTotal(NamedTuple):
    """Sum up a step: its number, longest duration in any process, GPU time of all processes, ns."""

    number: int
    duration: int
    gpu_time: int


@lru_cache(1)
def step_totals(profile: Profile) -> tuple[StepTotal, ...]:
    """Sum up the steps in ascending order; empty where the trace has no steps."""
    steps = profile.steps
    if steps is None or not len(steps):
        return ()
    numbers, place = distinct(steps.number)
    longest = np.zeros(len(numbers), np.int64)
    np.maximum.at(longest, place, steps.end - steps.start)
    gpu_time = sum_by(place, _launched_in(steps, profile.activities), len(numbers))
    columns = (numbers.tolist(), longest.tolist(), gpu_time.tolist())
    return tuple(StepTotal(*row) for row in zip(*columns, strict=True))


def _launched_in(steps: ProfilerSteps, table: Activities) -> I8:
    """GPU time of what was launched in each of ``steps``, ns; as the filter by steps has it."""
    time = np.where(table.launched, table.launch_start, table.start)
    result = np.zeros(len(steps), np.int64)
    for process in np.unique(steps.process).tolist():
        own = np.flatnonzero(steps.process == process)
        own = own[np.argsort(steps.start[own], kind="stable")]
        last = np.searchsorted(steps.start[own], time, "right") - 1
        step = own[np.maximum(last, 0)]
        rows = (table.process == process) & (last >= 0) & (time < steps.end[step])
        result += sum_by(step[rows], table.duration[rows], len(steps))
    return result
