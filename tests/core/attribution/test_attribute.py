"""Attribution, rule by rule: which stack every activity gets, and what is counted as missing."""

from __future__ import annotations

import pytest

from flame.core.attribution.nesting import MAX_DEPTH
from flame.core.errors import InputError
from flame.core.model.frames import NO_LAUNCH, Kind
from flame.core.model.meta import GraphNodes, Meta
from flame.core.model.profile import Profile
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def ranges_of(profile: Profile, activity: int = 0) -> list[str]:
    """Names of the ranges around an activity, outermost first; captured ones in brackets."""
    table = profile.activities
    frames = [profile.frames[frame] for frame in table.stacks.path(int(table.nvtx[activity]))]
    return [f"[{frame.name}]" if frame.get("captured") else frame.name for frame in frames]


def test_the_ranges_of_a_kernel_are_those_open_at_its_launch_not_while_it_runs() -> None:
    trace = Recorded()
    trace.range("launching", 0, 30)
    trace.range("running", 900, 2_000)
    trace.call("cudaLaunchKernel", 20, 40, corr=1)
    trace.kernel("gemm", 1_000, 1_100, corr=1)
    assert ranges_of(trace.profile()) == ["launching"]


def test_the_ranges_are_those_of_the_launching_thread() -> None:
    trace = Recorded()
    trace.range("main", 0, 100, thread=0)
    trace.range("worker", 0, 100, thread=1)
    trace.call("cudaLaunchKernel", 20, 25, corr=1, thread=1)
    trace.kernel("gemm", 1_000, 1_100, corr=1)
    assert ranges_of(trace.profile()) == ["worker"]


def test_a_kernel_without_a_launch_is_kept_and_says_so() -> None:
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.kernel("gemm", 10, 30)
    profile = trace.profile()
    assert leaves(project_tree(profile)) == {(NO_LAUNCH, "gemm"): 20}
    assert profile.coverage["launch"].ns == 0
    assert profile.activities.launch_start.tolist() == [-1]


def test_a_kernel_may_start_before_its_call() -> None:
    trace = Recorded()
    trace.range("step", 0, 100)
    trace.call("cudaLaunchKernel", 50, 60, corr=1)
    trace.kernel("gemm", 40, 45, corr=1)
    assert leaves(project_tree(trace.profile())) == {("cudaLaunchKernel", "step", "gemm"): 5}


def test_an_activity_that_names_no_process_gets_that_of_its_launch() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 1, corr=1, thread=2)
    trace.kernel("gemm", 10, 20, corr=1, process=-1)
    assert leaves(project_tree(trace.profile(), levels="process")) == {("process [200]",): 10}


def test_stacks_come_from_the_row_that_repeats_the_call_for_its_chain() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 5, 8, corr=1)
    trace.call("cuLaunch", 4, 9, corr=1, python=["main"], native=["at::mm"], chain_only=True)
    trace.kernel("gemm", 10, 20, corr=1)
    assert leaves(project_tree(trace.profile())) == {
        ("main", "at::mm", "cudaLaunchKernel", "gemm"): 10
    }


def replay(*nodes: tuple[int, int, int]) -> Recorded:
    """A replay in range "decode" of a kernel of node 9; ``nodes`` are (node, original, start).

    The capture ran at negative times, on another thread, in "model" and from -50 in "layer".
    """
    trace = Recorded()
    trace.range("model", -100, -10, thread=1)
    trace.range("layer", -50, -20, thread=1)
    for node, original, start in nodes:
        trace.node(node, original, start, thread=1)
    trace.range("decode", 0, 100)
    trace.call("cudaGraphLaunch", 10, 20, corr=1)
    trace.kernel("gemm", 30, 40, corr=1, node=9)
    return trace


def test_a_replayed_kernel_gets_the_ranges_of_its_capture_below_the_replay() -> None:
    profile = replay((9, 8, -5), (8, 7, -6), (7, -1, -30)).profile()
    assert ranges_of(profile) == ["decode", "[model]", "[layer]"]
    assert profile.graph_nodes == GraphNodes(1, 1)


def test_captured_and_own_ranges_of_one_name_stay_apart() -> None:
    trace = replay((9, -1, -30))
    trace.range("model", 5, 50)
    assert ranges_of(trace.profile()) == ["decode", "model", "[model]", "[layer]"]


def test_what_cannot_be_traced_back_is_counted_and_keeps_its_own_ranges() -> None:
    profile = replay((9, 8, -5)).profile()
    assert ranges_of(profile) == ["decode"]
    assert profile.graph_nodes == GraphNodes(1, 0)


def test_a_capture_outside_any_range_counts_as_not_traced_back() -> None:
    profile = replay((9, -1, -5)).profile()
    assert ranges_of(profile) == ["decode"]
    assert profile.graph_nodes == GraphNodes(1, 0)


