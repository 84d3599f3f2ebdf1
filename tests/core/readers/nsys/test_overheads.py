"""When the profiler held the program up: read, merged, kept, and taken out of idle time."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.profile import Profile
from flame.core.names.overheads import holds_process, is_of_profiler
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.core.reopening.conftest import find, keep
from tests.support.writers.nsysfile import NsysFile, gtid

OTHER = 101
"""A thread, and a process, besides those that launch."""

Row = tuple[str, int, int, int | None]
"""(name, start, end, globalTid)."""

MAIN = gtid(100, 100)


def written(path: Path, *rows: Row, shift: int = 0) -> Path:
    """A trace of two kernels with 100 ns between them, of which the host's code takes 90."""
    with NsysFile(path) as file:
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=1, pid=100, tid=100)
        file.kernel("first", 10, 20, corr=1)
        file.api("cudaLaunchKernel_v7000", 110, 115, corr=2, pid=100, tid=100)
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=9, pid=100, tid=OTHER)
        file.api("cudaLaunchKernel_v7000", 0, 5, corr=9, pid=OTHER, tid=OTHER)
        file.kernel("second", 120, 130, corr=2)
        file.db.execute(
            'CREATE TABLE PROFILER_OVERHEAD (start INTEGER, "end" INTEGER, globalTid INTEGER, '
            "nameId INTEGER)"
        )
        for number, (name, start, end, owner) in enumerate(rows, 9_000):
            file.db.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (number, name))
            values = (start + shift, end + shift, owner, number)
            file.db.execute("INSERT INTO PROFILER_OVERHEAD VALUES (?, ?, ?, ?)", values)
    return path


def held(profile: Profile) -> int:
    """The idle time between the kernels that passed with the profiler."""
    lengths = [
        int(parts.high[at] - parts.low[at])
        for parts in idle_parts(profile)
        for at in range(len(parts.gap))
        if parts.cause[at] == IdleCause.PROFILER
    ]
    return sum(lengths)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("CUPTI Instrumentation", 30, 50, MAIN), 20),
        (("CUPTI Instrumentation", 15, 500, MAIN), 100),
        (("CUPTI Instrumentation", 30, 50, gtid(100, OTHER)), 0),
        (("CUPTI Buffer flush", 30, 50, gtid(100, OTHER)), 20),
        (("CUPTI: Buffer flush", 30, 50, gtid(OTHER, OTHER)), 0),
        (("CUDA profiling data flush overhead", 30, 50, gtid(100, OTHER)), 20),
        (("dlopen(libcuda.so)", 30, 50, MAIN), 0),
        (("Lazy Function Loading", 30, 50, MAIN), 0),
        (("Command Buffer Full", 30, 50, MAIN), 0),
        (("CUPTI Instrumentation", 50, 30, MAIN), 0),
        (("CUPTI Instrumentation", 30, 50, None), 0),
        (("CUPTI Instrumentation", 30, 50, gtid(7, 7)), 0),
        (("CUPTI Instrumentation", -(1 << 62), 1 << 62, MAIN), 0),
    ],
)
def test_what_holds_up_the_thread_that_launches_next(
    row: Row, expected: int, tmp_path: Path
) -> None:
    assert held(load(written(tmp_path / "trace.sqlite", row))) == expected


def test_overheads_that_overlap_count_once(tmp_path: Path) -> None:
    rows = [("CUPTI Instrumentation", 30, 60, MAIN), ("CUPTI Buffer flush", 50, 70, MAIN)]
    assert held(load(written(tmp_path / "trace.sqlite", *rows))) == 40


def test_it_makes_no_thread_known_and_the_trace_no_longer(tmp_path: Path) -> None:
    late = ("CUPTI Instrumentation", 30, 1_000_000, gtid(7, 7))
    one, other = written(tmp_path / "a.sqlite"), written(tmp_path / "b.sqlite", late)
    profiles = [load(path) for path in (one, other)]
    assert profiles[0].threads == profiles[1].threads
    assert profiles[0].processes == profiles[1].processes
    assert profiles[0].end == profiles[1].end


def test_a_trace_without_the_table_does_not_tell(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
    assert load(tmp_path / "trace.sqlite").overheads is None


def test_several_files_keep_theirs_apart(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / "a.sqlite", ("CUPTI Instrumentation", 30, 50, MAIN)),
        written(tmp_path / "b.sqlite", ("CUPTI Buffer flush", 30, 60, MAIN)),
        written(tmp_path / "c.sqlite"),
    ]
    profile = load_all(paths)
    assert profile.overheads is not None
    found = [profile.overheads.names[at] for at in profile.overheads.name]
    assert found == ["CUPTI Instrumentation", "CUPTI Buffer flush"]
    assert held(profile) == 20 + 30


def test_a_kept_trace_has_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "trace.sqlite", ("CUPTI Instrumentation", 30, 50, MAIN))
    keep(path)
    found = find(path)
    assert found is not None and held(found) == 20


@pytest.mark.parametrize(
    ("name", "of_profiler", "of_process"),
    [
        ("CUDA profiling data flush on process exit", True, True),
        ("CUDA profiling stop overhead", True, True),
        ("CUPTI Resource Management", True, False),
        ("Runtime Triggered Module Loading", False, False),
        ("dlclose", False, False),
        ("", True, False),
    ],
)
def test_names(name: str, of_profiler: bool, of_process: bool) -> None:
    assert (is_of_profiler(name), holds_process(name)) == (of_profiler, of_process)
