"""What a trace holds, and how much of it is known, process by process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, Time
from flame.core.projection.selection import select
from flame.core.report.report import Report
from flame.core.report.scope import DETAILS, Scope
from flame.core.report.sections.coverage import coverage, coverage_section
from flame.core.report.sections.summary import summary_section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import naive
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(0.5, [HealthCheck.too_slow])


@random_traces
@given(scripts())
def test_coverage_is_that_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    found = coverage(Scope(load(path, LoadOptions("raw"))))
    rows = naive(path)
    known = {
        "launch": [row for row in rows if row.call],
        "nvtx": [row for row in rows if row.nvtx or row.captured],
        "python": [row for row in rows if row.python],
        "native": [row for row in rows if row.native],
    }
    for key, expected in known.items():
        sums = [int(column.sum()) for column in found.covered[key]]
        assert sums == [sum(row.duration for row in expected), len(expected)], key
    early = [row for row in rows if row.call and row.start < row.call.start]
    assert int(found.before_launch.sum()) == len(early)
    opaque = sum(row.duration for row in rows if row.kind == "graph")
    assert int(found.opaque.sum()) == opaque


def test_each_process_has_its_own_coverage(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.process(100, "one")
        file.process(200, "two")
        for pid, kernel in ((100, 60), (200, 40)):
            file.api("cudaLaunchKernel_v7000", 10, 20, corr=1, pid=pid, tid=pid)
            file.kernel("gemm", 100, 100 + kernel, corr=1, pid=pid)
        file.nvtx("step", 0, 30)
        file.api("cudaLaunchKernel_v7000", 30, 40, corr=2)
        file.api("cudaLaunchHostFunc_v10000", 50, 60, corr=3)
    section = coverage_section(Scope(load(tmp_path / "trace.sqlite")))
    columns = ("process", "gpu_time_ns", "launch_percent", "nvtx_percent", "calls_without_work")
    assert [[row[key] for key in columns] for row in table_rows(section, "processes")] == [
        ["one [100]", 60, 100.0, 100.0, 1],
        ["two [200]", 40, 100.0, 0.0, 0],
    ]
    assert section.notes == (
        "low coverage by NVTX in 1 of 2 processes: shares are of the known part",
    )
    assert section.facts["all"] == {
        "launch": {"ns": 100, "percent": 100.0, "activities": 2},
        "nvtx": {"ns": 60, "percent": 60.0, "activities": 1},
    }


def test_what_was_not_recorded_is_absent(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10, corr=None)
    [row] = table_rows(coverage_section(Scope(load(tmp_path / "trace.sqlite"))), "processes")
    assert (row["launch_percent"], row["nvtx_percent"], row["python_ns"]) == (0.0, None, None)


def test_summary_of_all_and_of_what_passes(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.gpu(0, "H100", pid=100)
        file.kernel("gemm", 0, 10)
        file.kernel("softmax", 20, 40)
        file.memcpy(HTOD, 40, 50)
    profile = load(tmp_path / "trace.sqlite")
    section = summary_section(Scope(profile))
    assert section.facts["by_kind"] == {"kernel": 2, "memcpy": 1}
    [gpu] = table_rows(section, "devices")
    assert [gpu[key] for key in ("name", "window_ns", "busy_ns", "busy_percent")] == [
        "H100",
        50,
        40,
        80.0,
    ]
    part = summary_section(Scope(profile, select(where=(Kernel("gemm"),))))
    assert (part.facts["activities"], part.facts["gpu_time_ns"]) == (1, 10)
    assert part.facts["trace"] == {"activities": 3, "gpu_time_ns": 40}
    assert any("1 of 3 activities pass" in note for note in part.notes)


def test_iterations_are_told(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for step in range(3):
            file.nvtx(f"step {step}", 100 * step, 100 * step + 50 + step)
            file.api("cudaLaunchKernel_v7000", 100 * step + 1, 100 * step + 2, corr=step + 1)
            file.kernel("gemm", 100 * step + 10, 100 * step + 20, corr=step + 1)
    [row] = table_rows(summary_section(Scope(load(tmp_path / "trace.sqlite"))), "iterations")
    columns = ("name", "number", "p50_ns", "longest_ns")
    assert [row[key] for key in columns] == ["step 0 …", 3, 51, 52]


def test_all_sections_work_where_the_host_has_nothing_left(tmp_path: Path) -> None:
    """What ran after a window begins may have been launched before it."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("step", 0, 10)
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.api("cudaDeviceSynchronize_v3020", 6, 8, corr=2)
        file.kernel("gemm", 100, 110, corr=1)
    profile = load(tmp_path / "trace.sqlite")
    report = Report(Scope(profile, select(where=(Time(50),)), frozenset(DETAILS)))
    [ranges] = table_rows(report.section("ranges"))
    assert (ranges["count"], ranges["gpu_ns"]) == (None, 10)
    assert table_rows(report.section("syncs")) == table_rows(report.section("memory")) == []
    assert report.section("coverage").facts["calls_without_work"] == 0
    absent = [one.name for one in report.sections() if not one.available]
    absent_parts = [
        "efficiency",
        "api",
        "layers",
        "experts",
        "iterations",
        "states",
        "ranks",
    ]
    assert absent == [*absent_parts, "os", "metrics"]


@needs_traces
@pytest.mark.parametrize("name", deep_except(["ten_streams.sqlite"], NSYS_TRACES))
def test_sums_of_real_traces(name: str) -> None:
    profile = load(TRACES / "nsys" / name)
    scope = Scope(profile)
    facts = summary_section(scope).facts
    assert (facts["gpu_time_ns"], facts["activities"]) == (profile.gpu_time, profile.size)
    assert facts["by_kind"] == {kind: count for kind, count in profile.counts.items() if count}
    for key, (ns, _) in coverage(scope).covered.items():
        assert int(ns.sum()) == profile.coverage[key].ns
