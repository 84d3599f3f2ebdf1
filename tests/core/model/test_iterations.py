"""Which ranges are iterations, and which of them an activity belongs to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.meta import ProfilerSteps
from flame.core.model.profile import Profile
from tests.conftest import TRACES, needs_traces
from tests.support.oracles.naive_iterations import Span, activities_of, find, spans_of
from tests.support.paths import SAMPLES
from tests.support.profiles.recorded import THREADS, Recorded
from tests.support.tiers import examples


def looped(names: list[str], *, threads: tuple[int, ...] = (0,), kernels: int = 1) -> Recorded:
    """Ranges of 100 ns with these names, one after the other, each of which launches a kernel."""
    trace = Recorded()
    for thread in threads:
        for place, name in enumerate(names):
            begin, corr = 100 * place, 1 + place + 1000 * thread
            trace.range(name, begin, begin + 100, thread=thread)
            if kernels:
                trace.call("cudaLaunchKernel", begin + 10, begin + 20, corr=corr, thread=thread)
                process = THREADS[thread].process
                trace.kernel("gemm", begin + 500, begin + 510, corr=corr, process=process)
    return trace


def numbers(profile: Profile) -> list[int]:
    return [*map(int, profile.iterations.number)]


def cut_by_the_next(profile: Profile, *rows: tuple[int, int, int]) -> Profile:
    """With steps of the profiler: number, start, end, all of one process."""
    number, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    zero = np.zeros(len(rows), np.int32)
    return replace(profile, steps=ProfilerSteps(number, zero, start, end, zero))


# Which ranges


@pytest.mark.parametrize(
    "names",
    [
        ["step 5", "step 6", "step 9"],
        ["Warm-up Step 5", "Warm-up Step 6", "Warm-up Step 9"],
        ["train_step_5", "train_step_6", "train_step_9"],
        ["iter5", "iter6", "iter9"],
        ["decode bs=5 v20", "decode bs=6 v20", "decode bs=9 v21"],
        ["epoch 1 iteration 5", "epoch 1 iteration 6", "epoch 1 iteration 9"],
    ],
)
def test_ranges_that_count_are_iterations_by_their_number(names: list[str]) -> None:
    found = looped(names).profile().iterations
    assert (found.source, found.number.tolist()) == ("ranges", [5, 6, 9])
    assert (found.start.tolist(), found.end.tolist()) == ([0, 100, 200], [100, 200, 300])
    assert found.thread.tolist() == found.process.tolist() == [0, 0, 0]


@pytest.mark.parametrize("names", [["execute"] * 3, ["step 7", "step 3", "step 5"]])
def test_those_that_do_not_count_up_are_numbered_by_their_place(names: list[str]) -> None:
    assert numbers(looped(names).profile()) == [0, 1, 2]


@pytest.mark.parametrize(
    "names",
    [
        ["step 1", "step 2"],
        ["layer 1", "layer 2", "layer 3"],
        ["execute_kernel"] * 3,
        ["runFusion::execute_kernel"] * 3,
        ["Optimizer.step#SGD.step"] * 3,
        ["stepping stone"] * 3,
    ],
)
def test_other_ranges_are_none(names: list[str]) -> None:
    found = looped(names).profile().iterations
    assert (len(found), found.source) == (0, "none")


def test_ranges_of_which_one_lies_within_another_are_none() -> None:
    trace = looped(["step 1", "step 2", "step 3"])
    trace.range("step 4", 220, 280)
    assert not len(trace.profile().iterations)


def test_a_range_without_length_is_none_and_no_obstacle() -> None:
    trace = looped(["step 1", "step 2", "step 3"])
    trace.range("step 4", 220, 220)
    assert numbers(trace.profile()) == [1, 2, 3]


def test_ranges_in_which_less_than_half_was_launched_are_none() -> None:
    trace = looped(["step 1", "step 2", "step 3"])
    trace.kernel("half", 1000, 1030)
    assert len(trace.profile().iterations) == 3
    trace.kernel("more than half", 1100, 1101)
    assert not len(trace.profile().iterations)


def test_without_work_of_a_gpu_there_are_none() -> None:
    assert not len(looped(["step 1", "step 2", "step 3"], kernels=0).profile().iterations)


def test_of_several_names_the_one_with_most_gpu_time_counts_and_of_equals_the_outermost() -> None:
    trace = looped(["iteration 1", "iteration 2", "iteration 3"])
    for place in range(3):
        trace.range("execute", 100 * place + 5, 100 * place + 50)
    assert numbers(trace.profile()) == [1, 2, 3]
    trace = looped(["execute"] * 3)
    for place in range(3):
        trace.range(f"iteration {place}", 100 * place + 30, 100 * place + 50)
    assert trace.profile().iterations.frame[0] == trace.profile().iterations.frame[2]


def test_in_each_process_they_are_those_of_the_thread_that_has_most() -> None:
    trace = looped(["step 1", "step 2", "step 3"], threads=(0, 2))
    trace.range("step 8", 50, 60, thread=1)
    found = trace.profile().iterations
    assert found.thread.tolist() == [0, 0, 0, 2, 2, 2]
    assert found.number.tolist() == [1, 2, 3, 1, 2, 3]


def test_a_range_that_was_cut_is_one_iteration() -> None:
    """Where a range that began before it ends in it."""
    trace = looped(["step 2", "step 3", "step 4"])
    trace.range("crossing", 50, 150)
    found = trace.profile().iterations
    assert (found.start.tolist(), found.end.tolist()) == ([0, 100, 200], [100, 200, 300])


def test_ranges_that_follow_each_other_are_two_however_deep_they_are() -> None:
    trace = looped(["other", "step", "step", "step"])
    trace.range("around the first", 0, 200)
    found = trace.profile().iterations
    assert (found.start.tolist(), found.end.tolist()) == ([100, 200, 300], [200, 300, 400])


def test_no_other_ranges_are_nested_to_find_them() -> None:
    profile = looped(["step 2", "step 3", "step 4", "other"]).profile()
    assert len(profile.iterations) == 3
    assert "ranges" not in vars(profile)


names = st.sampled_from(
    ["step {}", "train_step_{}", "execute", "decode", "execute_kernel", "other {}", "step {} of 9"]
)


@examples(3)
@given(
    ranges=st.lists(
        st.tuples(names, st.integers(0, 9), st.integers(0, 2), st.integers(0, 40)), max_size=20
    ),
    kernels=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 400)), max_size=20),
)
def test_they_are_those_of_a_plain_search(
    ranges: list[tuple[str, int, int, int]], kernels: list[tuple[int, int]]
) -> None:
    trace, spans, clock = Recorded(), [], [0, 0, 0]
    for name, number, thread, length in ranges:
        text, begin = name.format(number), clock[thread]
        clock[thread] += length // 2 * 2 if length % 2 else 0  # odd ones nest the next, or cross it
        trace.range(text, begin, begin + length, thread=thread)
        spans.append(Span(text, THREADS[thread].process, thread, begin, begin + length))
    for process, start in kernels:
        trace.kernel("gemm", start, start + 7, process=process)
    profile = trace.profile()
    found = [span[1:] for span in spans_of(profile)]
    assert found == [span[1:] for span in find(spans, activities_of(profile))]


# Steps of the profiler


def test_steps_of_the_profiler_come_before_ranges() -> None:
    profile = cut_by_the_next(looped(["step 1", "step 2", "step 3"]).profile(), (7, 0, 150))
    assert (profile.iterations.source, numbers(profile)) == ("profiler", [7])


def test_a_step_ends_at_the_latest_where_the_next_one_begins() -> None:
    profile = cut_by_the_next(looped(["a"]).profile(), (8, 60, 90), (7, 0, 70), (9, 200, 300))
    found = profile.iterations
    assert (found.start.tolist(), found.end.tolist()) == ([0, 60, 200], [60, 90, 300])
    assert found.number.tolist() == [7, 8, 9]


def test_an_activity_is_in_the_iteration_of_its_process_it_was_launched_in() -> None:
    profile = cut_by_the_next(looped(["a", "b"], threads=(0, 2)).profile(), (7, 0, 110))
    of = profile.iterations.of(profile.activities)
    assert dict(zip(profile.activities.launch_start.tolist(), of.tolist(), strict=True)) == {
        10: -1,
        110: -1,
    }
    own = profile.activities.process == 0
    assert of[own].tolist() == [0, -1] and of[~own].tolist() == [-1, -1]


# Variants, several files and recordings that go on


def test_several_files_have_those_of_all_at_the_times_of_the_whole() -> None:
    first = looped(["warm-up", "step 1", "step 2", "step 3"]).profile()
    later = Recorded()
    for begin in (1000, 1100, 1200):
        later.range(f"step {begin // 100}", begin, begin + 100, thread=2)
        later.kernel("gemm", begin + 10, begin + 20, process=1)
    parts = [first, looped(["other"]).profile(), later.profile()]
    found = merge_profiles(parts, ["a", "b", "c"]).iterations
    assert found.number.tolist() == [1, 2, 3, 10, 11, 12]
    assert found.process.tolist() == [0] * 3 + [5] * 3
    assert found.thread.tolist() == [0] * 3 + [8] * 3
    assert found.start.tolist() == [100, 200, 300, 0, 100, 200]


def test_variants_of_a_profile_have_the_same() -> None:
    profile = load(SAMPLES / "torch_small.pt.trace.json.gz")
    assert profile.with_nested.iterations.number.tolist() == numbers(profile) == [3, 4, 5, 6, 7]


# Real traces


@needs_traces
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nsys/rtx3070_train_17k.sqlite", [1, 2, 3, 4, 5]),
        ("nsys/h200_nvtx_13k.sqlite", []),
        ("nsys/h100_2gpu_window.sqlite", []),
        ("nsys/a100_llm_nvtx.sqlite", []),
        ("nsys/nvtx_textid_json_no_kernels.sqlite", []),
        ("kineto/v100_old_categories.json.gz", [5, 6, 7, 8, 9, 10]),
        ("kineto/mi300_vllm_hipgraph.json.gz", []),
    ],
)
def test_real_traces_have_these(name: str, found: list[int]) -> None:
    assert numbers(load(TRACES / name)) == found


def test_the_sample_of_two_processes_has_16_each() -> None:
    found = load(SAMPLES / "decode_small.sqlite").iterations
    assert found.number.tolist() == [*range(16), *range(16)]
    assert np.unique(found.process).tolist() == [0, 1]
