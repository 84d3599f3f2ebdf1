"""Kernels by name and tails by configuration, as plain loops find them, and by hand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import select
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.sections.kernels import kernels_section
from flame.core.report.sections.tails import Tails, kernel_tails, tails_section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import Row, Trace, naive
from tests.support.profiles.recorded import Recorded
from tests.support.profiles.report_rows import rank, table_rows
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(0.5, [HealthCheck.too_slow])


# Kernels


@random_traces
@given(scripts())
def test_kernels_and_copies_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    by_name: dict[str, defaultdict[str, list[Row]]] = {
        "rows": defaultdict(list),
        "copies": defaultdict(list),
    }
    for one in naive(path):
        by_name["rows" if one.kind in ("kernel", "graph") else "copies"][one.name].append(one)
    section = kernels_section(Scope(load(path, LoadOptions("raw"))))
    for key, expected in by_name.items():
        rows = table_rows(section, key)
        assert {row["name"] for row in rows} == expected.keys()
        assert [row["ns"] for row in rows] == sorted((row["ns"] for row in rows), reverse=True)
        for row in rows:
            check_named(row, expected[row["name"]])


def check_named(row: dict[str, Any], expected: list[Row]) -> None:
    times = [one.duration for one in expected]
    assert (row["count"], row["ns"], row["min_ns"]) == (len(times), sum(times), min(times))
    percents = {percent: rank(times, percent) for percent in (50, 90, 95, 99, 100)}
    keys = ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "max_ns")
    assert [row[key] for key in keys] == list(percents.values())
    assert row["devices"] == len({one.gpu for one in expected})
    assert row["first_ns"] == min(one.start for one in expected)


def test_configurations_and_names(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10, corr=None, demangled="void gemm<int>()", grid=(2, 1, 1))
        file.kernel("gemm", 10, 30, corr=None, demangled="void gemm<float>()", grid=(2, 1, 1))
        file.kernel("gemm", 30, 60, corr=None, demangled="void gemm<float>()", grid=(4, 2, 1))
        file.memcpy(HTOD, 60, 70, corr=None)
    profile = load(tmp_path / "trace.sqlite")
    [row] = table_rows(kernels_section(Scope(profile)))
    assert (row["name"], row["ns"], row["percent"], row["configurations"]) == ("gemm", 60, 100.0, 2)
    full = Scope(profile, select(kernel_names="demangled"), frozenset(["config"]))
    section = kernels_section(full)
    assert {row["name"]: row["ns"] for row in table_rows(section)} == {
        "void gemm<int>()": 10,
        "void gemm<float>()": 50,
    }
    assert [(row["grid"], row["ns"]) for row in table_rows(section, "by_config")] == [
        ("4x2x1", 30),
        ("2x1x1", 20),
        ("2x1x1", 10),
    ]
    assert section.facts == {"kernels_ns": 60, "copies_ns": 10}
    [place] = {
        one for one in section.tables[0].places if one and one.frames == ("void gemm<int>()",)
    }
    assert place.levels == ("kernel",)


def test_filters_choose_kernels(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
        file.kernel("softmax", 10, 30)
    scope = Scope(load(tmp_path / "trace.sqlite"), select(where=(Kernel("gemm"),)))
    assert [row["name"] for row in table_rows(kernels_section(scope))] == ["gemm"]


def test_of_stacks_frames_are_told(tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("main;work;main 3\nmain 1\n")
    section = kernels_section(Scope(load(path)))
    assert [(row["name"], row["total"], row["own"]) for row in table_rows(section)] == [
        ("main", 4, 4),
        ("work", 3, 0),
    ]


def test_levels_change_no_sums() -> None:
    """The level ``nested`` has finer groups of activities."""
    trace = Recorded()
    for corr, time in enumerate((15, 35, 36), 1):
        trace.call("cudaLaunchKernel", time, time + 1, corr=corr, thread=0)
        trace.kernel("gemm", 1_000 * corr, 1_000 * corr + corr, corr=corr)
    trace.function("f", 10, 19, 1)
    trace.range("r", 12, 18)
    trace.range("r", 30, 39)
    trace.function("f", 32, 38, 2)
    profile = trace.profile()
    for levels in ("kernel", "nested,kernel"):
        report = Report(Scope(profile, select(levels)))
        [kernel] = table_rows(report.section("kernels"))
        assert (kernel["count"], kernel["ns"]) == (3, 6)
        [ranges] = table_rows(report.section("ranges"))
        assert (ranges["activities"], ranges["gpu_ns"]) == (3, 6)
        [process] = table_rows(report.section("coverage"), "processes")
        assert (process["activities"], process["nvtx_percent"]) == (3, 100.0)


# Tails


@examples(4)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=120))
def test_tails_are_those_of_plain_loops(values: list[tuple[int, int]]) -> None:
    groups, times = (np.array(column, np.int64) for column in zip(*[(0, 0), *values], strict=True))
    tails = Tails.of(groups, times, 3)
    for group in range(3):
        own = [int(time) for time in times[groups == group]]
        if not own:
            assert not tails.enough[group]
            continue
        p50 = rank(own, 50)
        slow = [time for time in own if time > 1.5 * p50]
        assert (tails.slow[group], tails.excess[group]) == (len(slow), sum(slow) - p50 * len(slow))
        enough = len(own) >= 20
        mixed = enough and len(slow) > 0.05 * len(own)
        assert (tails.enough[group], tails.mixed[group]) == (enough, mixed)
        assert tails.tail[group] == (enough and not mixed and rank(own, 99) > 1.5 * p50)
    shown = tails.order.tolist()
    assert sorted(shown) == np.flatnonzero(tails.enough).tolist()
    assert [bool(tails.mixed[at]) for at in shown] == sorted(tails.mixed[shown].tolist())


def write_runs(file: NsysFile, name: str, times: list[int], **fields: Any) -> None:
    """Kernels of one launch configuration, each of which takes as long."""
    for at, time in enumerate(times):
        file.kernel(name, 1_000 * at, 1_000 * at + time, corr=None, **fields)


def test_tail_mixed_and_rare(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        write_runs(file, "tail", [100] * 99 + [400, 900], grid=(1, 1, 1))
        write_runs(file, "steady", [150] * 100, grid=(1, 1, 1))
        write_runs(file, "two sizes", [100] * 50, grid=(1, 1, 1))
        write_runs(file, "two sizes", [400] * 50, grid=(8, 1, 1))
        write_runs(file, "mixed", [100] * 50 + [400] * 50, grid=(1, 1, 1))
        write_runs(file, "as many as may be", [100] * 19 + [160], grid=(1, 1, 1))
        write_runs(file, "few", [1] * 18 + [900], grid=(1, 1, 1))
        write_runs(file, "rare", [2] * 59 + [500], grid=(1, 1, 1))
    section = tails_section(Scope(load(tmp_path / "trace.sqlite")))
    rows = table_rows(section)
    assert [(row["name"], row["is"] or "") for row in rows if row["slow"]] == [
        ("tail", "tail"),
        ("rare", "rare and slow"),
        ("as many as may be", "tail"),
        ("mixed", "mixed"),
    ]


def test_of_unknown_configurations_nothing_is_claimed(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        write_runs(file, "tail", [100] * 98 + [400, 900])
        for column in ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"):
            file.db.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    scope = Scope(load(tmp_path / "trace.sqlite"))
    section = tails_section(scope)
    [row] = table_rows(section)
    assert (row["slow"], row["is"], section.facts["tails"]) == (2, "not known", 0)
    assert not kernel_tails(scope).tail.any()
    assert any("shapes were not recorded" in note for note in section.notes)


@needs_traces
@pytest.mark.parametrize("name", deep_except(["two_processes_colliding_ids.sqlite"], NSYS_TRACES))
def test_tails_of_real_traces_are_those_of_plain_loops(name: str) -> None:
    path = TRACES / "nsys" / name
    trace = Trace(path)
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    sizes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "dynamicSharedMemory")
    for row in trace.rows("CUPTI_ACTIVITY_KIND_KERNEL"):
        names = trace.string(row["shortName"]), trace.string(row["demangledName"])
        key = (*names, *(row.get(size) for size in sizes))
        groups[key].append(max(row["end"] - row["start"], 0))
    expected = []
    for times in groups.values():
        p50 = rank(times, 50)
        slow = [time for time in times if 2 * time > 3 * p50]
        if len(times) >= 20:
            excess = sum(slow) - p50 * len(slow)
            percents = [rank(times, percent) for percent in (50, 95, 99, 100)]
            expected.append([len(times), sum(times), *percents, len(slow), excess])
    keys = ("count", "ns", "p50_ns", "p95_ns", "p99_ns", "max_ns", "slow", "excess_ns")
    section = tails_section(Scope(load(path)))
    assert sorted([row[key] for key in keys] for row in table_rows(section)) == sorted(expected)
