"""Processes, GPUs, threads and ranks: their sums, as plain loops over rows find them."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load, load_all
from flame.core.model.calls import CallClass, call_class
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Pids, Steps, Tids, Time
from flame.core.projection.selection import select
from flame.core.report.host.host_time import HostTime
from flame.core.report.parties.devices import devices_section
from flame.core.report.parties.processes import measure_processes, processes_section
from flame.core.report.parties.ranks import measure_ranks, ranks_section
from flame.core.report.parties.threads import measure_threads, threads_section
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.report.table import Section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.paths import SAMPLES
from tests.support.profiles.recorded import Recorded, i8
from tests.support.tiers import deep_except, examples

random_traces = examples(1, [HealthCheck.too_slow])


def cells(section: Section, key: str = "rows") -> list[dict[str, object]]:
    [table] = [table for table in section.tables if table.key == key]
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


# Processes


@random_traces
@given(scripts())
def test_processes_are_summed_row_by_row(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    found, table, size = (
        measure_processes(Scope(profile)),
        profile.activities,
        len(profile.processes),
    )
    sums: defaultdict[str, Counter[int]] = defaultdict(Counter)
    launches: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    tops: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for row in range(len(table)):
        process = int(table.process[row]) if table.process[row] >= 0 else size
        ns, kind = int(table.duration[row]), Kind(table.kind[row])
        sums["gpu_time"][process] += ns
        sums["kernels"][process] += kind == Kind.KERNEL
        sums["copies"][process] += kind in (Kind.MEMCPY, Kind.MEMSET)
        sums["launch_ns"][process] += int(table.launch_share[row])
        sums["launched"][process] += ns * bool(table.launched[row])
        sums["in_ranges"][process] += ns * bool(table.nvtx[row] > 0)
        if kind == Kind.KERNEL:
            tops[process][profile.frames[int(table.frame[row])].name] += ns
        if table.launched[row]:
            call = (table.thread[row], table.launch_start[row], table.launch_end[row])
            launches[process].add(tuple(map(int, call)))
    for process in range(size + 1):
        for name, counter in sums.items():
            assert int(getattr(found, name)[process]) == counter[process], name
        assert int(found.launches[process]) == len(launches[process])
        named = [profile.frames[frame].name for frame in found.top[process]]
        told = [tops[process][name] for name in named]
        assert told == sorted(tops[process].values(), reverse=True)[:3]
    check_calls(profile, found.blocked)


def check_calls(profile: Profile, blocked: object) -> None:
    if blocked is None:
        assert profile.calls is None or not len(profile.calls)
        return
    assert isinstance(blocked, np.ndarray)
    assert blocked.sum() == 0, "random traces have no blocking calls"


def test_blocked_is_of_outermost_calls_and_ranges_are_counted_whole() -> None:
    trace = Recorded()
    trace.call("cudaDeviceSynchronize", 0, 30)
    trace.call("cuCtxSynchronize", 5, 25)
    trace.call("cudaStreamSynchronize", 10, 14, thread=1)
    trace.call("cudaEventQuery", 50, 60)
    trace.range("one", 0, 20)
    trace.range("crossing", 10, 40)
    trace.call("cudaLaunchKernel", 70, 71, 1)
    trace.kernel("gemm", 0, 10, 1)
    trace.kernel("gemm", 0, 10, process=1)
    profile = trace.profile()
    found = measure_processes(Scope(profile))
    assert found.blocked is not None
    assert found.blocked.tolist() == [34, 0, 0]
    assert found.ranges is not None
    assert found.ranges.tolist() == [2, 0, 0]
    some = measure_processes(Scope(profile, select(where=(Time(0, 20), Tids((100,))))))
    assert some.blocked is not None
    assert some.blocked.tolist() == [20, 0, 0]


def test_three_kernels_are_named_most_time_first() -> None:
    trace = Recorded()
    for length, name in enumerate("abcde", 1):
        trace.kernel(name, 100 * length, 100 * length + length)
    [row] = [one for one in cells(processes_section(Scope(trace.profile()))) if one["kernels"]]
    assert row["top_kernels"] == "e, d, c"


@needs_traces
@pytest.mark.parametrize("name", deep_except(["h100_2gpu_window.sqlite"], NSYS_TRACES))
def test_processes_and_threads_of_real_traces_add_up(name: str) -> None:
    profile = load(TRACES / "nsys" / name)
    scope = Scope(profile)
    found, threads = measure_processes(scope), measure_threads(scope)
    assert int(found.gpu_time.sum()) == profile.gpu_time
    assert int(threads.gpu_time.sum()) == int(found.launched.sum())
    assert int(threads.launches.sum()) == int(found.launches.sum())
    assert int(threads.host.sum()) == int(profile.host.duration.sum())


def reported(name: str, report: str, column: str) -> list[int]:
    """A column of what a script of NVIDIA has printed."""
    path = TRACES / "reports" / f"{name}.{report}.csv"
    with path.open(newline="") as file:
        return [int(row[column]) for row in csv.DictReader(file)]


BLOCKED = ("h200_nvtx_13k", "a100_llm_nvtx", "h100_2gpu_window", "rtx3060_23k", "rtx3070_train_17k")
"""Traces in which nothing blocks but the two calls that the script counts, each once."""


@needs_traces
@pytest.mark.parametrize("name", deep_except(["h200_nvtx_13k"], BLOCKED))
def test_blocked_time_and_copies_are_those_of_nvidia(name: str) -> None:
    found = measure_processes(Scope(load(TRACES / "nsys" / f"{name}.sqlite")))
    assert found.blocked is not None
    assert found.bytes is not None
    assert int(found.blocked.sum()) == sum(reported(name, "cuda_api_sync", "Duration:dur_ns"))
    assert int(found.bytes.sum()) == sum(reported(name, "cuda_gpu_mem_size_sum", "Total:mem_B"))
    assert int(found.copies.sum()) == sum(reported(name, "cuda_gpu_mem_size_sum", "Count"))


# Threads


@random_traces
@given(scripts(), st.integers(0, 6), st.integers(0, 8))
def test_threads_are_summed_moment_by_moment(
    trace_file: Path, script: Script, begin: int, length: int
) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    window = (begin + script.offset, begin + script.offset + length)
    time = HostTime(Scope(profile, select(where=(Time(*window),))))
    host = profile.host
    inside: Counter[int] = Counter()
    for row in range(len(host)):
        for moment in range(int(host.start[row]), int(host.start[row] + host.duration[row])):
            inside[row] += window[0] <= moment < window[1]
    expected = Counter((thread, name) for (thread, _), name in what_was_open(profile).items())
    found = measure_threads(Scope(profile))
    for thread in range(len(profile.threads)):
        assert int(found.code[thread]) == expected[thread, "code"]
        for place, one in enumerate(CallClass):
            assert int(found.calls[place, thread]) == expected[thread, one.name]
    lengths = time.within(host.thread, host.start, host.start + host.duration)
    assert lengths.tolist() == [inside[row] for row in range(len(host))]


def what_was_open(profile: Profile) -> dict[tuple[int, int], str]:
    """The class of the call, else ``code``, by thread and moment."""
    found = {}
    for pieces in filter(None, (profile.ranges, profile.functions, profile.calls)):
        for row in range(len(pieces)):
            name = "code"
            if pieces is profile.calls:
                name = call_class(profile.frames[int(pieces.frame[row])].name).name
            for moment in range(int(pieces.start[row]), int(pieces.end[row])):
                found[int(pieces.thread[row]), moment] = name
    return found


def test_the_time_of_threads_follows_steps_and_processes() -> None:
    trace = Recorded()
    for number in range(3):
        trace.range(f"step {number}", 100 * number, 100 * number + 60)
        trace.call("cudaLaunchKernel", 100 * number + 1, 100 * number + 2, number + 1)
        trace.kernel("gemm", 100 * number + 10, 100 * number + 20, number + 1)
    profile = trace.profile()

    def told(*where: object) -> list[int]:
        time = HostTime(Scope(profile, select(where=where)))  # type: ignore[arg-type]
        within = time.within(i8(0, 1, 2), i8(40, 40, 40), i8(240, 250, 300))
        return [int(ns) for ns in within]

    assert told() == [200, 210, 260]
    assert told(Steps.of([0, 2])) == [60, 70, 0]
    assert told(Steps.of([0, 2]), Time(50, 205)) == [15, 15, 0]
    assert told(Pids((200,))) == [0, 0, 260]
    assert HostTime(Scope(profile)).union(i8(0, 0, 1), i8(0, 5, 5), i8(10, 20, 9)) == 24


# GPUs and ranks


@needs_traces
def test_devices_are_their_budgets() -> None:
    scope = Scope(load(TRACES / "nsys" / "h100_2gpu_window.sqlite"))
    rows = cells(devices_section(scope))
    assert len(rows) == 2
    for row, budget in zip(rows, budgets(scope), strict=True):
        parts = ("compute_ns", "exposed_comm_ns", "copies_alone_ns", "idle_ns")
        assert sum(int(str(row[part])) for part in parts) == budget.window
        assert row["processes"] == 1


@pytest.mark.deep
def test_ranks_are_what_their_files_are_alone(tmp_path: Path) -> None:
    paths = [SAMPLES / name for name in ("decode_small.sqlite", "torch_small.pt.trace.json.gz")]
    together = measure_ranks(Scope(load_all(paths)))
    for place, path in enumerate(paths):
        scope = Scope(load(path))
        alone = measure_processes(scope)
        for name in ("gpu_time", "kernels", "copies", "launches", "launch_ns", "ranges"):
            column = getattr(alone, name)
            expected = 0 if column is None else int(column.sum())
            assert int(getattr(together, name)[place]) == expected, name
        parts = [(b.window, b.compute, b.copies_alone, int(b.idle.sum())) for b in budgets(scope)]
        found = (together.window, together.compute, together.copies_alone, together.idle)
        edge = int(found[0][place]) - sum(part[0] for part in parts)
        assert edge == 0
        assert [int(c[place]) for c in found] == [sum(c) for c in zip(*parts, strict=True)]


@pytest.mark.deep
def test_the_spread_names_the_ranks_apart(tmp_path: Path) -> None:
    sample = SAMPLES / "torch_small.pt.trace.json.gz"
    paths = [tmp_path / f"{name}.pt.trace.json.gz" for name in ("first", "second")]
    for path in paths:
        path.write_bytes(sample.read_bytes())
    section = ranks_section(Scope(load_all(paths)))
    rows = cells(section)
    assert len(rows) == 2
    assert {key: value for key, value in rows[0].items() if key != "rank"} == {
        key: value for key, value in rows[1].items() if key != "rank"
    }
    assert {row["ratio"] for row in cells(section, "spread")} == {1}


def test_what_a_trace_has_not_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("main;work 3\n")
    scope = Scope(load(path))
    for build in (processes_section, devices_section, threads_section, ranks_section):
        section = build(scope)
        assert not section.available
        assert section.why