def test_kernels_of_one_graph_launch_each_get_their_own_layer() -> None:
    trace = Recorded()
    for layer in range(3):
        trace.range(f"layer.{layer}", 10 * layer, 10 * layer + 9)
        trace.node(layer, -1, 10 * layer + 5)
    trace.call("cudaGraphLaunch", 100, 110, corr=1)
    for layer in (2, 0, 1):
        trace.kernel(f"gemm {layer}", 200, 201, corr=1, node=layer)
    assert leaves(project_tree(trace.profile(), levels="nvtx,kernel")) == {
        (f"layer.{layer}", f"gemm {layer}"): 1 for layer in range(3)
    }


def test_coverage_is_the_share_of_gpu_time() -> None:
    trace = Recorded()
    trace.range("step", 0, 10)
    trace.call("cudaLaunchKernel", 5, 6, corr=1, native=["at::mm"])
    trace.call("cudaLaunchKernel", 20, 21, corr=2, python=["main"])
    trace.kernel("a", 100, 110, corr=1)
    trace.kernel("b", 110, 140, corr=2)
    trace.kernel("c", 140, 200)
    coverage = trace.profile().coverage
    assert {key: (share.ns, share.percent) for key, share in coverage.items()} == {
        "launch": (40, 40.0),
        "nvtx": (10, 10.0),
        "python": (30, 30.0),
        "native": (10, 10.0),
    }


def test_an_empty_trace_is_a_profile_of_nothing() -> None:
    profile = Recorded().profile()
    assert (profile.gpu_time, profile.duration) == (0, 0)
    assert {share.percent for share in profile.coverage.values()} == {0.0}
    assert set(profile.counts.values()) == {0}


def test_the_trace_lasts_from_its_first_to_its_last_record() -> None:
    trace = Recorded()
    trace.range("step", -30, 10)
    trace.range("never closed", 20, None)
    trace.kernel("gemm", 10, 70)
    profile = trace.profile()
    assert (profile.begin, profile.end, profile.duration) == (-30, 70, 100)


def test_activities_are_counted_by_kind() -> None:
    trace = Recorded()
    for kind in (Kind.KERNEL, Kind.KERNEL, Kind.MEMCPY, Kind.GRAPH):
        trace.kernel("x", 0, 1, kind=kind)
    assert trace.profile().counts == {"kernel": 2, "memcpy": 1, "memset": 0, "graph": 1}


def test_rows_that_differ_in_time_only_are_one_group() -> None:
    trace = Recorded()
    for start in range(5):
        trace.kernel("gemm", start, start + 1)
    trace.kernel("gemm", 9, 10, stream=8)
    table = trace.profile().activities
    assert len(table.groups) == 2
    assert table.groups.stream[table.groups.of_row].tolist() == [7, 7, 7, 7, 7, 8]


def warnings_about(trace: Recorded, about: str) -> list[str]:
    return [line for line in trace.profile().warnings if about in line]


def test_odd_times_are_warned_about() -> None:
    trace = Recorded()
    trace.kernel("gemm", 20, 10)
    trace.kernel("CUDA graph 1", 0, 0, kind=Kind.GRAPH)
    trace.range("backwards", 9, 5)
    assert len(warnings_about(trace, "1 GPU activity ends before it starts")) == 1
    assert len(warnings_about(trace, "1 CUDA graph launch was recorded without times")) == 1
    assert len(warnings_about(trace, "1 NVTX range ends before it starts")) == 1


def test_ranges_nested_too_deep_are_warned_about() -> None:
    trace = Recorded()
    for level in range(MAX_DEPTH + 2):
        trace.range("recursion", level, 3_000 - level)
    (warning,) = warnings_about(trace, "nested deeper")
    assert warning.startswith(f"2 NVTX ranges are nested deeper than {MAX_DEPTH}")


def test_odd_ranges_of_pytorch_traces_are_called_what_they_are() -> None:
    trace = Recorded()
    trace.range("backwards", 9, 5)
    assert "1 operator ends before it starts: left out" in (
        trace.profile(Meta(format="kineto")).warnings
    )


def test_usual_times_are_not_warned_about() -> None:
    trace = Recorded()
    trace.range("step", 0, 5)
    trace.kernel("gemm", 10, 20)
    assert warnings_about(trace, "end before") == warnings_about(trace, "nested") == []


def test_times_whose_sum_would_not_fit_are_damage() -> None:
    trace = Recorded()
    for _ in range(5):
        trace.kernel("gemm", 0, 1 << 60)
    with pytest.raises(InputError, match="century"):
        trace.profile()


def test_a_graph_without_times_leaves_no_gap_before_the_next_kernel() -> None:
    trace = Recorded()
    trace.kernel("CUDA graph 1", 0, 0, kind=Kind.GRAPH)
    trace.kernel("gemm", 1_000, 1_010)
    profile = trace.profile()
    assert profile.activities.idle.tolist() == [0, 0]
    assert (profile.begin, profile.end) == (1_000, 1_010)
