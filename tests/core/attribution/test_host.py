"""Host time: every instant of a thread goes to the innermost range or call that is open."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves

Spent = dict[tuple[int, tuple[str, ...], str], int]
"""ns by (thread, open ranges, innermost call or nothing)."""


def spent(profile: Profile) -> Spent:
    table, found = profile.host, Counter[tuple[int, tuple[str, ...], str]]()
    for row, ns in enumerate(table.duration.tolist()):
        ranges = (profile.frames[frame].name for frame in table.stacks.path(int(table.nvtx[row])))
        call = int(table.launch[row])
        name = profile.frames[call].name if call >= 0 else ""
        found[int(table.thread[row]), tuple(ranges), name] += ns
    return {key: ns for key, ns in found.items() if ns}


def test_a_range_is_charged_with_what_nothing_inside_it_takes() -> None:
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.range("forward", 10, 40)
    trace.call("cudaLaunchKernel", 50, 55)
    assert spent(trace.profile()) == {
        (0, ("step",), ""): 65,
        (0, ("step", "forward"), ""): 30,
        (0, ("step",), "cudaLaunchKernel"): 5,
    }


def test_of_nested_calls_the_inner_one_is_charged() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 10)
    trace.call("cuLaunchKernel", 2, 9)
    assert spent(trace.profile()) == {
        (0, (), "cudaLaunchKernel"): 3,
        (0, (), "cuLaunchKernel"): 7,
    }


def test_crossing_ranges_are_never_charged_twice() -> None:
    trace = Recorded()
    trace.range("a", 0, 10)
    trace.range("b", 6, 20)
    assert spent(trace.profile()) == {
        (0, ("a",), ""): 6,
        (0, ("a", "b"), ""): 4,
        (0, ("b",), ""): 10,
    }


def test_threads_spend_their_own_time() -> None:
    trace = Recorded()
    trace.range("step", 0, 100, thread=0)
    trace.range("step", 0, 100, thread=2)
    profile = trace.profile()
    assert spent(profile) == {(0, ("step",), ""): 100, (2, ("step",), ""): 100}
    assert sorted(profile.host.process.tolist()) == [0, 1]


def test_a_row_that_only_repeats_a_call_takes_no_time() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 10, chain_only=True)
    trace.call("cudaLaunchKernel", 2, 8)
    assert spent(trace.profile()) == {(0, (), "cudaLaunchKernel"): 6}


def test_a_range_that_was_never_closed_lasts_to_the_end() -> None:
    trace = Recorded()
    trace.range("serve", 10, None)
    trace.kernel("gemm", 20, 90)
    assert spent(trace.profile()) == {(0, ("serve",), ""): 80}


def test_what_runs_on_unknown_threads_is_left_out() -> None:
    trace = Recorded()
    trace.range("step", 0, 100, thread=-1)
    trace.call("cudaLaunchKernel", 0, 10, thread=-1)
    assert spent(trace.profile()) == {}


def test_rows_say_whether_a_range_or_a_call_was_innermost() -> None:
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.call("cudaLaunchKernel", 50, 55)
    assert sorted(trace.profile().host.kind.tolist()) == [Kind.LAUNCH, Kind.NVTX]


def test_the_default_levels_of_the_host_metric_are_thread_python_range_call() -> None:
    trace = Recorded()
    trace.function("main", 0, 100)
    trace.range("step", 0, 100)
    trace.call("cudaLaunchKernel", 50, 55)
    tree = project_tree(trace.profile(), metric="host")
    assert tree.names(len(tree) - 1) == ("main [100]", "main", "step", "cudaLaunchKernel")
    assert tree.total[0] == 100


def test_functions_ranges_and_calls_nest_together() -> None:
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.range("aten::linear", 10, 90)
    trace.function("hook", 20, 60, 2, 1)
    trace.call("cudaLaunchKernel", 30, 35)
    assert leaves(project_tree(trace.profile(), levels="python,nvtx,launch", metric="host")) == {
        ("main",): 20,
        ("main", "aten::linear"): 40,
        ("main", "hook", "aten::linear"): 35,
        ("main", "hook", "aten::linear", "cudaLaunchKernel"): 5,
    }


def test_a_function_that_outlives_its_caller_is_still_called_by_it() -> None:
    trace = Recorded()
    trace.function("main", 0, 100, 1)
    trace.function("f", 10, 50, 2, 1)
    trace.function("g", 20, 51, 3, 2)
    assert leaves(project_tree(trace.profile(), levels="python", metric="host")) == {
        ("main",): 59,
        ("main", "f"): 10,
        ("main", "f", "g"): 31,
    }


def test_of_equal_times_functions_are_outside_ranges_and_those_outside_calls() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 9)
    trace.range("step", 0, 9)
    trace.function("main", 0, 9)
    profile = trace.profile()
    assert profile.host.kind[profile.host.duration > 0].tolist() == [Kind.LAUNCH]
    assert spent(profile) == {(0, ("step",), "cudaLaunchKernel"): 9}


Span = tuple[int, int]
spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)


@given(spans, spans, spans)
def test_host_time_is_the_time_in_which_anything_is_open(
    functions: list[Span], ranges: list[Span], calls: list[Span]
) -> None:
    trace = Recorded()
    for number, (start, end) in enumerate(functions):
        trace.function(f"f{number}", start, end, number + 1, number)
    for start, end in ranges:
        trace.range("step", start, end)
    for start, end in calls:
        trace.call("cudaLaunchKernel", start, end)
    opened = {time for start, end in functions + ranges + calls for time in range(start, end)}
    assert trace.profile().host.duration.sum() == len(opened)
