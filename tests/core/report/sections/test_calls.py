"""API calls, waits and allocations as plain loops count them, and by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Pids, Steps, Tids, Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.api import api_section
from flame.core.report.sections.memory import memory_section
from flame.core.report.sections.syncs import syncs_section
from flame.core.report.table import Place
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import BACKTRACE, Trace, read_calls
from tests.support.oracles.naive_calls import Outermost, outermost_calls
from tests.support.profiles.report_rows import rank, table_rows
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(0.5, [HealthCheck.too_slow])

NAMES = (
    "cudaStreamSynchronize_v3020",
    "cudaLaunchKernel_v7000",
    "cudaMalloc_v3020",
    "cudaMemcpy_v3020",
    "cudaFree_v3020",
    "cudaEventQuery_v3020",
)


def with_all_classes(script: Script) -> Script:
    """The script with calls of all classes in turn."""
    steps, number = [], 0
    for method, values in script.steps:
        if method == "api":
            values = {**values, "name": NAMES[number % len(NAMES)]}
            number += 1
        steps.append((method, values))
    return replace(script, steps=tuple(steps))


def busy(profile: Profile, call: Outermost) -> int:
    """The moments of a call at which a GPU that its process uses runs anything."""
    table, pids = profile.activities, [process.pid for process in profile.processes]
    spans = [
        (int(table.device[row]), int(table.start[row]), int(table.duration[row]))
        for row in range(len(table))
        if table.start[row] or table.duration[row]
    ]
    used = {
        int(table.device[row])
        for row in range(len(table))
        if table.process[row] >= 0 and pids[table.process[row]] == call.pid
    }
    return sum(
        any(
            device in used and start <= moment < start + duration
            for device, start, duration in spans
        )
        for moment in range(call.begin, call.end)
    )


@random_traces
@given(scripts())
def test_calls_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = with_all_classes(script).write(trace_file)
    scope = Scope(load(path, LoadOptions("raw")))
    by_name = defaultdict(list)
    for call in outermost_calls(path):
        by_name[call.name].append(call)
    rows = [row for row in table_rows(api_section(scope)) if row["count"]]
    assert {row["name"] for row in rows} == by_name.keys()
    for row in rows:
        calls = by_name[row["name"]]
        lengths = [call.length for call in calls]
        assert (row["count"], row["ns"]) == (len(lengths), sum(lengths))
        assert [row["p50_ns"], row["p99_ns"]] == [rank(lengths, 50), rank(lengths, 99)]
        assert (row["min_ns"], row["max_ns"]) == (min(lengths), max(lengths))
        assert row["threads"] == len({(call.pid, call.tid) for call in calls})


@pytest.mark.deep
@random_traces
@given(scripts())
def test_calls_within_others_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = with_all_classes(script).write(trace_file)
    every: defaultdict[str, list[int]] = defaultdict(list)
    for call in read_calls(Trace(path)):
        if call.event_class != BACKTRACE:
            every[call.name].append(max(call.end - call.start, 0))
    outer = Counter(call.name for call in outermost_calls(path))
    expected = {
        name: sum(length > 0 for length in lengths) - outer[name] for name, lengths in every.items()
    }
    scope = Scope(load(path, LoadOptions("raw")), details=frozenset(["row"]))
    section = api_section(scope)
    if not section.available:
        assert not outer
        return
    rows = {row["name"]: row["inside"] for row in table_rows(section)}
    assert rows == {name: inside for name, inside in expected.items() if inside or outer[name]}
    by_row = {
        row["name"]: [row["count"], row["ns"], row["max_ns"]]
        for row in table_rows(section, "by_row")
    }
    assert by_row == {name: [len(one), sum(one), max(one)] for name, one in every.items()}


@random_traces
@given(scripts())
def test_waits_are_those_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = with_all_classes(script).write(trace_file)
    scope = Scope(load(path, LoadOptions("raw")))
    expected: defaultdict[tuple[int, int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    calls = outermost_calls(path)
    for call in calls:
        if call.name == "cudaStreamSynchronize":
            sums = expected[call.pid, call.tid, call.name]
            for at, value in enumerate((1, call.length, busy(scope.profile, call))):
                sums[at] += value
    section = syncs_section(scope)
    found = {
        (row["pid"], row["tid"], row["name"]): [row["count"], row["ns"], row["while_busy_ns"]]
        for row in table_rows(section)
    }
    assert found == dict(expected)
    assert all(
        row["ns"] == row["while_busy_ns"] + row["while_idle_ns"] for row in table_rows(section)
    )
    if section.available:
        assert section.facts["polls"] == sum(call.name == "cudaEventQuery" for call in calls)


@needs_traces
@pytest.mark.parametrize("name", deep_except(["ten_streams.sqlite"], NSYS_TRACES))
def test_calls_of_real_traces_are_those_of_plain_loops(name: str) -> None:
    path = TRACES / "nsys" / name
    expected: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for call in outermost_calls(path):
        expected[call.name][0] += 1
        expected[call.name][1] += call.length
    rows = [row for row in table_rows(api_section(Scope(load(path)))) if row["count"]]
    assert {row["name"]: [row["count"], row["ns"]] for row in rows} == dict(expected)


# By hand


@pytest.fixture
def trace(tmp_path: Path) -> Profile:
    """A thread that waits, allocates and frees; another process that waits as well."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("all", 0, 10_000_000)
        file.kernel("gemm", 100, 200, corr=None)
        file.api("cudaDeviceSynchronize_v3020", 150, 300, corr=2)
        file.api("cuStreamSynchronize", 160, 290, corr=3)
        file.api("cudaMalloc_v3020", 1_000, 1_001_001, corr=4)
        file.api("cudaMalloc_v3020", 2_000_000, 3_000_000, corr=5)
        file.api("cudaFree_v3020", 4_000_000, 4_000_040, corr=6)
        file.api("cudaFreeAsync_v11020", 5_000_000, 5_000_040, corr=7)
        file.api("cudaMemcpy_v3020", 6_000_000, 6_000_010, corr=8)
        file.api("cudaMemcpyAsync_v3020", 7_000_000, 7_000_010, corr=9)
        file.api("cudaStreamWaitEvent_v3020", 8_000_000, 8_000_010, corr=10)
        file.api("cudaDeviceSynchronize_v3020", 0, 50, corr=2, pid=200, tid=200)
    return load(tmp_path / "trace.sqlite")


