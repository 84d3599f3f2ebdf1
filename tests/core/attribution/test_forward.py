"""Work of a backward pass below the forward operator that caused it, and work placed by time."""

from __future__ import annotations

import pytest

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.conftest import TRACES
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def ranges_of(profile: Profile, activity: int = 0) -> list[str]:
    """Names of the ranges around an activity, outermost first; marked ones in brackets."""
    table = profile.activities
    frames = [profile.frames[frame] for frame in table.stacks.path(int(table.nvtx[activity]))]
    marks = ("captured", "forward", "placed")
    return [f"[{one.name}]" if any(map(one.get, marks)) else one.name for one in frames]


def python_of(profile: Profile, activity: int = 0) -> list[str]:
    table = profile.activities
    return [profile.frames[frame].name for frame in table.stacks.path(int(table.python[activity]))]


def backward(thread: int, linked: bool = True) -> Recorded:
    """A forward operator in a module on thread 0, and a kernel of its backward on ``thread``."""
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.function("forward", 10, 40, 2, 1)
    trace.range("step", 0, 99)
    trace.range("linear", 10, 40)
    row = trace.range("aten::mm", 20, 30)
    trace.range("inside it", 20, 25)
    trace.range("MmBackward", 50, 90, thread=thread, forward=row if linked else -1)
    trace.range("aten::mm of the backward", 60, 80, thread=thread)
    trace.call("cudaLaunchKernel", 65, 66, corr=1, thread=thread)
    trace.kernel("gemm", 500, 600, corr=1)
    return trace


def test_the_forward_operator_and_what_was_around_it_stand_outside() -> None:
    assert ranges_of(backward(thread=1).profile()) == [
        "[step]",
        "[linear]",
        "[aten::mm]",
        "MmBackward",
        "aten::mm of the backward",
    ]


def test_ranges_around_both_on_one_thread_stand_there_once() -> None:
    assert ranges_of(backward(thread=0).profile()) == [
        "step",
        "[linear]",
        "[aten::mm]",
        "MmBackward",
        "aten::mm of the backward",
    ]


def test_equal_ranges_of_two_threads_are_two() -> None:
    trace = Recorded()
    trace.range("step", 0, 99)
    row = trace.range("aten::mm", 20, 30)
    trace.range("step", 40, 99, thread=1)
    trace.range("MmBackward", 50, 90, thread=1, forward=row)
    trace.call("cudaLaunchKernel", 65, 66, corr=1, thread=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert ranges_of(trace.profile()) == ["[step]", "[aten::mm]", "step", "MmBackward"]


def test_without_links_nothing_changes() -> None:
    profile = backward(thread=0, linked=False).profile()
    assert ranges_of(profile) == ["step", "MmBackward", "aten::mm of the backward"]


def test_a_launch_without_python_functions_gets_those_of_the_forward_operator() -> None:
    assert python_of(backward(thread=1).profile()) == ["main", "forward"]
    assert python_of(backward(thread=1, linked=False).profile()) == []


def test_a_launch_with_python_functions_keeps_its_own() -> None:
    assert python_of(backward(thread=0).profile()) == ["main"]


def test_the_stack_recorded_with_the_forward_operator_will_do() -> None:
    trace = Recorded()
    row = trace.range("aten::mm", 20, 30, python=["main", "forward"])
    trace.range("MmBackward", 50, 90, thread=1, forward=row)
    trace.call("cudaLaunchKernel", 65, 66, corr=1, thread=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert python_of(trace.profile()) == ["main", "forward"]


def test_of_nested_links_the_innermost_counts() -> None:
    trace = Recorded()
    first, second = trace.range("aten::mm", 0, 5), trace.range("aten::relu", 6, 9)
    trace.range("MmBackward", 50, 90, thread=1, forward=first)
    trace.range("ReluBackward", 60, 80, thread=1, forward=second)
    trace.call("cudaLaunchKernel", 65, 66, corr=1, thread=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert ranges_of(trace.profile()) == ["[aten::relu]", "MmBackward", "ReluBackward"]


def test_a_forward_operator_without_length_is_inside_what_starts_with_it() -> None:
    trace = Recorded()
    row = trace.range("aten::relu", 10, 10)
    trace.range("earlier", 5, 10)
    trace.range("linear", 10, 40)
    trace.range("ReluBackward", 60, 80, thread=1, forward=row)
    trace.call("cudaLaunchKernel", 65, 66, corr=1, thread=1)
    trace.kernel("gemm", 500, 600, corr=1)
    assert ranges_of(trace.profile()) == ["[linear]", "[aten::relu]", "ReluBackward"]


def test_gpu_time_stays_what_it_is() -> None:
    profile = backward(thread=1).profile()
    assert project_tree(profile, levels="nvtx,kernel").total[0] == profile.gpu_time == 100


def test_work_without_a_launch_is_placed_by_the_ranges_of_its_stream() -> None:
    trace = Recorded()
    trace.range("never mind", 0, 1_000)
    trace.gpu_range("step", 0, 900)
    trace.gpu_range("forward", 400, 700)
    trace.gpu_range("on another stream", 0, 900, stream=8)
    trace.gpu_range("on another device", 0, 900, device=1)
    trace.kernel("gemm", 500, 600)
    trace.kernel("gemm", 800, 850)
    trace.kernel("gemm", 500, 600, stream=9)
    profile = trace.profile()
    found = [ranges_of(profile, activity) for activity in range(3)]
    assert found == [["[step]", "[forward]"], ["[step]"], []]
    (frame, *_) = profile.activities.stacks.path(int(profile.activities.nvtx[0]))
    assert profile.frames[frame].get("placed") == "by GPU time"


def test_work_with_a_launch_is_where_it_was_launched_from() -> None:
    trace = Recorded()
    trace.range("launching", 0, 100)
    trace.gpu_range("running", 0, 900)
    trace.call("cudaLaunchKernel", 20, 25, corr=1)
    trace.kernel("gemm", 500, 600, corr=1)
    trace.kernel("gemm", 600, 700)
    profile = trace.profile()
    assert [ranges_of(profile, activity) for activity in range(2)] == [["launching"], ["[running]"]]


def test_forward_operators_change_stacks_only_in_a_real_trace() -> None:
    path = TRACES / "kineto" / "v100_old_categories.json.gz"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    plain, linked = load(path), load(path, LoadOptions(forward=True))
    assert leaves(project_tree(linked, levels="launch,kernel")) == leaves(
        project_tree(plain, levels="launch,kernel")
    )
    assert plain.coverage["python"].percent < 40
    assert linked.coverage["python"].percent > 95
