"""Calls of the operating system: by function, in idle time, and as NVIDIA's script sums them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Pids, Tids, Time
from flame.core.projection.selection import select
from flame.core.report.host.os_time import NOT_RECORDED, RUNNING, host_code_parts
from flame.core.report.parties.threads import threads_section
from flame.core.report.scope import Scope
from flame.core.report.sections.idle import idle_section
from flame.core.report.sections.os_calls import os_section
from flame.core.timeline.idle_parts import IdleCause
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, Step, lengths, moments, scripts, threads
from tests.support.oracles.oracles import report, traces_with
from tests.support.profiles.report_rows import rank, table_rows
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import NsysFile

FUNCTIONS = ("read", "poll", "futex")


@st.composite
def os_calls(draw: st.DrawFn) -> Step:
    pid, tid = draw(st.one_of(threads, st.just((900, 900))))
    start, name = draw(moments), draw(st.sampled_from(FUNCTIONS))
    times = {"start": start, "end": start + draw(lengths)}
    return "os_call", {"name": name, "pid": pid, "tid": tid, **times}


def owners(calls: list[dict[str, int]]) -> dict[tuple[int, int, int], str]:
    """Which function each thread was in at each moment: of several the outermost."""
    found: dict[tuple[int, int, int], str] = {}
    ordered = sorted(enumerate(calls), key=lambda one: (one[1]["start"], -one[1]["end"], one[0]))
    for _, call in ordered:
        for moment in range(call["start"], call["end"]):
            found.setdefault((call["pid"], call["tid"], moment), str(call["name"]))
    return found


def is_idle(scope: Scope, pid: int, moment: int) -> bool:
    """Whether a GPU that the process uses is between activities."""
    table, profile = scope.profile.activities, scope.profile
    for device in range(len(profile.devices)):
        rows = [at for at in range(len(table)) if table.device[at] == device]
        users = {profile.processes[table.process[at]].pid for at in rows if table.process[at] >= 0}
        times = [
            (int(table.start[at]), int(table.start[at] + table.duration[at]))
            for at in rows
            if table.start[at] or table.duration[at]
        ]
        if pid not in users or not times:
            continue
        if not min(times)[0] <= moment < max(end for _, end in times):
            continue
        if not any(start <= moment < end for start, end in times):
            return True
    return False


@examples(0.3, [HealthCheck.too_slow])
@given(scripts(), st.lists(os_calls(), min_size=1, max_size=8))
def test_functions_are_summed_call_by_call(
    trace_file: Path, script: Script, steps: list[Step]
) -> None:
    script = replace(script, schema="new", pids=True, steps=(*script.steps, *steps), offset=1)
    scope = Scope(load(script.write(trace_file), LoadOptions("raw")))
    calls = [
        {**values, "start": values["start"] + 1, "end": values["end"] + 1} for _, values in steps
    ]
    of_moment = owners(calls)
    rows = {row["name"]: row for row in table_rows(os_section(scope))}
    assert rows.keys() == {call["name"] for call in calls}
    for name, row in rows.items():
        mine = [call for call in calls if call["name"] == name]
        lasted = [call["end"] - call["start"] for call in mine]
        assert (row["count"], row["ns"], row["max_ns"]) == (len(mine), sum(lasted), max(lasted))
        assert (row["p50_ns"], row["p99_ns"]) == (rank(lasted, 50), rank(lasted, 99))
        assert row["threads"] == len({(call["pid"], call["tid"]) for call in mine})
        outer = [key for key, function in of_moment.items() if function == name]
        assert row["ns"] - (row["inside_ns"] or 0) == len(outer)
        assert row["idle_ns"] == sum(is_idle(scope, pid, moment) for pid, _, moment in outer)
    by_thread = {
        (row["pid"], row["tid"]): row["ns"] for row in table_rows(os_section(scope), "threads")
    }
    expected = Counter((pid, tid) for pid, tid, _ in of_moment)
    assert {key: ns for key, ns in by_thread.items() if ns} == dict(expected)


@examples(0.3, [HealthCheck.too_slow])
@given(scripts(), st.lists(os_calls(), min_size=1, max_size=8))
def test_host_code_is_divided_moment_by_moment(
    trace_file: Path, script: Script, steps: list[Step]
) -> None:
    script = replace(script, schema="new", steps=(*script.steps, *steps), offset=0)
    scope = Scope(load(script.write(trace_file), LoadOptions("raw")))
    profile, of_moment = scope.profile, owners([values for _, values in steps])
    recorded = {values["pid"] for _, values in steps}
    for gpu in scope.gpus:
        idle, expected = scope.idle(gpu), Counter[str]()
        for at in range(len(idle.low)):
            if idle.cause[at] != IdleCause.HOST_CODE:
                continue
            thread = profile.threads[profile.activities.thread[idle.after[idle.gap[at]]]]
            pid = profile.processes[thread.process].pid
            for moment in range(int(idle.low[at]), int(idle.high[at])):
                if gpu.window.low <= moment < gpu.window.high:
                    rest = RUNNING if pid in recorded else NOT_RECORDED
                    expected[of_moment.get((pid, thread.tid, moment), rest)] += 1
        found = host_code_parts(scope, gpu)
        assert found is not None
        assert {one.name: one.ns for one in found} == dict(expected)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two kernels with a pause of 100 ns, in which the thread reads for 40, of which 10 nested."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        file.kernel("first", 10, 20, corr=1)
        file.os_call("fread", 50, 90)
        file.os_call("read", 60, 70)
        file.os_call("poll", 0, 500, tid=300)
        file.os_call("futex", 0, 500, pid=7, tid=7)
        file.api("cudaLaunchKernel_v7000", 110, 115, corr=2)
        file.kernel("second", 120, 130, corr=2)
    return tmp_path / "trace.sqlite"


def test_what_is_within_a_call_is_counted_and_said(path: Path) -> None:
    rows = {row["name"]: row for row in table_rows(os_section(Scope(load(path))))}
    found = {name: (row["ns"], row["inside_ns"], row["idle_ns"]) for name, row in rows.items()}
    assert found == {
        "fread": (40, 0, 40),
        "read": (10, 10, 0),
        "poll": (500, 0, 100),
        "futex": (500, 0, 0),
    }


def test_gaps_of_several_gpus_count_once(tmp_path: Path) -> None:
    """One GPU has a gap from 20 to 60, the other from 30 to 90."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1)
        for device, first, second in ((0, 20, 60), (1, 30, 90)):
            file.kernel("before", 10, first, device=device)
            file.kernel("after", second, 100, device=device)
        file.os_call("read", 0, 100)
    [row] = table_rows(os_section(Scope(load(tmp_path / "trace.sqlite"))))
    assert row["idle_ns"] == 70


