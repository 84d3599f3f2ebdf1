"""Marks, start/end ranges and the GIL: read when they are asked for, merged, kept."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from flame.core.model.threads.events import EventStyle
from flame.core.options import LoadOptions
from tests.core.reopening.conftest import find, keep
from tests.support.compiled import only_numpy
from tests.support.tiers import deep_except, examples
from tests.support.writers.nsysfile import MARK, PUSH_POP, START_END, NsysFile

Event = tuple[str, str, str, int, int, int]
"""(style, name, domain, tid, start, end)."""

WORKER = 107
"""A thread that does nothing else."""

EXPECTED: list[Event] = [
    ("START_END", "load", "", 100, 10, 90),
    ("OF_PROFILER", "Waiting for GIL", "GIL Trace", WORKER, 20, 35),
    ("MARK", "epoch", "", 100, 50, 50),
    ("START_END", "Python GC", "runtime", 100, 60, 70),
    ("OF_PROFILER", "Holding GIL", "GIL Trace", 100, 0, 300),
]


def written(path: Path, shift: int = 0) -> Path:
    """A trace with all sorts of events, and what looks like them; it ends at 300."""
    with NsysFile(path) as file:
        file.process(100, "python")
        file.thread(100, WORKER, "loader")
        file.nvtx("step", shift, 200 + shift)
        file.nvtx("load", 10 + shift, 90 + shift, type=START_END)
        file.nvtx("Waiting for GIL", 20 + shift, 35 + shift, tid=WORKER, domain=1)
        file.nvtx("epoch", 50 + shift, None, type=MARK)
        file.nvtx("Python GC", 60 + shift, 70 + shift, type=START_END, domain=3, registered=True)
        file.nvtx("Holding GIL", shift, None, domain=1)
        file.nvtx("sample", 40 + shift, None, domain=2, type=MARK)
        file.nvtx("mark of the GIL", 40 + shift, None, domain=1, type=MARK)
        file.domain(1, "GIL Trace")
        file.domain(2, "Python Backtrace")
        file.domain(3, "runtime")
        file.api("cudaLaunchKernel_v7000", 100 + shift, 110 + shift, corr=1)
        file.kernel("gemm", 200 + shift, 300 + shift, corr=1)
    return path


def events(profile: Profile, shift: int = 0) -> list[Event]:
    found = profile.events
    assert found is not None
    return [
        (
            EventStyle(found.style[at]).name,
            *found.names[found.name[at]],
            found.threads[found.thread[at]].tid,
            int(found.start[at]) - shift,
            int(found.end[at]) - shift,
        )
        for at in range(len(found))
    ]


def test_all_that_is_no_range(tmp_path: Path) -> None:
    profile = load(written(tmp_path / "trace.sqlite"))
    assert events(profile) == EXPECTED
    assert profile.events is not None and not profile.events.in_ranges
    threads = {one.tid: one for one in profile.events.threads}
    assert threads[WORKER] == (100, WORKER, "loader", 0, -1)
    assert threads[100] == (100, 100, "python", 0, 0)
    assert [thread.tid for thread in profile.threads] == [100]


def test_without_the_compiled_part_it_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    with only_numpy():
        assert events(load(path)) == EXPECTED


def test_start_end_ranges_may_be_ranges_as_well(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    profile = load(path, LoadOptions(nvtx_start_end=True))
    assert events(profile) == EXPECTED
    assert profile.events is not None and profile.events.in_ranges


def test_of_a_trace_without_any_nothing_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.domain(2, "Python Backtrace")
        file.nvtx("step", 0, 10)
        file.nvtx("sample", 5, None, domain=2, type=MARK)
        file.kernel("gemm", 0, 10)
    assert load(path).events_builder is None


def test_the_file_is_not_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    profile = load(path)
    path.unlink()
    assert events(profile) == EXPECTED


Row = tuple[int, int, int, int | None, int | None]
"""(type, domain, tid, start, end)."""

ROWS = st.tuples(
    st.sampled_from([PUSH_POP, PUSH_POP, START_END, MARK]),
    st.integers(0, 3),
    st.integers(100, 102),
    st.none() | st.integers(0, 50),
    st.none() | st.integers(50, 90),
)
DOMAINS = {0: "", 1: "GIL Trace", 2: "Python Backtrace", 3: "runtime"}


def naive_events(rows: list[Row]) -> list[Event]:
    """What is an event, row by row; the trace ends at 300."""
    found: list[Event] = []
    for at, (kind, domain, tid, start, end) in enumerate(rows):
        named = DOMAINS[domain]
        style = {MARK: "MARK", START_END: "START_END"}.get(kind, "")
        if named == "GIL Trace":
            style = "" if kind == MARK else "OF_PROFILER"
        if style and named != "Python Backtrace" and start is not None:
            last = start if kind == MARK else 300 if end is None else end
            found.append((style, f"row {at % 3}", named, tid, start, last))
    return found


@pytest.mark.deep
@examples(1, [])
@given(rows=st.lists(ROWS, max_size=12), start_end=st.booleans())
def test_events_are_those_of_the_rows_in_their_order(
    trace_file: Path, rows: list[Row], start_end: bool
) -> None:
    trace_file.unlink(missing_ok=True)
    with NsysFile(trace_file) as file:
        file.create("NVTX_EVENTS")
        file.loosen("NVTX_EVENTS")
        for at, (kind, domain, tid, start, end) in enumerate(rows):
            file.nvtx(f"row {at % 3}", start, end, type=kind, domain=domain, tid=tid)
        for number in (1, 2, 3):
            file.domain(number, DOMAINS[number])
        file.kernel("gemm", 200, 300)
    profile = load(trace_file, LoadOptions(nvtx_start_end=start_end))
    assert (events(profile) if profile.events else []) == naive_events(rows)


@pytest.mark.parametrize(
    "cell",
    deep_except(
        [("start", None), ("text", b"\xff\xfe"), ("domainId", "x")],
        [
            ("globalTid", None),
            ("start", None),
            ("start", 1 << 62),
            ("eventType", "many"),
            ("eventType", None),
            ("textId", 99_999),
            ("text", b"\xff\xfe"),
            ("domainId", "x"),
            ("end", "soon"),
            ("end", -5),
            ("domainId", -(1 << 63)),
        ],
    ),
)
def test_damaged_cells_make_no_error(tmp_path: Path, cell: tuple[str, object]) -> None:
    column, value = cell
    path = written(tmp_path / "trace.sqlite")
    with NsysFile.reopened(path) as file:
        file.loosen("NVTX_EVENTS")
        file.db.execute(f'UPDATE NVTX_EVENTS SET "{column}" = ? WHERE eventType <> 75', (value,))
    profile = load(path)
    found = profile.events
    assert found is None or bool((found.end >= found.start).all())
    if column in ("globalTid", "start", "eventType"):
        assert found is None or not len(found)


@pytest.mark.parametrize(
    "column",
    deep_except(["domainId"], ["domainId", "textId", "globalTid", "eventType", "end", "text"]),
)
def test_without_a_column_there_is_no_error(tmp_path: Path, column: str) -> None:
    path = written(tmp_path / "trace.sqlite")
    with NsysFile.reopened(path) as file:
        file.db.execute(f'ALTER TABLE NVTX_EVENTS DROP COLUMN "{column}"')
    found = load(path).events
    assert (found is None) == (column in ("globalTid", "eventType"))


def test_times_that_are_centuries_long_are_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    with NsysFile.reopened(path) as file:
        for _ in range(5):
            file.nvtx("long", -(1 << 60), 1 << 60, type=START_END)
    with pytest.raises(
        InputError, match=r"trace\.sqlite: damaged: .* century; export the report again"
    ):
        _ = load(path).events


def test_several_files_keep_theirs_apart(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a.sqlite"), written(tmp_path / "b.sqlite", 1_000)]
    with NsysFile(tmp_path / "c.sqlite") as file:
        file.kernel("gemm", 0, 10)
    profiles = [load(path) for path in (*paths, tmp_path / "c.sqlite")]
    profile = merge_profiles(profiles, ["a", "b", "c"])
    found = events(profile)
    assert [one[:4] for one in found] == 2 * [one[:4] for one in EXPECTED]
    lengths = [end - start for *_, start, end in found]
    assert lengths == 2 * [end - start for *_, start, end in EXPECTED]
    for own in (found[:5], found[5:]):
        first = min(start for *_, start, _ in own)
        assert [start - first for *_, start, _ in own] == [start for *_, start, _ in EXPECTED]
    assert profile.events is not None
    threads = profile.events.threads
    assert [profile.processes[thread.process].source for thread in threads] == [0, 0, 1, 1]
    known = [thread.thread for thread in threads if thread.thread >= 0]
    assert [profile.threads[at].tid for at in known] == [100, 100]


def test_a_kept_trace_has_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "trace.sqlite")
    keep(path)
    found = find(path)
    assert found is not None and events(found) == EXPECTED


def test_a_profile_that_comes_from_another_process_reads_them(tmp_path: Path) -> None:
    profile = load(written(tmp_path / "trace.sqlite"))
    assert events(pickle.loads(pickle.dumps(profile))) == EXPECTED


def test_owners_are_told_by_all_of_their_key(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.nvtx("a", 0, None, pid=100, tid=1, type=MARK)
        file.nvtx("a", 0, None, pid=101, tid=1, type=MARK)
        file.kernel("gemm", 0, 10)
    profile = load(path)
    assert profile.events is not None
    assert [(one.pid, one.tid) for one in profile.events.threads] == [(100, 1), (101, 1)]
