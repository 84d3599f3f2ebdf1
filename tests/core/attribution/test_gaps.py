"""What a profile says of its own gaps, and how to record what is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.attribution.gaps import describe_gaps
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.meta import Meta
from flame.core.sampling.attach import attach_sampling
from tests.support.generated.sampled import Run
from tests.support.profiles.recorded import Recorded


def said(trace: Recorded, about: str) -> list[str]:
    """The findings that speak of ``about``."""
    return [line for line in describe_gaps(trace.profile()) if about in line]


def test_opaque_graphs_that_hold_the_time_are_named_with_the_flag_to_use() -> None:
    trace = Recorded()
    trace.kernel("CUDA graph 1", 0, 90, kind=Kind.GRAPH)
    trace.kernel("gemm", 100, 110)
    assert said(trace, "graphs") == [
        "90.0 % of GPU time is in CUDA graphs traced as a whole, their kernels were not recorded: "
        "record with --cuda-graph-trace=node"
    ]


def test_opaque_graphs_under_one_percent_are_not_worth_a_word() -> None:
    trace = Recorded()
    trace.kernel("CUDA graph 1", 0, 9, kind=Kind.GRAPH)
    trace.kernel("gemm", 10, 1_010)
    assert said(trace, "graphs") == []


def test_launches_that_were_not_recorded_are_counted() -> None:
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, 1, corr=1)
    trace.kernel("gemm", 10, 40, corr=1)
    trace.kernel("gemm", 50, 60, corr=2)
    assert said(trace, "launch: ") == [
        "1 of 2 GPU activities (25.0 % of GPU time) has no recorded launch: capture began later, "
        "or API calls were filtered"
    ]


def test_graph_kernels_without_a_capture_are_counted() -> None:
    trace = Recorded()
    trace.range("layer", 0, 10)
    trace.node(5, -1, 5)
    for node in (5, 6, 7):
        trace.kernel("gemm", 20, 30, node=node)
    (line,) = said(trace, "show no range")
    assert line.startswith("2 of 3 CUDA graph kernels show no range of their capture")


def test_graph_kernels_that_all_find_their_capture_are_no_finding() -> None:
    trace = Recorded()
    trace.range("layer", 0, 10)
    trace.node(5, -1, 5)
    trace.kernel("gemm", 20, 30, node=5)
    assert said(trace, "show no range") == []


def covered(ns: int) -> Recorded:
    """A trace in which ``ns`` of 100 ns of GPU time were launched in a range."""
    trace = Recorded()
    trace.range("step", 0, 5)
    trace.call("cudaLaunchKernel", 1, 2, corr=1)
    trace.call("cudaLaunchKernel", 8, 9, corr=2)
    trace.kernel("gemm", 10, 10 + ns, corr=1)
    trace.kernel("gemm", 200, 300 - ns, corr=2)
    return trace


def test_no_ranges_at_all() -> None:
    (line,) = said(covered(0), "NVTX")
    assert line.startswith("no NVTX ranges around launches: record with --trace=cuda,nvtx")


def test_low_coverage_is_said_in_percent() -> None:
    (line,) = said(covered(47), "NVTX")
    assert line.startswith("NVTX coverage 47 % of GPU time")


def test_good_coverage_is_no_finding() -> None:
    assert said(covered(80), "NVTX") == []


def test_python_frames_are_missed_only_where_there_are_none() -> None:
    trace = covered(100)
    assert len(said(trace, "--python-backtrace=cuda")) == 1
    trace = Recorded()
    trace.call("cudaLaunchKernel", 1, 2, corr=1, python=["main"])
    trace.kernel("gemm", 10, 20, corr=1)
    assert said(trace, "--python-backtrace=cuda") == []


def test_a_trace_without_gpu_work_is_told_of_the_host_metric_and_nothing_else() -> None:
    trace = Recorded()
    trace.range("step", 0, 5)
    (line,) = describe_gaps(trace.profile())
    assert "host metric" in line


def test_work_without_a_launch_is_not_said_to_be_launched_outside_ranges() -> None:
    trace = Recorded()
    trace.range("step", 0, 5)
    trace.call("cudaLaunchKernel", 1, 2, corr=1)
    trace.kernel("gemm", 10, 60, corr=1)
    trace.kernel("gemm", 60, 110)
    assert said(trace, "NVTX") == []


def said_of_torch(trace: Recorded, about: str) -> list[str]:
    """The findings on the trace, had it been recorded with PyTorch's profiler."""
    return [line for line in describe_gaps(trace.profile(Meta(format="kineto"))) if about in line]


def test_advice_fits_pytorch_traces() -> None:
    assert said_of_torch(covered(100), "Python") == [
        "no Python frames: record with torch.profiler.profile(with_stack=True)"
    ]
    assert len(said_of_torch(covered(0), "no operators around")) == 1
    assert said_of_torch(covered(47), "operators") == [
        "operators are around 47 % of GPU time: the rest was launched outside any"
    ]
    trace = Recorded()
    trace.kernel("gemm", 0, 9)
    assert len(said_of_torch(trace, "the profiler started later")) == 1
    for recorded in (covered(0), covered(47), trace, Recorded()):
        assert said_of_torch(recorded, "NVTX") == said_of_torch(recorded, "--trace") == []