def test_host_code_says_what_it_waited_for(path: Path) -> None:
    rows = table_rows(idle_section(Scope(load(path))), "host_code")
    assert [(row["name"], row["ns"], row["parts"]) for row in rows] == [
        (RUNNING, 50, 2),
        ("fread", 40, 1),
    ]


def test_threads_say_how_long_they_were_in_calls(path: Path) -> None:
    [row] = table_rows(threads_section(Scope(load(path))))
    assert row["os_ns"] == 40


def test_filters_choose_calls_of_threads_and_times(path: Path) -> None:
    profile = load(path)
    for chosen, names in (
        (Tids((300,)), {"poll"}),
        (Pids((7,)), {"futex"}),
        (Time(55, None), {"read"}),
    ):
        scope = Scope(profile, select(where=(chosen,)))
        assert {row["name"] for row in table_rows(os_section(scope))} == names


def test_a_trace_without_calls_says_how_to_record_them(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
        file.create("OSRT_API")
    scope = Scope(load(tmp_path / "trace.sqlite"))
    section = os_section(scope)
    assert not section.available and "osrt" in section.how
    assert table_rows(idle_section(scope), "host_code") == []


@needs_traces
@pytest.mark.parametrize("stem", deep_except(("oldest_schema",), traces_with("osrt_sum")))
def test_real_calls_are_those_of_nvidias_script(stem: str) -> None:
    section = os_section(Scope(load(TRACES / "nsys" / f"{stem}.sqlite")))
    found = {
        row["name"]: (row["count"], row["ns"], row["min_ns"], row["max_ns"])
        for row in table_rows(section)
    }
    columns = ("Num Calls", "Total Time:dur_ns", "Min:dur_ns", "Max:dur_ns")
    assert found == {
        row["Name"]: tuple(int(row[column]) for column in columns)
        for row in report(stem, "osrt_sum")
    }


@needs_traces
@pytest.mark.parametrize("name", deep_except(("oldest_schema.sqlite",), NSYS_TRACES))
def test_parts_of_real_host_code_add_up(name: str) -> None:
    scope = Scope(load(TRACES / "nsys" / name))
    for gpu in scope.gpus:
        found = host_code_parts(scope, gpu)
        if found is not None:
            whole = scope.idle(gpu).sums(gpu.windows)[IdleCause.HOST_CODE]
            assert sum(one.ns for one in found) == whole
