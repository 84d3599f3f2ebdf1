"""Ranges as plain loops measure them: on their threads, and on the GPUs below."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.ranges import ranges_section
from tests.conftest import TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import (
    DOMAIN_CREATE,
    Range,
    Trace,
    capture_end,
    naive,
    nvtx_text,
    pid_of,
    read_ranges,
)
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import MARK, START_END, NsysFile

random_traces = examples(0.5, [HealthCheck.too_slow])

Name = tuple[str, str]


def name_of(one: Range) -> Name:
    return one.text, one.domain


def found_rows(path: Path) -> dict[Name, dict[str, Any]]:
    """Rows by name and domain; those of captured ranges are left out."""
    rows = table_rows(ranges_section(Scope(load(path, LoadOptions("raw")))))
    return {(row["name"], row["domain"] or ""): row for row in rows if row["is"] != "captured"}


def threads_of(path: Path) -> list[list[Range]]:
    """The ranges with any length, by thread, from outer to inner."""
    threads = read_ranges(Trace(path), start_end=False).values()
    return [[one for one in ranges if one.end > one.start] for ranges in threads]


@random_traces
@given(scripts())
def test_host_times_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    host, own, whole = (defaultdict[Name, int](int) for _ in range(3))
    for ranges in threads_of(path):
        for one in ranges:
            whole[name_of(one)] += one.end - one.start
        first, last = min((one.start for one in ranges), default=0), 0
        last = max((one.end for one in ranges), default=first)
        for moment in range(first, last):
            opened = [one for one in ranges if one.start <= moment < one.end]
            for name in {name_of(one) for one in opened}:
                host[name] += 1
            if opened:
                own[name_of(opened[-1])] += 1
    rows = {name: row for name, row in found_rows(path).items() if row["count"]}
    assert {name: row["host_ns"] for name, row in rows.items()} == dict(host)
    assert {name: row["own_ns"] for name, row in rows.items() if row["own_ns"]} == dict(own)
    assert {name: row["instances_ns"] for name, row in rows.items()} == dict(whole)


@random_traces
@given(scripts())
def test_gpu_times_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    columns = ("gpu_ns", "activities", "idle_ns", "gpu_own_ns")
    expected: defaultdict[Name, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    calls = defaultdict(set)
    for row in naive(path):
        for name in {name_of(one) for one in row.nvtx}:
            for at, value in enumerate((row.duration, 1, row.idle)):
                expected[name][at] += value
            if row.call is not None:
                calls[name].add((row.call.tid, row.call.start, row.call.name))
        if row.nvtx and not row.captured:
            expected[name_of(row.nvtx[-1])][3] += row.duration
    rows = found_rows(path)
    found = {name: [row[key] for key in columns] for name, row in rows.items() if row["activities"]}
    assert found == dict(expected)
    launches = {name: row["launches"] for name, row in rows.items() if row["launches"]}
    assert launches == {name: len(made) for name, made in calls.items()}


def is_plain(ranges: list[Range]) -> bool:
    """Whether no two cross, nor follow each other so that they could be one that was cut."""
    return not any(
        one.start < other.start < one.end < other.end
        or (name_of(one) == name_of(other) and one.end == other.start)
        for one in ranges
        for other in ranges
    )


@random_traces
@given(scripts())
def test_projections_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    threads = threads_of(path)
    if not all(map(is_plain, threads)):
        return
    spans: defaultdict[tuple[Name, int], list[tuple[int, int]]] = defaultdict(list)
    for row in naive(path):
        for one in row.nvtx if row.call is not None else ():
            if one.end > one.start:
                spans[name_of(one), one.order].append((row.start, row.start + row.duration))
    expected = defaultdict(list)
    for (name, _), inside in spans.items():
        first, last = min(start for start, _ in inside), max(end for _, end in inside)
        expected[name].append(last - first)
    count = defaultdict[Name, int](int)
    for ranges in threads:
        for one in ranges:
            count[name_of(one)] += 1
    rows = found_rows(path)
    assert {name: row["count"] for name, row in rows.items() if row["count"]} == dict(count)
    columns = ("projected_count", "projected_ns", "projected_max_ns")
    found = {name: [row[key] for key in columns] for name, row in rows.items() if row[columns[0]]}
    assert found == {name: [len(one), sum(one), max(one)] for name, one in expected.items()}


@pytest.mark.deep
@random_traces
@given(scripts())
def test_marks_and_start_end_ranges_are_those_of_plain_loops(
    trace_file: Path, script: Script
) -> None:
    path = script.write(trace_file)
    trace, found = Trace(path), defaultdict[tuple[int, Name], list[int]](list)
    rows, last = trace.rows("NVTX_EVENTS"), capture_end(trace)
    domains = {
        (pid_of(row["globalTid"]), row["domainId"]): nvtx_text(trace, row)
        for row in rows
        if row["eventType"] == DOMAIN_CREATE
    }
    for row in rows:
        domain = domains.get((pid_of(row["globalTid"]), row["domainId"]), "")
        if row["eventType"] in (MARK, START_END) and domain != "GIL Trace":
            end = last if row["end"] is None else row["end"]
            length = max(end - row["start"], 0)
            found[row["eventType"], (nvtx_text(trace, row), domain)].append(length)
    section = ranges_section(Scope(load(path, LoadOptions("raw"))))
    for style, key in ((MARK, "marks"), (START_END, "start_end")):
        expected = {name: one for (kind, name), one in found.items() if kind == style}
        told = {name_in(row): row for row in table_rows(section, key)}
        assert {name: row["count"] for name, row in told.items()} == {
            name: len(lengths) for name, lengths in expected.items()
        }
        if style == START_END:
            assert {name: [row["ns"], row["max_ns"]] for name, row in told.items()} == {
                name: [sum(lengths), max(lengths)] for name, lengths in expected.items()
            }


def name_in(row: dict[str, Any]) -> Name:
    return "" if row["name"] == "[no name]" else row["name"], row["domain"] or ""


# By hand


def write(file: NsysFile) -> None:
    """Two steps, each with a layer in a layer, and kernels that run later."""
    for at in (0, 1_000):
        file.nvtx("step", at, at + 900)
        file.nvtx("layer", at + 100, at + 800)
        file.nvtx("layer", at + 200, at + 300)
        file.api("cudaLaunchKernel_v7000", at + 50, at + 60, corr=at + 1)
        file.kernel("gemm", at + 500, at + 510, corr=at + 1)
        file.api("cudaLaunchKernel_v7000", at + 250, at + 260, corr=at + 2)
        file.kernel("softmax", at + 700, at + 800, corr=at + 2)


def test_recursion_counts_once(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        write(file)
    scope = Scope(load(tmp_path / "trace.sqlite"), select(), frozenset(["path"]))
    section = ranges_section(scope)
    rows = {row["name"]: row for row in table_rows(section)}
    host = ("count", "host_ns", "instances_ns", "own_ns", "max_ns")
    assert [rows["layer"][key] for key in host] == [4, 1_400, 1_600, 1_400, 700]
    assert [rows["step"][key] for key in host] == [2, 1_800, 1_800, 400, 900]
    gpu = ("gpu_ns", "gpu_own_ns", "activities", "launches", "projected_ns", "projected_count")
    assert [rows["layer"][key] for key in gpu] == [200, 200, 2, 2, 400, 4]
    assert [rows["step"][key] for key in gpu] == [220, 20, 4, 4, 600, 2]
    assert rows["step"]["host_per_gpu"] == 20.0
    assert rows["step"]["is"] == "dispatch-heavy"
    assert [(row["path"], row["gpu_ns"]) for row in table_rows(section, "by_path")] == [
        ("step", 220),
        ("step / layer", 200),
        ("step / layer / layer", 200),
    ]
    places = {place.frames for place in section.tables[0].places if place}
    assert places == {("step",), ("step", "layer")}


def test_filters_choose_what_ran_and_when_ranges_began(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        write(file)
    profile = load(tmp_path / "trace.sqlite")
    [step, layer] = table_rows(ranges_section(Scope(profile, select(where=(Kernel("gemm"),)))))
    assert [step["gpu_ns"], layer["activities"]] == [20, 0]
    rows = table_rows(ranges_section(Scope(profile, select(where=(Time(1_000),)))))
    assert [row["count"] for row in rows] == [1, 2]


def test_ranges_that_cross_are_whole_and_those_that_touch_are_two(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("outer", 0, 10)
        file.nvtx("crossing", 5, 15)
        file.nvtx("touching", 20, 25)
        file.nvtx("touching", 25, 30)
    rows = table_rows(ranges_section(Scope(load(tmp_path / "trace.sqlite"))))
    assert {row["name"]: (row["count"], row["max_ns"]) for row in rows} == {
        "outer": (1, 10),
        "crossing": (1, 10),
        "touching": (2, 5),
    }


def test_domains_are_apart(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.domain(1, "NCCL")
        file.nvtx("step", 0, 10)
        file.nvtx("step", 20, 40, domain=1)
        file.kernel("gemm", 0, 10, corr=None)
    rows = table_rows(ranges_section(Scope(load(tmp_path / "trace.sqlite"))))
    assert {row["domain"]: row["host_ns"] for row in rows} == {None: 10, "NCCL": 20}


def styled(path: Path) -> Path:
    """Ranges of both styles, of one name and of others, and marks."""
    with NsysFile(path) as file:
        file.domain(1, "NCCL")
        file.nvtx("step", 0, 100)
        file.nvtx("both", 10, 20)
        file.nvtx("both", 30, 70, type=START_END)
        file.nvtx("request", 40, 90, type=START_END, domain=1)
        file.nvtx("request", 45, 45, type=START_END, domain=1)
        file.nvtx("token", 50, None, type=MARK)
        file.nvtx("token", 60, None, type=MARK, tid=101)
        file.kernel("gemm", 44, 50, corr=None)
    return path


def test_styles_of_ranges_that_are_read(tmp_path: Path) -> None:
    path = styled(tmp_path / "trace.sqlite")
    section = ranges_section(Scope(load(path, LoadOptions(nvtx_start_end=True))))
    rows = {row["name"]: (row["domain"], row["style"], row["count"]) for row in table_rows(section)}
    assert rows == {
        "step": (None, "push/pop", 1),
        "both": (None, "both", 2),
        "request": ("NCCL", "start/end", 1),
    }


def test_marks_and_start_end_ranges(tmp_path: Path) -> None:
    profile = load(styled(tmp_path / "trace.sqlite"))
    section = ranges_section(Scope(profile))
    assert {row["name"]: row["style"] for row in table_rows(section)} == {
        "step": None,
        "both": None,
    }
    columns = ("name", "domain", "count", "ns", "min_ns", "max_ns")
    rows = table_rows(section, "start_end")
    assert [[row[key] for key in columns] for row in rows] == [
        ["request", "NCCL", 2, 50, 0, 50],
        ["both", None, 1, 40, 40, 40],
    ]
    [mark] = table_rows(section, "marks")
    assert [mark[key] for key in ("name", "count", "threads", "first_ns", "last_ns")] == [
        "token",
        2,
        2,
        50,
        60,
    ]
    later = ranges_section(Scope(profile, select(where=(Time(42, 55),))))
    assert [row["count"] for row in table_rows(later, "start_end")] == [1]
    assert [row["count"] for row in table_rows(later, "marks")] == [1]


def test_marks_alone_are_told(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("token", 50, None, type=MARK)
        file.kernel("gemm", 0, 10, corr=None)
    section = ranges_section(Scope(load(tmp_path / "trace.sqlite")))
    assert section.available
    assert [table.key for table in section.tables] == ["marks"]


def test_captured_ranges_have_no_instances(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("capture", 0, 10)
        file.node(1, None, 5)
        file.nvtx("replay", 20, 30)
        file.api("cudaGraphLaunch_v10000", 25, 28, corr=1)
        file.kernel("gemm", 40, 50, corr=1, graph_node=1)
    rows = table_rows(ranges_section(Scope(load(tmp_path / "trace.sqlite"))))
    found = {(row["name"], row["is"]): (row["count"], row["gpu_ns"]) for row in rows}
    assert found == {
        ("replay", None): (1, 10),
        ("capture", "captured"): (None, 10),
        ("capture", None): (1, 0),
    }


@needs_traces
def test_operators_of_a_real_trace() -> None:
    """Every launch of this trace is in the only step of the profiler."""
    scope = Scope(load(TRACES / "kineto" / "h100_bert_small.json.gz"))
    rows = {row["name"]: row for row in table_rows(ranges_section(scope))}
    assert rows["ProfilerStep"]["gpu_ns"] == scope.profile.gpu_time
    assert sum(row["gpu_own_ns"] for row in rows.values()) == scope.profile.gpu_time
