"""What held programs up: overhead, loading and garbage collection by name, the GIL by thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Pids, Tids, Time
from flame.core.projection.selection import select
from flame.core.report.host.host_code import HostState, find_holdups, host_code
from flame.core.report.program.iterations import iterations_section
from flame.core.report.scope import Scope
from flame.core.report.sections.idle import idle_section
from flame.core.report.sections.states import states_section
from flame.core.timeline.idle_parts import IdleCause
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.oracles.naive import Record, Trace, capture_end, nvtx_text, pid_of, tid_of
from tests.support.report_rows import table_rows
from tests.support.strategies import Script, Step, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import PUSH_POP, START_END, NsysFile, gtid

random_traces = examples(0.5, [HealthCheck.too_slow])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Kernels with 100 ns between them; of that 20 with a flush, 30 with a collection."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1, pid=100, tid=100)
        file.kernel("first", 10, 20, corr=1)
        file.nvtx("Python GC", 60, 90)
        file.nvtx("GC of layers", 60, 90)
        file.api("cudaLaunchKernel_v7000", 110, 115, corr=2, pid=100, tid=100)
        file.kernel("second", 120, 130, corr=2)
        file.db.execute(
            'CREATE TABLE PROFILER_OVERHEAD (start INTEGER, "end" INTEGER, globalTid INTEGER, '
            "nameId INTEGER)"
        )
        names = {9001: "CUPTI Buffer flush", 9002: "Lazy Function Loading"}
        file.db.executemany("INSERT INTO StringIds (id, value) VALUES (?, ?)", names.items())
        owner = gtid(100, 100)
        rows = [(15, 40, owner, 9001), (125, 128, owner, 9001), (0, 8, owner, 9002)]
        file.db.executemany("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, ?)", rows)
    return tmp_path / "trace.sqlite"


def test_each_by_name_with_the_idle_time_in_it(path: Path) -> None:
    rows = table_rows(states_section(Scope(load(path))))
    keys = ("state", "name", "ns", "idle_ns", "count", "max_ns")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("garbage collection", "Python GC", 30, 30, 1, 30),
        ("profiler", "CUPTI Buffer flush", 28, 20, 2, 25),
        ("loading", "Lazy Function Loading", 8, 0, 1, 8),
    ]


def test_what_lies_outside_a_window_counts_nothing(path: Path) -> None:
    scope = Scope(load(path), select(where=(Time(70, 200),)))
    rows = table_rows(states_section(scope))
    assert {row["name"]: row["ns"] for row in rows} == {"Python GC": 20, "CUPTI Buffer flush": 3}


def test_without_either_the_trace_does_not_tell(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
    assert not states_section(Scope(load(tmp_path / "trace.sqlite"))).available


# The GIL


Span = tuple[int, int]
HOLDING, WAITING, GC = "Holding GIL", "Waiting for GIL", "Python GC"


def with_states(script: Script) -> Script:
    """The script with domain 1 of process 100 that of the GIL, and start/end ranges collections."""
    steps: list[Step] = [("domain", {"id": 1, "pid": 100, "start": 0, "name": "GIL Trace"})]
    for number, (method, values) in enumerate(script.steps):
        if method == "domain":
            continue
        if method == "nvtx":
            text = GC if values["type"] == START_END else (WAITING, HOLDING)[number % 2]
            values = {**values, "text": text}
        steps.append((method, values))
    return replace(script, steps=tuple(steps))


def state_of(row: Record, text: str) -> str | None:
    """The state that a row tells of, if any."""
    if row["eventType"] not in (PUSH_POP, START_END):
        return None
    of_gil = row["domainId"] == 1 and pid_of(row["globalTid"]) == 100
    return text if of_gil == (text != GC) else None


def state_spans(path: Path) -> dict[tuple[str, int], list[Span]]:
    """When threads (globalTid) were in each state, row by row."""
    trace, found = Trace(path), defaultdict(list)
    last = capture_end(trace)
    for row in trace.rows("NVTX_EVENTS"):
        state = state_of(row, nvtx_text(trace, row))
        if state is not None:
            end = last if row["end"] is None else row["end"]
            found[state, row["globalTid"]].append((row["start"], end))
    return found


def covered(spans: Iterable[Span], low: int, high: int) -> set[int]:
    """The moments from ``low`` until ``high`` at which any of the spans is open."""
    return {at for at in range(low, high) if any(one <= at < other for one, other in spans)}


spans_ = st.builds(lambda low, length: (low, low + length), st.integers(0, 60), st.integers(0, 15))
states_ = st.lists(st.tuples(st.sampled_from([GC, WAITING, HOLDING]), spans_, st.booleans()))


@st.composite
def held_up(draw: st.DrawFn) -> Script:
    """Kernels with time between them, launched by either of two threads that were in states."""
    steps: list[Step] = [("domain", {"id": 1, "pid": 100, "start": 0, "name": "GIL Trace"})]
    lengths = draw(st.lists(st.integers(1, 12), min_size=2, max_size=6))
    for number, at in enumerate(accumulate(lengths)):
        call = {"name": "cudaLaunchKernel_v7000", "start": 2 * at, "end": 2 * at + 1}
        who = {"pid": 100, "tid": 100 + number % 2}
        steps.append(("api", {**call, **who, "corr": number + 1}))
        kernel = {"name": "gemm", "start": 2 * at + 1, "end": 2 * at + 2, "corr": number + 1}
        steps.append(("kernel", kernel))
    for text, (start, end), other in draw(states_):
        kind = {"type": START_END} if text == GC else {"domain": 1}
        row = {"text": text, "start": start, "end": end, "pid": 100, "tid": 100 + other}
        steps.append(("nvtx", {**row, **kind}))
    return Script("new", draw(st.sampled_from([0, -1_000])), pids=True, steps=tuple(steps))


@random_traces
@given(held_up())
def test_host_code_by_state_is_that_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = script.write(trace_file)
    scope, spans = Scope(load(path, LoadOptions("raw"))), state_spans(path)
    [gpu], holdups = scope.gpus, find_holdups(scope.profile)
    if holdups is None:
        assert not spans
        return
    expected, parts = Counter[str](), scope.idle(gpu)
    for at in np.flatnonzero(parts.cause == IdleCause.HOST_CODE).tolist():
        thread = scope.profile.activities.thread[parts.after[parts.gap[at]]]
        key = gtid(100, scope.profile.threads[thread].tid)
        low = max(int(parts.low[at]), gpu.window.low)
        high = min(int(parts.high[at]), gpu.window.high)
        collecting = covered(spans[GC, key], low, high)
        waiting = covered(spans[WAITING, key], low, high) - collecting
        expected["garbage collection"] += len(collecting)
        expected["waiting for the GIL"] += len(waiting)
        expected["other"] += max(high - low, 0) - len(collecting) - len(waiting)
    sums = host_code(scope, gpu, holdups)
    assert {state.title: int(sums[state]) for state in HostState} == {
        state.title: expected[state.title] for state in HostState
    }
    assert int(sums.sum()) == int(parts.sums(gpu.windows)[IdleCause.HOST_CODE])


@pytest.mark.deep
@random_traces
@given(scripts())
def test_the_gil_by_thread_is_that_of_plain_loops(trace_file: Path, script: Script) -> None:
    path = with_states(script).write(trace_file)
    section, spans = states_section(Scope(load(path, LoadOptions("raw")))), state_spans(path)
    expected = {}
    for thread in {thread for _, thread in spans}:
        both = [spans[state, thread] for state in (HOLDING, WAITING)]
        held, waited = (
            len(covered(one, min(map(min, one), default=0), max(map(max, one), default=0)))
            for one in both
        )
        waits = sum(end > start for start, end in both[1])
        if held or waited:
            expected[pid_of(thread), tid_of(thread)] = [held, waited, waits]
    rows = table_rows(section, "gil")
    columns = ("held_ns", "waited_ns", "waits")
    assert {(row["pid"], row["tid"]): [row[key] for key in columns] for row in rows} == expected
    for row in rows:
        assert row["thread_ns"] >= max(row["held_ns"], row["waited_ns"])


@pytest.fixture
def gil_path(tmp_path: Path) -> Path:
    """Idle from 20 to 120: a launch from 110; of that 30 collection, 40 waits, 10 of them in it."""
    with NsysFile(tmp_path / "gil.sqlite") as file:
        file.domain(1, "GIL Trace")
        file.thread(100, 107, "loader")
        for number in range(4):
            at = 200 * number
            file.nvtx(f"step {number}", at, at + 190)
            file.api("cudaLaunchKernel_v7000", at, at + 5, corr=2 * number + 1)
            file.kernel("first", at + 10, at + 20, corr=2 * number + 1)
            file.api("cudaLaunchKernel_v7000", at + 110, at + 115, corr=2 * number + 2)
            file.kernel("second", at + 120, at + 190, corr=2 * number + 2)
        file.nvtx("Python GC", 30, 60, type=START_END)
        file.nvtx("Waiting for GIL", 50, 70, domain=1)
        file.nvtx("Holding GIL", 70, 90, domain=1)
        file.nvtx("Waiting for GIL", 90, 110, domain=1)
        file.nvtx("Holding GIL", 0, 70, domain=1, tid=107)
        file.nvtx("Waiting for GIL", 70, 90, domain=1, tid=107)
        file.nvtx("Waiting for GIL", 200, 300, domain=1, tid=300, pid=300)
        file.domain(1, "GIL Trace", pid=300, tid=300)
    return tmp_path / "gil.sqlite"


def test_collections_without_the_option_and_per_iteration(gil_path: Path) -> None:
    for options in (LoadOptions(), LoadOptions(nvtx_start_end=True)):
        scope = Scope(load(gil_path, options))
        [row] = table_rows(states_section(scope))
        columns = ("state", "ns", "idle_ns", "count", "per_iteration", "iteration_ns")
        assert [row[key] for key in columns] == ["garbage collection", 30, 30, 1, 0.25, 8]
        iterations = table_rows(iterations_section(scope))
        assert [one["collection_ns"] for one in iterations] == [30, 0, 0, 0]
    assert all("GC" not in frame.name for frame in load(gil_path).frames.frames)


def test_the_gil_by_hand(gil_path: Path) -> None:
    section = states_section(Scope(load(gil_path)))
    columns = ("tid", "thread_ns", "held_ns", "waited_ns", "waited_idle_ns", "waits", "longest_ns")
    rows = [[row[key] for key in columns] for row in table_rows(section, "gil")]
    assert rows == [
        [300, 100, 0, 100, None, 1, 100],
        [100, 790, 20, 40, 40, 2, 20],
        [107, 90, 70, 20, 20, 1, 20],
    ]
    shares = [row["waited_percent"] for row in table_rows(section, "gil")]
    assert shares == [100.0, 5.063, 22.222]
    table = next(table for table in section.tables if table.key == "gil")
    assert [place.window for place in table.places if place] == [(200, 300), (90, 110), (70, 90)]
    assert [row["thread"] for row in table_rows(section, "gil")][2] == "loader [107]"


def test_host_code_by_hand(gil_path: Path) -> None:
    scope = Scope(load(gil_path))
    rows = {row["state"]: row["ns"] for row in table_rows(idle_section(scope), "host_states")}
    causes = {row["cause"]: row["ns"] for row in table_rows(idle_section(scope), "causes")}
    # Of the first gap 90 are before the launch; three more gaps, and those between steps.
    assert rows == {
        "garbage collection": 30,
        "waiting for the GIL": 30,
        "other": causes["host code"] - 60,
    }


def test_filters_choose_threads_and_windows(gil_path: Path) -> None:
    def waited(*where: Filter) -> dict[int, int]:
        rows = table_rows(states_section(Scope(load(gil_path), select(where=where))), "gil")
        return {row["tid"]: row["waited_ns"] for row in rows}

    assert waited(Tids((107,))) == {107: 20}
    assert waited(Pids((300,))) == {300: 100}
    assert waited(Time(60, 100)) == {100: 20, 107: 20}


def test_without_states_host_code_is_not_divided(path: Path, tmp_path: Path) -> None:
    with NsysFile(tmp_path / "plain.sqlite") as file:
        file.kernel("gemm", 0, 10, corr=None)
        file.kernel("gemm", 20, 30, corr=None)
    plain, collecting = (Scope(load(one)) for one in (tmp_path / "plain.sqlite", path))
    assert not table_rows(idle_section(plain), "host_states")
    rows = table_rows(idle_section(collecting), "host_states")
    assert [row["state"] for row in rows] == ["garbage collection", "other"]


@needs_traces
@pytest.mark.parametrize("name", NSYS_TRACES)
def test_real_traces(name: str) -> None:
    section = states_section(Scope(load(TRACES / "nsys" / name)))
    rows = table_rows(section) if section.available else []
    assert all(0 <= row["idle_ns"] <= row["ns"] for row in rows if row["count"] == 1)
