"""Functions and ranges nested as they were open in time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.frames import Kind
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import where
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def nested(trace: Recorded, forward: bool = True) -> dict[tuple[str, ...], int]:
    tree = project_tree(trace.profile(), "nested,kernel", metric="gpu", forward=forward)
    return leaves(tree)


def launched(*times: int, thread: int = 0) -> Recorded:
    """Kernels of 1, 2, 4, … ns, launched at ``times``."""
    trace = Recorded()
    for corr, time in enumerate(times, 1):
        trace.call("cudaLaunchKernel", time, time + 1, corr=corr, thread=thread)
        trace.kernel("gemm", 1_000 * corr, 1_000 * corr + 2 ** (corr - 1), corr=corr)
    return trace


def test_functions_and_ranges_stand_as_they_were_opened() -> None:
    trace = launched(30, 55)
    trace.range("step", 0, 99)
    trace.function("train", 1, 90, 1)
    trace.range("linear", 10, 50)
    trace.function("forward", 20, 40, 2, 1)
    trace.range("aten::mm", 25, 35)
    assert nested(trace) == {
        ("step", "train", "linear", "forward", "aten::mm", "gemm"): 1,
        ("step", "train", "gemm"): 2,
    }


def test_the_same_functions_and_ranges_in_another_order_are_another_stack() -> None:
    trace = launched(15, 35)
    trace.function("f", 10, 19, 1)
    trace.range("r", 12, 18)
    trace.range("r", 30, 39)
    trace.function("f", 32, 38, 2)
    assert nested(trace) == {("f", "r", "gemm"): 1, ("r", "f", "gemm"): 2}
    assert leaves(project_tree(trace.profile(), "python,nvtx,kernel")) == {("f", "r", "gemm"): 3}
    profile = trace.profile()
    assert len(profile.activities.groups) == 1
    assert len(profile.with_nested.activities.groups) == 2


def test_of_equal_times_functions_are_outside() -> None:
    trace = launched(15)
    trace.range("range", 10, 20)
    trace.function("inner", 10, 20, 2)
    trace.function("outer", 10, 20, 1)
    assert nested(trace) == {("outer", "inner", "range", "gemm"): 1}


def test_what_crosses_is_no_longer_below_what_has_ended() -> None:
    trace = launched(15, 25)
    trace.function("f", 10, 20, 1)
    trace.range("r", 12, 30)
    assert nested(trace) == {("f", "r", "gemm"): 1, ("r", "gemm"): 2}


def test_other_threads_and_unknown_launches_have_nothing_around_them() -> None:
    trace = launched(15, thread=1)
    trace.function("f", 10, 20, 1)
    trace.kernel("copy", 500, 516)
    assert nested(trace) == {("gemm",): 1, ("copy",): 16}


def test_deep_functions_and_ranges_together_are_all_there() -> None:
    trace = launched(500)
    for depth in range(400):
        trace.function(f"f{depth}", depth, 999 - depth, depth + 1)
        trace.range(f"r{depth}", depth, 999 - depth)
    (path,) = nested(trace)
    assert len(path) == 801 and path[:3] == ("f0", "r0", "f1")


def test_backward_passes_stand_below_their_forward_operators() -> None:
    trace = launched(65, thread=1)
    trace.function("train", 0, 100, 1)
    trace.range("step", 1, 99)
    trace.function("forward", 10, 40, 2, 1)
    row = trace.range("aten::mm", 20, 30)
    trace.function("backward", 45, 95, 3, thread=1)
    trace.range("MmBackward", 50, 90, thread=1, forward=row)
    outer = ("train", "step", "forward", "aten::mm")
    assert nested(trace) == {(*outer, "backward", "MmBackward", "gemm"): 1}
    assert nested(trace, forward=False) == {("backward", "MmBackward", "gemm"): 1}


def test_on_one_thread_what_both_passes_have_around_them_stands_once() -> None:
    trace = launched(65)
    trace.function("train", 0, 100, 1)
    trace.range("step", 1, 99)
    row = trace.range("aten::mm", 20, 30)
    trace.function("backward", 45, 95, 3, 1)
    trace.range("MmBackward", 50, 90, forward=row)
    assert nested(trace) == {("train", "step", "aten::mm", "backward", "MmBackward", "gemm"): 1}


def test_recorded_stacks_stand_where_ranges_were_opened() -> None:
    trace = launched(35)
    trace.range("step", 0, 99)
    trace.range("linear", 10, 90, python=["main", "forward"])
    trace.range("aten::mm", 20, 80, python=["main", "forward", "mm"])
    trace.range("inside", 30, 40, python=["main", "other"])
    assert nested(trace) == {
        ("step", "main", "forward", "linear", "mm", "aten::mm", "other", "inside", "gemm"): 1
    }


def test_recorded_stacks_of_ranges_in_functions_are_left_out() -> None:
    trace = launched(35)
    trace.function("main", 0, 99, 1)
    trace.range("linear", 10, 90, python=["main"])
    assert nested(trace) == {("main", "linear", "gemm"): 1}


def test_without_times_of_functions_ranges_stand_below_what_was_recorded() -> None:
    trace = Recorded()
    trace.range("step", 0, 99)
    trace.call("cudaLaunchKernel", 10, 11, corr=1, python=["main", "forward"])
    trace.kernel("gemm", 20, 21, corr=1)
    assert trace.profile().nested_finder is None
    assert nested(trace) == {("main", "forward", "step", "gemm"): 1}


def test_captured_stacks_stand_below_those_of_the_replay() -> None:
    trace = Recorded()
    trace.range("capture", 0, 9)
    trace.node(1, -1, 5)
    trace.range("replay", 20, 30)
    trace.call("cudaGraphLaunch", 25, 26, corr=1)
    trace.kernel("gemm", 40, 41, corr=1, node=1)
    assert nested(trace) == {("replay", "capture", "gemm"): 1}


def test_nothing_is_nested_before_it_is_asked_for() -> None:
    trace = launched(15)
    trace.function("f", 10, 20, 1)
    profile = trace.profile()
    project_tree(profile, "python,nvtx,kernel")
    assert profile.activities.nested is None and "with_nested" not in profile.__dict__
    assert profile.with_nested.with_nested is profile.with_nested


times = st.integers(0, 12)
spans = st.lists(st.tuples(st.booleans(), times, times), max_size=7)


def host_times(profile: Profile) -> Counter[tuple[str, ...]]:
    tree = project_tree(profile, "nested", metric="host")
    return Counter({tree.names(at): int(tree.own[at]) for at in tree.own.nonzero()[0].tolist()})


@given(spans)
def test_every_instant_of_the_host_is_nested_as_what_is_open(
    found: list[tuple[bool, int, int]],
) -> None:
    trace, opened = Recorded(), []
    for place, (is_range, *edges) in enumerate(found):
        start, end = sorted(edges)
        if is_range:
            trace.range(f"r{place}", start, end)
        else:
            trace.function(f"f{place}", start, end)
        opened.append((start, -end, is_range, place))
    expected = Counter[tuple[str, ...]]()
    for now in range(13):
        stack = [one for one in sorted(opened) if one[0] <= now < -one[1]]
        if stack:
            expected[tuple(f"{'fr'[r]}{at}" for *_, r, at in stack)] += 1
    assert host_times(trace.profile()) == expected


def test_a_host_call_is_nested_in_what_is_open() -> None:
    trace = Recorded()
    trace.range("r", 0, 10)
    trace.function("f", 2, 8, 1)
    trace.call("cudaMalloc", 4, 6)
    tree = project_tree(trace.profile(), "nested,launch", metric="host")
    assert leaves(tree) == {("r",): 4, ("r", "f"): 4, ("r", "f", "cudaMalloc"): 2}
    assert tree.kind(1) == Kind.NVTX


def test_filters_follow_the_forward_operators_that_are_shown() -> None:
    trace = launched(65, 25)
    trace.range("step", 1, 40)
    row = trace.range("aten::mm", 20, 30)
    trace.range("MmBackward", 50, 90, forward=row)
    profile, inside = trace.profile(), where(nvtx="step")
    levels = ("nvtx", "kernel")
    assert project_tree(profile, levels, inside).total[0] == 3
    assert project_tree(profile, levels, inside, forward=False).total[0] == 2


def test_finer_groups_keep_their_samples() -> None:
    trace = launched(15, 35, 55)
    trace.function("f", 10, 19, 1)
    trace.range("r", 12, 18)
    trace.range("r", 30, 39)
    trace.function("f", 32, 38, 2)
    profile = trace.profile()
    none, empty = np.zeros(0, np.int32), np.zeros(0, np.int64)
    of_group = np.array([7, 9], np.int32)
    bounds = np.zeros(1, np.int64)
    sampling = Sampling((), of_group, bounds, none, none, none, none, empty, np.zeros(0, bool))
    profile = replace(profile, sampling=sampling)
    finer = profile.with_nested
    assert len(finer.activities.groups) == 3 and finer.sampling is not None
    rows, before = finer.activities.groups.of_row, profile.activities.groups.of_row
    assert (finer.sampling.of_group[rows] == of_group[before]).all()


def test_variants_share_what_has_been_built() -> None:
    trace = launched(15)
    trace.function("f", 10, 20, 1)
    profile = trace.profile()
    assert profile.with_nested.host is profile.with_nested.host
    host = profile.host
    again = replace(profile)
    again.__dict__["host"] = host
    assert again.with_nested.host is host


def test_a_forward_operator_without_length_is_inside_what_starts_with_it() -> None:
    trace = launched(65, thread=1)
    row = trace.range("aten::relu", 10, 10, python=["main"])
    trace.range("linear", 10, 40)
    trace.range("ReluBackward", 60, 80, thread=1, forward=row)
    assert nested(trace) == {("linear", "main", "aten::relu", "ReluBackward", "gemm"): 1}


def test_python_frames_of_the_forward_operator_go_with_it() -> None:
    trace = launched(65, thread=1)
    trace.function("forward", 10, 40, 1)
    row = trace.range("aten::mm", 20, 30)
    trace.range("MmBackward", 50, 90, thread=1, forward=row)
    profile = trace.profile()
    assert leaves(project_tree(profile, "python,kernel")) == {("forward", "gemm"): 1}
    assert leaves(project_tree(profile, "python,kernel", forward=False)) == {("gemm",): 1}


def test_merged_host_times_are_nested_where_only_some_files_have_functions() -> None:
    first, second = Recorded(), Recorded()
    first.range("r", 0, 10)
    first.function("f", 2, 8, 1)
    second.range("q", 0, 3)
    second.range("inner", 1, 2)
    whole = merge_profiles([first.profile(), second.profile()], ["a", "b"])
    assert host_times(whole) == {("r",): 4, ("r", "f"): 6, ("q",): 2, ("q", "inner"): 1}