def test_waits(trace: Profile) -> None:
    section = syncs_section(Scope(trace))
    own, other = table_rows(section)
    assert [own[key] for key in ("ns", "while_busy_ns", "while_idle_ns")] == [150, 50, 100]
    assert own["thread_percent"] == 0.002  # of 10 ms
    assert [other[key] for key in ("ns", "while_busy_ns", "pid")] == [50, 0, 200]
    assert section.facts["polls"] == 1
    assert section.facts["total_ns"] == 200
    implicit = {row["name"]: row["ns"] for row in table_rows(section, "implicit")}
    assert implicit == {"cudaFree": 40, "cudaMemcpy": 10}


def test_allocations(trace: Profile) -> None:
    section = memory_section(Scope(trace))
    rows = {row["name"]: row for row in table_rows(section)}
    assert rows.keys() == {"cudaMalloc", "cudaFree", "cudaFreeAsync"}
    columns = ("count", "ns", "long", "long_ns", "longest_begin_ns")
    assert [rows["cudaMalloc"][key] for key in columns] == [2, 2_000_001, 1, 1_000_001, 1_000]
    assert (section.facts["long"], section.facts["per_iteration_p50"]) == (1, None)
    [place] = [one for one in section.tables[0].places if one and one.window == (1_000, 1_001_001)]
    assert place is section.tables[0].places[0], "the longest call of the costliest name"


