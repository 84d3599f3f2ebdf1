"""How long steps took and what was launched in them: as the filter by steps has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.analysis.profiler_steps import StepTotal, step_totals
from flame.core.loading.many import load
from flame.core.model.meta import Process, ProfilerSteps
from flame.core.model.profile import Profile
from flame.core.projection.filters import Step
from tests.support.paths import SAMPLES
from tests.support.recorded import Recorded


def two_processes() -> Profile:
    """Kernels of 10, 20 and 40 ns, the last of another process."""
    trace = Recorded()
    for place, ns in enumerate((10, 20, 40)):
        trace.call("cudaLaunchKernel", 100 * place, 100 * place + 5, corr=place + 1)
        trace.kernel("gemm", 1_000 * place + 1_000, 1_000 * place + 1_000 + ns, corr=place + 1)
    profile = trace.profile()
    process = np.array([0, 0, 1], np.int32)
    return replace(
        profile,
        activities=replace(profile.activities, process=process),
        processes=(Process(1), Process(2)),
    )


def with_steps(profile: Profile, *rows: tuple[int, int, int, int]) -> Profile:
    """``rows`` are number, process, start, end."""
    number, process, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return replace(profile, steps=ProfilerSteps(number, process.astype(np.int32), start, end))


def test_a_step_of_several_processes_is_one_and_as_long_as_the_longest() -> None:
    profile = with_steps(two_processes(), (7, 1, 150, 300), (6, 0, 0, 100), (7, 0, 100, 180))
    assert step_totals(profile) == (StepTotal(6, 100, 10), StepTotal(7, 150, 60))


def test_what_lies_between_steps_belongs_to_none() -> None:
    profile = with_steps(two_processes(), (1, 0, 10, 90), (2, 0, 101, 400))
    assert [step.gpu_time for step in step_totals(profile)] == [0, 0]


def test_without_steps_there_is_nothing() -> None:
    assert step_totals(two_processes()) == ()


def test_each_has_what_the_filter_leaves() -> None:
    profile = load(SAMPLES / "torch_small.pt.trace.json.gz")
    totals = step_totals(profile)
    assert len(totals) == 5
    for step in totals:
        rows = Step(step.number, step.number).rows(profile, profile.activities)
        assert step.gpu_time == profile.activities.duration[rows].sum()
