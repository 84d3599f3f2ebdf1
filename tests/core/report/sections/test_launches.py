"""Launches as plain loops measure them, and by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from flame.core.report.measures.launch_times import launch_rates
from flame.core.report.scope import Scope
from flame.core.report.sections.launches import launches_section
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import Row, naive, tid_of
from tests.support.profiles.report_rows import rank, table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(0.5, [HealthCheck.too_slow])


# Plain loops


def parts(row: Row) -> tuple[int, int, int, int]:
    """Call, queue, kernel, and all from the call's beginning."""
    assert row.call is not None
    length = max(row.call.end - row.call.start, 0)
    queue = row.start - row.call.end
    total = max(row.start + row.duration, row.call.end) - row.call.start
    return length, queue, row.duration, total


def expected_sums(kernels: list[Row]) -> dict[Any, list[int]]:
    """Number, queued, and the sums of call (each once), call, queue, kernel, all."""
    found: defaultdict[Any, list[int]] = defaultdict(lambda: [0] * 7)
    for row in kernels:
        assert row.call is not None
        call, queue, kernel, total = parts(row)
        queued = (1, queue) if queue >= 0 else (0, 0)
        key = row.call.pid, tid_of(row.call.tid), f"GPU{row.gpu}", row.call.name, row.name
        for at, value in enumerate(
            (1, queued[0], row.launch_share, call, queued[1], kernel, total)
        ):
            found[key][at] += value
    return dict(found)


@random_traces
@given(scripts())
def test_executions_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    kernels = [row for row in naive(path) if row.kind == "kernel"]
    launched = [row for row in kernels if row.call is not None]
    section = launches_section(Scope(load(path, LoadOptions("raw"))))
    columns = ("count", "queued", "api_once_ns", "api_ns", "queue_ns", "kernel_ns", "total_ns")
    found = {
        tuple(row[key] for key in ("pid", "tid", "gpu", "call", "kernel")): [
            row[key] for key in columns
        ]
        for row in table_rows(section, "exec")
    }
    assert found == expected_sums(launched)
    assert section.available == bool(kernels)
    if launched:
        shorter = [row for row in launched if row.duration < row.launch_share]
        assert section.facts["launched"] == len(launched)
        assert section.facts["shorter_than_call"] == len(shorter)


@random_traces
@given(scripts())
def test_rates_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    by_gpu = defaultdict(list)
    for row in naive(path):
        if row.kind == "kernel":
            by_gpu[f"GPU{row.gpu}"].append(row)
    rates = launch_rates(Scope(load(path, LoadOptions("raw"))))
    assert {rate.gpu.label for rate in rates} == by_gpu.keys()
    for rate in rates:
        rows = by_gpu[rate.gpu.label]
        times = [row.duration for row in rows]
        assert (rate.kernels, rate.p50, rate.p99) == (len(rows), rank(times, 50), rank(times, 99))
        launched = [row.call for row in rows if row.call is not None]
        assert rate.launched == len(launched)
        assert rate.calls == len({(call.tid, call.start) for call in launched})


# By hand


@pytest.fixture
def trace(tmp_path: Path) -> Profile:
    """Kernels that queue and some that do not; a call that launches two."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 5_000, corr=1)
        file.kernel("gemm", 25_000, 26_000, corr=1)
        file.api("cudaLaunchKernel_v7000", 30_000, 30_100, corr=2)
        file.kernel("gemm", 30_050, 35_000, corr=2)
        file.api("cudaGraphLaunch_v10000", 40_000, 41_000, corr=3)
        file.kernel("gemm", 50_000, 50_600, corr=3)
        file.kernel("softmax", 50_600, 51_000, corr=3)
        file.kernel("alone", 60_000, 70_000, corr=None)
        file.memcpy(HTOD, 80_000, 100_000, corr=None)
    return load(tmp_path / "trace.sqlite")


def test_rate(trace: Profile) -> None:
    [rate] = launch_rates(Scope(trace))
    assert (rate.kernels, rate.calls, rate.launched) == (5, 3, 4)
    assert (rate.p50, rate.p90, rate.short) == (1_000, 10_000, (4, 4, 5))
    assert rate.per_second == round(5e9 / 75_000, 1)
    assert rate.storm is True


def test_no_storm_where_kernels_are_long(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for at in range(10):
            file.kernel("gemm", 15_000 * at, 15_000 * at + 10_001, corr=None)
    [rate] = launch_rates(Scope(load(tmp_path / "trace.sqlite")))
    assert (rate.per_second or 0) > 50_000
    assert rate.storm is False


def test_shorter_than_the_call(trace: Profile) -> None:
    """The part of a call that launched two is half of it; what queued long is told apart."""
    facts = launches_section(Scope(trace)).facts
    assert (facts["launched"], facts["shorter_than_call"]) == (4, 2)
    assert facts["shorter_and_not_queued"] == 1


def test_first_launches(trace: Profile) -> None:
    section = launches_section(Scope(trace))
    [row] = table_rows(section, "first")
    columns = ("kernel", "first_ns", "p50_ns", "others", "excess_ns", "begin_ns")
    assert [row[key] for key in columns] == ["gemm", 5_000, 100, 2, 4_900, 0]
    assert section.facts["first_launch_excess_ns"] == 4_900


def test_kernels_of_one_call_are_one_first_launch(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaGraphLaunch_v10000", 0, 1_000, corr=1)
        for at in range(3):
            file.kernel("gemm", 2_000 + 100 * at, 2_050 + 100 * at, corr=1)
    section = launches_section(Scope(load(tmp_path / "trace.sqlite")))
    assert table_rows(section, "first") == []
    [row] = table_rows(section, "exec")
    assert (row["api_once_ns"], row["api_ns"], row["api_p50_ns"]) == (1_000, 3_000, 1_000)


def test_what_begins_as_its_call_ends_has_queued(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 10, corr=1)
        file.kernel("gemm", 10, 20, corr=1)
        file.api("cudaLaunchKernel_v7000", 30, 40, corr=2)
        file.kernel("gemm", 39, 50, corr=2)
    [row] = table_rows(launches_section(Scope(load(tmp_path / "trace.sqlite"))), "exec")
    assert (row["count"], row["queued"], row["queue_max_ns"]) == (2, 1, 0)


def test_pace(trace: Profile) -> None:
    scope = Scope(trace, select(), frozenset(["pace"]))
    [row] = table_rows(launches_section(scope), "pace")
    columns = ("kernel", "count", "p50_ns", "max_ns")
    assert [row[key] for key in columns] == ["gemm", 2, 4_050, 15_000]


def test_without_launches(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10, corr=None)
    section = launches_section(Scope(load(tmp_path / "trace.sqlite")))
    assert [table.key for table in section.tables] == ["rate"]
    assert section.notes == ("no launch was recorded",)


def test_kernels_of_an_iteration_are_those_of_the_programs_on_the_gpu(tmp_path: Path) -> None:
    """Iterations of another program, which uses another GPU, count for none."""
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        for corr in range(8):
            step, device = divmod(corr, 2)
            pid, begin = 100 + device, 100 * step
            file.nvtx(f"step {step}", begin, begin + 90, pid=pid)
            file.api("cudaLaunchKernel_v7000", begin + 5, begin + 6, corr + 1, pid=pid)
            file.kernel("gemm", begin + 10, begin + 20, corr + 1, device=device, pid=pid)
    scope = Scope(load(path))
    assert len(scope.profile.iterations) == 8
    assert [rate.iterations for rate in launch_rates(scope)] == [1, 1]
