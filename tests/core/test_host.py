"""Host time: every instant of a thread goes to the innermost range or call that is open."""

from __future__ import annotations

from collections import Counter

from flame.core.frames import Kind
from flame.core.profile import Profile
from tests.core.recorded import Recorded

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


def test_the_default_levels_of_the_host_metric_are_thread_range_call() -> None:
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.call("cudaLaunchKernel", 50, 55)
    tree = trace.profile().tree(metric="host")
    assert tree.names(len(tree) - 1) == ("main [100]", "step", "cudaLaunchKernel")
    assert tree.total[0] == 100
