"""Rules: each on the smallest trace that fires it, on one just below, and where it must abstain."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import Findings, find
from flame.core.report.scope import Scope
from tests.support.writers.nsysfile import DTOD, DTOH, HTOD, NsysFile, gtid

US, MS = 1_000, 1_000_000
STEP = 400 * US
"""From one kernel to the next."""


class Run:
    """A program that launches a kernel every 400 µs, each of them ``busy`` ns long."""

    def __init__(self, path: Path, kernels: int = 100) -> None:
        self.file = NsysFile(path)
        self.ids = count(1)
        self.kernels = kernels
        self.begin = self.end = 0

    def launch(
        self, launch: int, at: int, busy: int, *, name: str = "gemm", call: int = US
    ) -> None:
        corr = next(self.ids)
        self.file.api("cudaLaunchKernel_v7000", launch, launch + call, corr=corr)
        self.file.kernel(name, at, at + busy, corr=corr)

    def pauses(self, pause: int, busy: int = STEP) -> None:
        """Launch each kernel ``pause`` after the end of the one before."""
        for number in range(self.kernels):
            at = number * (pause + busy)
            self.launch(at - US, at, busy)

    def call(self, name: str, begin: int, end: int) -> None:
        self.file.api(name, begin, end, corr=next(self.ids))

    def found(self) -> Findings:
        self.file.close()
        return find(Scope(load(self.file.path)))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    return lambda **options: Run(tmp_path / "trace.sqlite", **options)


def by_id(found: Findings) -> dict[str, Finding]:
    return {one.id: one for one in found.found}


MakeRun = Callable[..., Run]


def test_a_fed_gpu_has_no_finding(run: MakeRun) -> None:
    trace = run()
    trace.pauses(US)
    found = trace.found()
    assert not found.found
    abstained = {one.id for one in found.abstained}
    assert abstained == {"below-bound", "capture-window", "slow-iterations"}


# Idle time


@pytest.mark.parametrize(("pause", "fires"), [(600, True), (400, False)])
def test_launch_bound_by_very_many_kernels(run: MakeRun, pause: int, fires: bool) -> None:
    trace = run(kernels=1_100)
    for number in range(trace.kernels):
        at = number * 10 * US
        trace.launch(at + pause - 1, at + pause, 10 * US - pause, call=1)
    found = by_id(trace.found())
    assert {*found} == ({"launch-bound"} if fires else set())
    if fires:
        assert found["launch-bound"].bound == (trace.kernels - 1) * pause
        assert found["launch-bound"].severity == "medium"


@pytest.mark.parametrize(("call", "fires"), [(101 * US, True), (100 * US, False)])
def test_launch_bound_by_kernels_shorter_than_their_launch(
    run: MakeRun, call: int, fires: bool
) -> None:
    trace = run(kernels=60)
    for number in range(trace.kernels):
        at = number * 250 * US
        trace.launch(at, at + 150 * US, 100 * US, call=call)
    assert ("launch-bound" in by_id(trace.found())) == fires


@pytest.mark.parametrize(
    ("pause", "fires"), [(300 * US, True), (201 * US, True), (200 * US, False)]
)
def test_host_bound_is_of_long_pauses(run: MakeRun, pause: int, fires: bool) -> None:
    trace = run()
    trace.file.nvtx("load batch", 0, trace.kernels * (STEP + pause))
    trace.pauses(pause)
    found = by_id(trace.found())
    assert ("host-bound" in found) == fires
    if fires:
        expected = (trace.kernels - 1) * pause
        assert found["host-bound"].bound == expected
        assert found["host-bound"].severity == "high"
        assert "load batch" in found["host-bound"].claim
        assert found["host-bound"].place is not None
        window = found["host-bound"].place.window
        assert window is not None and window[1] - window[0] == pause


def test_a_pause_that_a_synchronization_began_is_no_pause_of_the_host(run: MakeRun) -> None:
    trace = run()
    trace.pauses(300 * US)
    for number in range(trace.kernels):
        end = number * (STEP + 300 * US) + STEP
        trace.call("cudaStreamSynchronize_v3020", end - 10, end + 5 * US)
    found = by_id(trace.found())
    assert {*found} == {"sync-drain"}
    assert found["sync-drain"].bound == (trace.kernels - 1) * 300 * US


@pytest.mark.parametrize(("late", "id"), [(0, "sync-drain"), (1, "host-bound")])
def test_a_synchronization_drains_until_20_us_after_it(run: MakeRun, late: int, id: str) -> None:
    trace = run()
    trace.pauses(300 * US)
    for number in range(trace.kernels):
        end = number * (STEP + 300 * US) + STEP
        trace.call("cudaStreamSynchronize_v3020", end - 30 * US, end - 20 * US - late)
    assert {*by_id(trace.found())} == {id}


def test_first_launches_that_load_their_kernel(run: MakeRun) -> None:
    trace = run()
    at = 0
    for number in range(trace.kernels):
        trace.launch(at, at + 300 * US, STEP, name=f"kernel {number}", call=299 * US)
        at += 300 * US + STEP
    found = by_id(trace.found())
    # The host's time after the launch of the first kernel is in no gap.
    assert found["loading"].bound == (trace.kernels - 1) * 299 * US
    assert "host-bound" not in found and "launch-bound" not in found


def test_allocations_before_launches(run: MakeRun) -> None:
    trace = run()
    trace.pauses(100 * US)
    for number in range(trace.kernels):
        begin = number * (STEP + 100 * US) + STEP
        trace.call("cudaFree_v3020", begin, begin + 50 * US)
    found = by_id(trace.found())
    assert found["alloc-in-loop"].bound == (trace.kernels - 1) * 50 * US


def test_without_launches_nobody_is_blamed(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for number in range(100):
            file.kernel("gemm", number * MS, number * MS + STEP, corr=None)
    found = find(Scope(load(tmp_path / "trace.sqlite")))
    assert not found.found
    assert {one.id for one in found.abstained} >= {"launch-bound", "host-bound"}


def test_few_activities_are_told_as_info(run: MakeRun) -> None:
    trace = run(kernels=49)
    trace.pauses(300 * US)
    found = by_id(trace.found())["host-bound"]
    assert found.severity == "info"
    assert found.caution == "49 activities in 34.0 ms: too little to judge"


def test_what_is_not_known_of_launches_is_told(run: MakeRun) -> None:
    trace = run()
    trace.pauses(300 * US)
    trace.file.kernel("gemm", 100 * (STEP + 300 * US), 101 * (STEP + 300 * US), corr=None)
    assert by_id(trace.found())["host-bound"].caution == (
        "launches of 99.0 % of the kernels were recorded"
    )


@pytest.mark.parametrize("early", [0, 1, 3])
def test_clocks_that_differ_are_told(run: MakeRun, early: int) -> None:
    trace = run(kernels=200)
    for number in range(200):
        at = number * (STEP + 300 * US)
        trace.launch(at + 5 * US * (number < early) - US, at, STEP)
    expected = (
        "3 kernels begin before the launch, by up to 4.00 µs: the clocks of host and GPU differ"
    )
    assert by_id(trace.found())["host-bound"].caution == (expected if early == 3 else "")


@pytest.mark.parametrize(("each", "fires"), [(30 * US, True), (10 * US, False)])
def test_a_profiler_that_holds_the_program_up(run: MakeRun, each: int, fires: bool) -> None:
    """Of 500 µs from kernel to kernel, 2 % are 10 µs; the first kernel has no pause before it."""
    trace = run()
    trace.pauses(100 * US)
    trace.file.db.execute("INSERT INTO StringIds (id, value) VALUES (9000, 'CUPTI Buffer flush')")
    trace.file.db.execute(
        'CREATE TABLE PROFILER_OVERHEAD (start INTEGER, "end" INTEGER, globalTid INTEGER, '
        "nameId INTEGER)"
    )
    for number in range(trace.kernels):
        begin = number * (STEP + 100 * US) + STEP
        row = (begin, begin + each, gtid(100, 100), 9000)
        trace.file.db.execute("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, ?)", row)
    found = by_id(trace.found())
    assert ("profiler-cost" in found) == fires
    assert not fires or found["profiler-cost"].bound is None


# Copies, communication, graphs


@pytest.mark.parametrize(
    ("name", "id"),
    [("cudaMemcpy_v3020", "sync-copies"), ("cudaMemcpyAsync_v3020", "copies-exposed")],
)
def test_copies_alone(run: MakeRun, name: str, id: str) -> None:
    trace = run()
    for number in range(trace.kernels):
        at, corr = number * MS, next(trace.ids)
        trace.launch(at, at, STEP)
        trace.file.api(name, at + STEP, at + STEP + 5, corr=corr)
        trace.file.memcpy(DTOH if number % 2 else HTOD, at + STEP, at + MS, corr=corr)
    found = by_id(trace.found())
    assert {*found} == {id}
    assert found[id].bound == trace.kernels * (MS - STEP)


def test_communication_that_nothing_hides(run: MakeRun) -> None:
    trace = run()
    for number in range(trace.kernels):
        trace.launch(number * MS, number * MS, STEP)
        corr = next(trace.ids)
        trace.file.api("cudaLaunchKernel_v7000", number * MS, number * MS + 1, corr=corr)
        trace.file.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            number * MS,
            (number + 1) * MS,
            corr=corr,
            stream=9,
        )
    found = by_id(trace.found())
    assert {*found} == {"comm-exposed"}
    assert found["comm-exposed"].bound == trace.kernels * (MS - STEP)


def test_graphs_that_were_traced_as_a_whole(run: MakeRun) -> None:
    trace = run()
    trace.pauses(US)
    trace.file.graph(1, 100 * MS, 110 * MS)
    assert by_id(trace.found())["hidden-graphs"].severity == "info"


@pytest.mark.parametrize(
    ("kind", "busy", "advice"),
    [
        (HTOD, 600 * US, ""),
        (HTOD, 400 * US, "copies-exposed, most"),
        (DTOD, 600 * US, "copies-exposed, within"),
    ],
)
def test_advice_on_copies_is_of_what_would_help(
    run: MakeRun, kind: int, busy: int, advice: str
) -> None:
    """Compute can hide at most as much as it takes."""
    trace = run()
    for number in range(trace.kernels):
        at, corr = number * MS, next(trace.ids)
        trace.launch(at, at, busy)
        trace.file.nvtx("load", at + busy - 1, at + busy + 9)
        trace.file.api("cudaMemcpyAsync_v3020", at + busy, at + busy + 5, corr=corr)
        trace.file.memcpy(kind, at + busy, at + MS, corr=corr)
    found = by_id(trace.found())["copies-exposed"]
    assert found.advice == advice
    assert "100 copies" in found.claim and " in load, and no kernel" in found.claim
    frames = "memcpy DtoD" if kind == DTOD else "memcpy HtoD"
    assert found.place is not None and found.place.frames == (frames,)


def test_a_drained_gap_names_the_call_that_began_it(run: MakeRun) -> None:
    trace = run()
    trace.pauses(300 * US)
    for number in range(trace.kernels):
        end = number * (STEP + 300 * US) + STEP
        trace.call("cudaStreamSynchronize_v3020", end - 10, end + 5 * US)
        trace.file.nvtx(f"loss{'' if number % 4 else ' of all'}", end - 20, end + 6 * US)
    claim = by_id(trace.found())["sync-drain"].claim
    expected = "mostly after cudaStreamSynchronize in loss and cudaStreamSynchronize in loss of all"
    assert claim.endswith(expected)


def test_a_host_of_which_nothing_is_known_is_to_be_recorded(run: MakeRun) -> None:
    trace = run()
    trace.pauses(300 * US)
    found = by_id(trace.found())["host-bound"]
    assert found.advice == "host-bound, host unknown"
    assert "the longest, 300 µs, is before gemm" in found.claim


def test_filters_by_time_choose_what_is_counted(run: MakeRun) -> None:
    trace = run(kernels=1_100)
    for number in range(trace.kernels):
        at = number * 10 * US
        trace.launch(at + 600 - 1, at + 600, 10 * US - 600, call=1)
    trace.launch(110 * MS, 110 * MS, 5_000 * MS)  # one kernel for five seconds
    trace.file.close()
    profile = load(trace.file.path)
    assert not find(Scope(profile)).found
    early = Scope(profile, select(where=(Time(0, 11 * MS),)))
    [found] = find(early).found
    assert found.id == "launch-bound"
    evidence = {one.name: one.value for one in found.evidence}
    assert evidence["kernels per second"] == round(1_100e9 / (11 * MS - 599))
    assert evidence["half of the kernels take at most"] == 10 * US - 600
    assert evidence["kernels per launch call"] == 1