def test_a_pytorch_trace_without_gpu_work_is_told_what_there_is() -> None:
    trace = Recorded()
    trace.function("main", 0, 5)
    assert said_of_torch(trace, "") == [
        "no GPU activity in this trace: the host metric shows Python calls and operators"
    ]


def test_what_was_queued_before_the_profiler_is_told_from_gaps_in_between() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 10)
    trace.call("cudaLaunchKernel", 5, 6, corr=1)
    trace.kernel("gemm", 20, 30, corr=1)
    (line,) = said_of_torch(trace, "no recorded launch")
    assert "queued before the profiler started" in line
    assert "queued before" not in said(trace, "no recorded launch")[0]
    trace.kernel("gemm", 40, 50)
    (line,) = said_of_torch(trace, "no recorded launch")
    assert "queued before" not in line


def replaying(ns: int) -> Recorded:
    """A graph with two kernels of ``ns`` in all, and 1,000 ns beside it."""
    trace = Recorded()
    trace.call("hipGraphLaunch", 0, 5, corr=1)
    trace.kernel("gemm", 10, 10 + ns - 1, corr=1)
    trace.kernel("norm", 10 + ns, 11 + ns, corr=1)
    trace.call("hipLaunchKernel", 6, 7, corr=2)
    trace.kernel("copy", 5_000, 6_000, corr=2)
    return trace


def test_of_replayed_graphs_pytorch_does_not_know_the_operators() -> None:
    (line,) = said_of_torch(replaying(3_000), "graphs")
    assert line.startswith("75.0 % of GPU time was replayed from graphs (hipGraphLaunch): ")
    assert said_of_torch(replaying(9), "graphs") == []
    assert said(replaying(3_000), "replayed from graphs") == []


def test_without_gpu_and_python_that_is_missed_too() -> None:
    trace = Recorded()
    trace.range("aten::mm", 0, 5)
    assert said_of_torch(trace, "") == [
        "no GPU activity in this trace: the host metric shows operators",
        "no Python frames: record with torch.profiler.profile(with_stack=True)",
    ]


def little_python(forward: bool) -> Recorded:
    """Work launched below a Python function, and twice as much from a backward pass."""
    trace = Recorded()
    trace.function("main", 0, 9)
    row = trace.range("aten::mm", 1, 3)
    trace.range("unknown operator", 0, 100, thread=1)
    trace.range("MmBackward", 20, 30, thread=1, forward=row if forward else -1)
    for correlation, (start, thread) in enumerate([(2, 0), (25, 1), (40, 1)], 1):
        trace.call("cudaLaunchKernel", start, start + 1, correlation, thread=thread)
        trace.kernel("gemm", 100 * correlation, 100 * correlation + 50, correlation)
    return trace


def test_launches_without_python_frames_are_told_of_the_forward_option() -> None:
    (line,) = said_of_torch(little_python(forward=False), "Python frames")
    assert line.startswith("Python frames for 33 % of GPU time") and "--forward" in line


def test_the_forward_option_is_not_recommended_to_who_has_given_it() -> None:
    (line,) = said_of_torch(little_python(forward=True), "Python frames")
    assert line.startswith("Python frames for 67 % of GPU time") and "--forward" not in line


def test_findings_are_among_the_warnings_of_a_profile() -> None:
    profile = covered(0).profile()
    assert set(describe_gaps(profile)) <= set(profile.warnings)


def sampled(ns: int) -> Run:
    """Of 100 ns of GPU time ``ns`` are of a kernel with samples; two others have some of each."""
    durations = {"gemm": ns, "relu": (100 - ns) // 3, "topk": 100 - ns - (100 - ns) // 3}
    launches = tuple(((), (), name, duration) for name, duration in durations.items())
    return Run(launches, (((0, 0, 0, 7),),), (0, -1, -1))


def unsampled_said(run: Run) -> list[str]:
    return [line for line in run.profile().warnings if "PC samples" in line]


def test_the_heaviest_kernel_without_samples_is_named() -> None:
    assert unsampled_said(sampled(70)) == [
        "70.0 % of GPU time has PC samples: the heaviest kernel without any is topk "
        "(20.0 % of GPU time)"
    ]


def test_kernels_without_samples_that_take_no_time_are_not_worth_a_word() -> None:
    assert unsampled_said(sampled(96)) == []


def test_where_nobody_took_samples_none_are_missed() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 90)
    assert said(trace, "PC samples") == []


def test_samples_that_are_added_later_take_back_what_was_said() -> None:
    profile = sampled(70).profile()
    assert profile.sampling is not None
    everywhere = replace(profile.sampling, of_group=np.zeros_like(profile.sampling.of_group))
    after = attach_sampling(profile, FrameBuilder.from_table(profile.frames), everywhere)
    assert [line for line in after.warnings if "PC samples" in line] == []
    assert set(after.warnings) < set(profile.warnings)
