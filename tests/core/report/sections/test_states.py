"""What held programs up: overhead, loading and garbage collection by name, the GIL by thread."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.loading.many import load
from flame.core.model.calls import IdleCause
from flame.core.options import LoadOptions
from flame.core.projection.filters import Filter, Pids, Tids, Time
from flame.core.projection.selection import select
from flame.core.report.program.iterations import iterations_section
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.report.sections.idle import idle_section
from flame.core.report.sections.states import states_section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.states import HOLDING, WAITING, covered, state_spans, with_states
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import pid_of, tid_of
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.nsysfile import START_END, NsysFile, gtid

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


def test_causes_by_hand(gil_path: Path) -> None:
    scope = Scope(load(gil_path))
    section = idle_section(scope)
    rows = {row["cause"]: row["ns"] for row in table_rows(section, "causes")}
    # Of the first gap 90 are before the launch; three more gaps, and those between steps.
    assert (rows["garbage collection"], rows["waiting for the GIL"]) == (30, 30)
    assert rows["host code"] == 4 * 90 - 60 + 3 * 10
    [budget] = budgets(scope)
    assert budget.check == 0
    assert {name: ns for name, ns in budget.parts if name.startswith("idle: ")} == {
        f"idle: {cause}": ns for cause, ns in rows.items()
    }
    told = [cause.title for cause in IdleCause]
    assert [*section.facts["devices"][0]["causes_ns"]] == told  # type: ignore[index]


def test_filters_choose_threads_and_windows(gil_path: Path) -> None:
    def waited(*where: Filter) -> dict[int, int]:
        rows = table_rows(states_section(Scope(load(gil_path), select(where=where))), "gil")
        return {row["tid"]: row["waited_ns"] for row in rows}

    assert waited(Tids((107,))) == {107: 20}
    assert waited(Pids((300,))) == {300: 100}
    assert waited(Time(60, 100)) == {100: 20, 107: 20}


def test_what_the_trace_does_not_tell_of_is_no_cause(path: Path, tmp_path: Path) -> None:
    def told(path: Path) -> set[str]:
        section = idle_section(Scope(load(path)))
        return {*section.facts["devices"][0]["causes_ns"]}  # type: ignore[index]

    with NsysFile(tmp_path / "plain.sqlite") as file:
        file.kernel("gemm", 0, 10, corr=None)
        file.kernel("gemm", 20, 30, corr=None)
    held = {"garbage collection", "waiting for the GIL"}
    assert not told(tmp_path / "plain.sqlite") & held
    assert told(path) & held == {"garbage collection"}


@needs_traces
@pytest.mark.parametrize("name", NSYS_TRACES)
def test_real_traces(name: str) -> None:
    section = states_section(Scope(load(TRACES / "nsys" / name)))
    rows = table_rows(section) if section.available else []
    assert all(0 <= row["idle_ns"] <= row["ns"] for row in rows if row["count"] == 1)
