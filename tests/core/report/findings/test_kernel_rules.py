"""Findings that are told on request: what is worth a look among the kernels."""

from __future__ import annotations

from itertools import count

import pytest

from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import find
from flame.core.report.scope import Scope
from tests.support.profiles.recorded import Recorded

US = 1_000


def told(trace: Recorded, *, all: bool = True) -> dict[str, Finding]:
    return {one.id: one for one in find(Scope(trace.profile(), all_findings=all)).found}


def row(*kernels: tuple[str, int], pause: int = 0, times: int = 100) -> Recorded:
    """Kernels of so many ns one after the other, ``times`` over."""
    trace, at, ids = Recorded(), 0, count(1)
    for _ in range(times):
        for name, length in kernels:
            corr = next(ids)
            trace.call("cudaLaunchKernel", at, at + pause + 1, corr)
            at += pause
            trace.kernel(name, at + 1, at + 1 + length, corr)
            at += length + 1
    return trace


@pytest.mark.parametrize(
    ("length", "pause", "fires"),
    [(500 * US, 0, True), (498 * US, 0, False), (500 * US, 600 * US, False)],
)
def test_one_kernel(length: int, pause: int, fires: bool) -> None:
    trace = row(("gemm", length), ("softmax", 250 * US), ("relu", 249 * US), pause=pause)
    found = told(trace)
    assert ("one-kernel" in found) == fires
    assert not fires or found["one-kernel"].place is not None
    assert "one-kernel" not in told(trace, all=False)


@pytest.mark.parametrize(
    ("length", "times", "fires"),
    [(9 * US, 100, True), (10 * US, 100, False), (9 * US, 99, False), (8 * US, 100, False)],
)
def test_small_kernels(length: int, times: int, fires: bool) -> None:
    """9 of 60 µs are 15 %."""
    trace = row(("vectorized_elementwise_kernel", length), ("gemm", 51 * US), times=times)
    found = told(trace)
    assert ("small-kernels" in found) == fires
    assert "small-kernels" not in told(trace, all=False)


def experts(pause: int) -> Recorded:
    """Steps of two layers, each with three kernels of experts."""
    trace, at, ids = Recorded(), 0, count(1)
    for step in range(20):
        begin = at
        for layer in range(2):
            start = at
            for _ in range(3):
                corr = next(ids)
                trace.call("cudaLaunchKernel", at, at + pause, corr)
                trace.kernel("fused_moe", at + pause, at + pause + 100 * US, corr)
                at += pause + 100 * US
            trace.range(f"layers.{layer}", start, at - 1)
        trace.range(f"step {step}", begin, at - 1)
    return trace


@pytest.mark.parametrize(("pause", "fires"), [(150 * US, True), (US, False)])
def test_many_experts_kernels_where_launches_bound(pause: int, fires: bool) -> None:
    found = told(experts(pause))
    assert ("launch-bound" in found) == ("many-experts-kernels" in found) == fires
    if fires:
        assert "3 kernels for experts in each layer" in found["many-experts-kernels"].claim


def test_what_is_below_a_hundredth_is_told_on_request() -> None:
    trace = Recorded()
    for number in range(60):
        at = number * 1_010 * US
        trace.call("cudaMalloc", at - 6 * US, at - US)
        trace.call("cudaLaunchKernel", at - US, at, number + 1)
        trace.kernel("gemm", at, at + 1_000 * US, number + 1)
    assert not told(trace, all=False)
    found = told(trace)["alloc-in-loop"]
    assert (found.severity, found.bound) == ("info", 59 * 5 * US)


def test_graphs_that_were_traced_node_by_node() -> None:
    trace = row(("gemm", 100 * US), times=90)
    for number in range(10):
        trace.kernel("node", 10**9 + number, 10**9 + number + 1, 5_000, node=number)
    assert "graph-nodes" in told(trace)
    assert "graph-nodes" not in told(trace, all=False)