def test_calls_within_others_and_those_that_failed(trace: Profile, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with NsysFile.reopened(path) as file:
        table = "CUPTI_ACTIVITY_KIND_RUNTIME"
        for row, value in ((3, 2), (4, 2), (1, 700), (8, 600), (9, 600)):
            file.db.execute(f"UPDATE {table} SET returnValue = ? WHERE rowid = ?", (value, row))
    section = api_section(Scope(load(path)))
    rows = {row["name"]: row for row in table_rows(section)}
    nested = rows["cuStreamSynchronize"]
    assert [nested[key] for key in ("count", "ns", "inside", "p50_ns")] == [0, 0, 1, None]
    assert rows["cudaDeviceSynchronize"]["inside"] == 0
    assert {name: row["errors"] for name, row in rows.items() if row["errors"]} == {
        "cudaDeviceSynchronize": 1,
        "cudaMalloc": 2,
        "cudaStreamWaitEvent": 1,
        "cudaMemcpyAsync": 1,
    }
    results = table_rows(section, "results")
    columns = ("name", "value", "error", "count", "first_ns")
    first = [results[0][key] for key in columns]
    assert first == ["cudaMalloc", 2, "cudaErrorMemoryAllocation", 2, 1_000]
    assert section.tables[1].places[0] == Place(window=(1_000, 1_001_001))
    assert (section.facts["errors"], section.facts["inside"]) == (5, 1)
    assert any("600" in note for note in section.notes)
    assert not any("10.1" in note for note in section.notes)
    [one] = table_rows(
        api_section(Scope(load(path), select(where=(Time(1_000, 1_001),)))), "results"
    )
    assert one["count"] == 1


def test_a_trace_that_does_not_tell_of_errors_has_none(trace: Profile, tmp_path: Path) -> None:
    whole, path = api_section(Scope(trace)), tmp_path / "trace.sqlite"
    assert whole.facts["errors"] == 0
    assert all(row["errors"] == 0 for row in table_rows(whole))
    with NsysFile.reopened(path) as file:
        file.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN returnValue")
    section = api_section(Scope(load(path)))
    assert section.facts["errors"] is None
    assert all(row["errors"] is None for row in table_rows(section))


def test_filters_choose_calls_by_thread_and_time(trace: Profile) -> None:
    def names(*where: Time | Pids | Tids) -> set[str]:
        rows = table_rows(api_section(Scope(trace, select(where=where))))
        return {row["name"] for row in rows if row["count"]}

    assert names(Pids((200,))) == {"cudaDeviceSynchronize"}
    assert names(Tids((200,))) == {"cudaDeviceSynchronize"}
    assert names(Time(None, 1_000)) == {"cudaDeviceSynchronize"}
    assert names(Time(6_000_000, 7_000_001)) == {"cudaMemcpy", "cudaMemcpyAsync"}
    assert names(Pids((200,)), Time(60)) == set()


def test_per_iteration(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for step in range(3):
            at = 1_000 * step
            file.nvtx(f"step {step}", at, at + 900)
            file.api("cudaLaunchKernel_v7000", at + 10, at + 20, corr=step + 1)
            file.kernel("gemm", at + 30, at + 40, corr=step + 1)
            for call in range(step):
                file.api("cudaMalloc_v3020", at + 50 + 10 * call, at + 55 + 10 * call, corr=None)
    profile = load(tmp_path / "trace.sqlite")
    assert memory_section(Scope(profile)).facts["per_iteration_p50"] == 1
    last = memory_section(Scope(profile, select(where=(Steps(((2, 2),)),))))
    assert last.facts["per_iteration_p50"] == 2
    assert last.notes[0] == "an iteration has 2 of these, as a median"
    waits = syncs_section(Scope(profile))
    assert waits.facts["per_iteration_p50"] == 0
    assert waits.notes == ("no call blocks until the GPU is done",)


def test_without_calls_nothing_is_said(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.memcpy(HTOD, 0, 10)
    scope = Scope(load(tmp_path / "trace.sqlite"))
    for section in (api_section(scope), syncs_section(scope), memory_section(scope)):
        assert section.why == "no API call was recorded"
