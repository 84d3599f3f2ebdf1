"""Calls that may block: recorded with their stack and result, unless nobody wants them."""

from __future__ import annotations

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.report.scope import Scope
from flame.core.report.sections.memory import memory_section
from flame.core.report.sections.syncs import syncs_section
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.inject.cupti.cupti_recorded import CALL, SIZE_LIMIT, Record
from tests.support.profiles.report_rows import table_rows
from tests.support.writers.fdumprecords import header

BLOCKING = """
context()
# However busy the machine is, most of each wait passes while the kernel runs.
function = make(cuda.cuModuleGetFunction, module("kernel one 3000000", "waited one"), b"one")
def allocate(): return make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
def wait():
    check(launch(function))
    check(cuda.cuStreamSynchronize(None))
def poll():
    for _ in range(5): cuda.cuStreamQuery(None)
memory = allocate()
for _ in range(3): wait()
poll()
check(cuda.cuMemFree_v2(memory))
assert cuda.cuMemFree_v2(memory) != 0
"""


def test_calls_that_may_block_are_recorded_with_their_stack_and_result(record: Record) -> None:
    recorded = record(BLOCKING)
    assert recorded.meta["calls"] == ["recorded"]
    waits = 3 * ["cuStreamSynchronize"]
    found = recorded.apis("call")
    assert found == ["cuModuleLoadData", "cuMemAlloc_v2", *waits, *2 * ["cuMemFree_v2"]]
    calls = np.sort(recorded.of["call"], order="start")
    assert calls["result"].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert [recorded.top(row["python"]) for row in calls[1:5]] == ["allocate", *3 * ["wait"]]
    assert set(calls["context"].tolist()) == {1} and len(set(calls["tid"].tolist())) == 1
    # The kernel runs for 3 ms from when it is waited for.
    assert (calls["end"] - calls["start"])[2:5].min() > 2_000_000
    assert recorded.apis() == 3 * ["cuLaunchKernel"]


@pytest.mark.deep
def test_calls_for_which_there_is_no_room_are_counted(record: Record) -> None:
    number = 60_000
    recorded = record(
        f"context()\nfor _ in range({number}): cuda.cuMemFree_v2(None)\n", FLAME_MAX_MB="1"
    )
    kept = len(recorded.of["call"])
    assert 1_000 < kept < number
    assert recorded.dropped() == {(SIZE_LIMIT, CALL): number - kept}
    assert header(recorded.path)["dropped"] == number - kept
    lost = f"{number - kept:,} records could not be written"
    assert any(line.startswith(lost) for line in load(recorded.path).warnings)


def test_a_report_of_a_recording_tells_of_waits_and_allocations(record: Record) -> None:
    recorded = record(BLOCKING)
    scope = Scope(load(recorded.path))
    waits, memory = syncs_section(scope), memory_section(scope)
    calls = np.sort(recorded.of["call"], order="start")
    lengths = (calls["end"] - calls["start"]).tolist()
    assert (waits.facts["count"], waits.facts["total_ns"]) == (3, sum(lengths[2:5]))
    assert (memory.facts["calls"], memory.facts["total_ns"]) == (
        3,
        lengths[1] + sum(lengths[5:]),
    )
    (row,) = table_rows(waits, "rows")
    # Each wait begins while the kernel that was launched before it runs, or before that starts.
    kernels = np.sort(recorded.of["kernel"], order="start")
    low = np.maximum(kernels["start"], calls["start"][2:5])
    high = np.minimum(kernels["end"], calls["end"][2:5])
    assert (high > low).all()
    assert (row["name"], row["while_busy_ns"]) == ("cuStreamSynchronize", (high - low).sum())
    (gpu,) = idle_parts(scope.profile)
    gaps = int((kernels["start"][1:] - kernels["end"][:-1]).sum())
    first = int(kernels["end"][0]) - header(recorded.path)["start_monotonic"]
    last = int(kernels["start"][-1]) - header(recorded.path)["start_monotonic"]
    between = (gpu.low >= first) & (gpu.high <= last)
    length = gpu.high - gpu.low
    assert length[between].sum() == gaps
    assert 0 < length[between & (gpu.cause == IdleCause.SYNC)].sum() < gaps


def test_calls_that_may_block_are_left_out_where_nobody_wants_them(record: Record) -> None:
    recorded = record(BLOCKING, FLAME_CALLS="0")
    assert recorded.meta["calls"] == ["switched off by FLAME_CALLS=0"]
    assert recorded.apis() == 3 * ["cuLaunchKernel"]
    assert not len(recorded.of["call"])
    assert set(recorded.names("api").values()) == {"cuLaunchKernel"}
    section = syncs_section(Scope(load(recorded.path)))
    assert section.why == "launches alone were recorded (switched off by FLAME_CALLS=0)"


@pytest.mark.parametrize("calls", ["0", "1"])
def test_a_launch_within_a_call_that_may_block_is_recorded_all_the_same(
    record: Record, calls: str
) -> None:
    recorded = record(
        """
context()
function = kernel("one", 1000)
def forward(): check(launch(function))
for _ in range(20): forward()
synchronize()
""",
        FAKE_CUPTI="allocating",
        FLAME_CALLS=calls,
    )
    of = recorded.of
    assert recorded.apis() == 20 * ["cuLaunchKernel"]
    assert set(of["kernel"]["correlation"]) == set(of["launch"]["correlation"])
    assert {recorded.top(row["python"]) for row in of["kernel"]} == {"forward"}
    within = [recorded.names("api").get((0, int(flags) >> 16)) for flags in of["launch"]["flags"]]
    if calls == "0":
        assert within == 20 * [None]
        return
    assert within == 20 * ["cuMemAllocAsync"]
    around = np.sort(of["call"], order="start")[1:-1]
    launches = np.sort(of["launch"], order="start")
    assert recorded.apis("call")[1:-1] == within
    assert (around["start"] <= launches["start"]).all() and (launches["end"] <= around["end"]).all()


def test_calls_that_were_not_asked_for_are_none(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 1000)
check(launch(function))
synchronize()
""",
        FAKE_CUPTI="unasked",
    )
    assert recorded.apis() == ["cuLaunchKernel"]
    assert recorded.apis("call") == ["cuModuleLoadData", "cuCtxSynchronize"]
