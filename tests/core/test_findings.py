"""What a profile says of its own gaps, and how to record what is missing."""

from __future__ import annotations

from flame.core.findings import findings
from flame.core.frames import Kind
from tests.core.recorded import Recorded


def said(trace: Recorded, about: str) -> list[str]:
    """The findings that speak of ``about``."""
    return [line for line in findings(trace.profile()) if about in line]


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
        "1 of 2 GPU activities (25.0 % of GPU time) have no recorded launch: capture began later, "
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
    (line,) = findings(trace.profile())
    assert "host metric" in line


def test_findings_are_among_the_warnings_of_a_profile() -> None:
    profile = covered(0).profile()
    assert set(findings(profile)) <= set(profile.warnings)
