"""What held programs up: overhead, loading and garbage collection, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.scope import Scope
from flame.core.report.sections.states import states_section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.report_rows import table_rows
from tests.support.writers.nsysfile import NsysFile, gtid


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


@needs_traces
@pytest.mark.parametrize("name", NSYS_TRACES)
def test_real_traces(name: str) -> None:
    section = states_section(Scope(load(TRACES / "nsys" / name)))
    rows = table_rows(section) if section.available else []
    assert all(0 <= row["idle_ns"] <= row["ns"] for row in rows if row["count"] == 1)
