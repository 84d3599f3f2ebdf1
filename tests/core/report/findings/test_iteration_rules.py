"""Rules on iterations: where they fire, where they just do not, where they abstain."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import Findings, find
from flame.core.report.scope import Scope
from tests.support.profiles.recorded import Recorded

US, MS = 1_000, 1_000_000


def program(periods: Iterable[int], before: int = 0, name: str = "step") -> Recorded:
    """Iterations, whose kernel takes all but 1 ms of them, after a kernel of 1 µs at 0."""
    trace = Recorded()
    trace.call("cudaLaunchKernel", 0, US, 1_000)
    trace.kernel("load", 2 * US, 3 * US, 1_000)
    at = before + 2 * US
    for number, period in enumerate(periods, 1):
        trace.range(f"{name} {number}", at, at + period)
        trace.call("cudaLaunchKernel", at, at + US, number)
        trace.kernel("gemm", at + MS, at + period, number)
        at += period
    return trace


def found(trace: Recorded) -> Findings:
    return find(Scope(trace.profile()))


def by_id(trace: Recorded) -> dict[str, Finding]:
    return {one.id: one for one in found(trace).found}


@pytest.mark.parametrize(("before", "fires"), [(25 * MS, True), (24 * MS, False)])
def test_capture_window(before: int, fires: bool) -> None:
    trace = program([10 * MS] * 10, before)
    told = by_id(trace)
    assert ("capture-window" in told) == fires
    assert ("host-bound" in told) and found(trace).found[0].id == (
        "capture-window" if fires else "host-bound"
    )
    if fires:
        one = told["capture-window"]
        assert (one.severity, one.bound) == ("info", None)
        assert "25.0 ms (20.0 % of the window)" in one.claim
        assert "--time 25.002ms/)" in one.claim and "compute 90.0 %" in one.claim
        assert {each.name: each.value for each in one.evidence}["then: compute"] == 90 * MS
        assert one.place is not None and one.place.window == (25 * MS + 2 * US, 125 * MS + 2 * US)


def test_warm_up_is_before_the_steady_part() -> None:
    told = found(program([40 * MS, *[10 * MS] * 10])).found
    assert told[0].id == "capture-window", "the shares of all others are to be read with it"
    assert told[0].evidence[0].value == 40 * MS  # to the first kernel, which began at 2 µs


@pytest.mark.parametrize(
    ("slowest", "fires"), [(12 * MS, True), (11 * MS + 1, True), (11 * MS, False)]
)
def test_slow_iterations(slowest: int, fires: bool) -> None:
    periods = [10 * MS] * 9 + [slowest, 10 * MS]
    told = by_id(program(periods))
    assert ("slow-iterations" in told) == (fires and slowest - 10 * MS >= sum(periods) / 100)
    if "slow-iterations" in told:
        one = told["slow-iterations"]
        assert "the ranges such as step 1: --iteration names others" in one.caution
        assert (one.severity, one.bound, one.device) == ("info", None, None)
        assert one.evidence[0].value == slowest - 10 * MS
        assert "the longest is iteration 10 with" in one.claim and "more compute" in one.claim
        window = one.place and one.place.window
        assert window is not None and window[1] - window[0] == slowest


def test_a_slow_iteration_of_many_is_too_little() -> None:
    periods = [10 * MS] * 50 + [12 * MS] + [10 * MS] * 150
    assert "slow-iterations" not in by_id(program(periods))


@pytest.mark.parametrize(
    ("number", "name", "why"),
    [
        (9, "step", {"slow-iterations": "there are fewer than 10 iterations"}),
        (
            10,
            "work",
            {
                "slow-iterations": "no iterations were found",
                "capture-window": "no iterations were found",
            },
        ),
    ],
)
def test_where_iterations_are_not_judged(number: int, name: str, why: dict[str, str]) -> None:
    abstained = found(program([10 * MS] * number, name=name)).abstained
    assert {one.id: one.why for one in abstained if one.id not in ("tail", "below-bound")} == why


@pytest.mark.parametrize(
    ("names", "each"),
    [
        (("cudaMalloc", "cudaFree"), 2),
        (("cuMemAlloc_v2",), 1),
        (("cudaMallocAsync", "cudaMallocHost", "cudaFreeHost"), 0),
    ],
)
def test_allocations_of_each_iteration(names: tuple[str, ...], each: int) -> None:
    trace = program([10 * MS] * 10)
    for number in range(2, 10):  # in none of the first
        for place, name in enumerate(names):
            at = 2 * US + number * 10 * MS + (2 + place) * US
            trace.call(name, at, at + 1)
    told = by_id(trace)
    assert ("alloc-in-loop" in told) == bool(each)
    if each:
        assert (told["alloc-in-loop"].severity, told["alloc-in-loop"].bound) == ("info", None)
        assert told["alloc-in-loop"].evidence[0].value == each


def test_allocations_of_less_than_half_of_the_iterations_are_none_of_each() -> None:
    trace = program([10 * MS] * 10)
    for number in range(5, 9):
        at = 4 * US + number * 10 * MS
        trace.call("cudaMalloc", at, at + 1)
    assert "alloc-in-loop" not in by_id(trace)
