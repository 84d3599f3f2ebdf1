"""Calls that launch nothing: as they were recorded, and as old recordings lack them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from flame.core.loading.many import load, load_all
from flame.core.model.calls import CallClass
from flame.core.model.profile import Profile
from flame.core.report.findings.findings import find
from flame.core.report.scope import Scope
from flame.core.report.sections.api import api_section
from flame.core.report.sections.memory import memory_section
from flame.core.report.sections.syncs import syncs_section
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.core.readers.fdump.test_oracle import rows_of, written
from tests.support.oracles.naive_fdump import Dump
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import API, START, DumpFile, layouts
from tests.support.writers.fdumprecords import records, text
from tests.support.writers.fdumpscripts import Step, scripts

NAMES = {17: "cuMemAlloc_v2", 47: "cuStreamSynchronize", 307: "cuLaunchKernel", 400: "cuModuleLoad"}
KEPT_LAUNCHES = "launches alone were recorded (by an older flame)"


def a_dump(*, recorded: bool = True, old: bool = False, pid: int = 100) -> DumpFile:
    """A dump with names of calls; an ``old`` one cannot hold others than launches."""
    known = {key: layout for key, layout in layouts().items() if not (old and key == "call")}
    file = DumpFile(pid, records=known)
    for number, name in NAMES.items():
        file.name(API, number, name)
    file.meta("cupti", "13.0.1")
    if recorded:
        file.meta("calls", "recorded")
    return file


def two_kernels(file: DumpFile) -> None:
    """The GPU is idle from 100 to 950."""
    for start, number in ((0, 1), (900, 2)):
        file.launch(start, start + 10, number, api=307)
        file.kernel("k", start + 50, start + 100, number, tid=100)


def calls_of(profile: Profile) -> list[tuple[int, int, int, str]]:
    """Times, thread and name of the calls of a profile."""
    calls = profile.calls
    if calls is None:
        return []
    return sorted(
        (
            int(calls.start[row]),
            int(calls.end[row]),
            profile.threads[int(calls.thread[row])].tid,
            profile.frames[int(calls.frame[row])].name,
        )
        for row in range(len(calls))
    )


@examples(0.4)
@given(scripts)
def test_calls_are_the_outermost_ones_of_the_plain_reading(script: list[Step]) -> None:
    with written(script) as dump:
        profile, of = load(dump), records(dump)
        expected_rows = Dump(dump).rows()
    names = {int(row["id"]): text(of, int(row["text"])) for row in of["name"] if row["kind"] == API}
    every = [
        (
            int(row["start"]) - START,
            int(row["end"]) - START,
            int(row["tid"]),
            names[int(row["api"])],
        )
        for row in (*of["launch"], *of["call"])
    ]
    outermost = [
        one
        for one in every
        if not any(
            other[2] == one[2] and other[0] < one[0] and one[1] < other[1] for other in every
        )
    ]
    assert calls_of(profile) == sorted(outermost)
    assert sorted(rows_of(profile)) == sorted(expected_rows)


def test_a_launch_within_a_call_is_part_of_it_and_has_its_kernel(tmp_path: Path) -> None:
    file = a_dump()
    file.launch(10, 20, 1, api=307, flags=400 << 16)
    file.kernel("k", 30, 40, 1, tid=100)
    file.call(10, 20, api=400)
    profile = load(file.write(tmp_path / "x.fdump"))
    assert calls_of(profile) == [(10, 20, 100, "cuModuleLoad")]
    (row,) = rows_of(profile)
    assert row.launch == "cuLaunchKernel"


def test_work_is_never_that_of_a_call_that_launches_nothing(tmp_path: Path) -> None:
    file = a_dump()
    for start in range(0, 50, 10):
        file.call(start, start + 5, api=17)
    for number in (0, 1, 2):
        file.kernel("k", 100 + 10 * number, 105 + 10 * number, number, tid=100)
    profile = load(file.write(tmp_path / "x.fdump"))
    assert not profile.activities.launched.any()


def test_idle_time_has_the_causes_of_the_calls(tmp_path: Path) -> None:
    file = a_dump()
    two_kernels(file)
    file.call(20, 150, api=47)
    file.call(200, 260, api=17, result=2)
    file.call(300, 303, api=400)
    profile = load(file.write(tmp_path / "x.fdump"))
    (idle,) = idle_parts(profile)
    between, length = idle.low >= 100, idle.high - idle.low
    found = {
        IdleCause(cause): int(length[between & (idle.cause == cause)].sum())
        for cause in set(idle.cause[between].tolist())
    }
    assert found == {
        IdleCause.SYNC: 50,
        IdleCause.ALLOC: 60,
        IdleCause.OTHER_CALL: 3,
        IdleCause.HOST_CODE: 800 - 50 - 60 - 3,
        IdleCause.IN_LAUNCH: 10,
        IdleCause.AFTER_LAUNCH: 40,
    }
    scope = Scope(profile)
    assert scope.lacks_calls == ""
    assert scope.calls is not None
    assert scope.calls.of_class(CallClass.SYNC).length.tolist() == [130]
    facts = memory_section(scope).facts
    assert (facts["calls"], facts["total_ns"]) == (1, 60)


def test_failed_calls_have_the_names_of_their_errors(tmp_path: Path) -> None:
    file = a_dump()
    two_kernels(file)
    for start, result in ((20, 0), (30, 2), (40, 2), (50, 5_000)):
        file.call(start, start + 5, api=17, result=result)
    file.launch(60, 65, 3, api=307, flags=1 | 719 << 1 | 400 << 16)
    file.launch(70, 75, 4, api=307, flags=1)
    profile = load(file.write(tmp_path / "x.fdump"))
    assert profile.failures is not None and profile.failures.known == 8
    section = api_section(Scope(profile))
    columns = ("name", "value", "error", "count", "first_ns")
    assert [[row[key] for key in columns] for row in table_rows(section, "results")] == [
        ["cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY", 2, 30],
        ["cuMemAlloc_v2", 5_000, None, 1, 50],
        ["cuLaunchKernel", None, None, 1, 70],
        ["cuLaunchKernel", 719, "CUDA_ERROR_LAUNCH_FAILED", 1, 60],
    ]
    rows = {row["name"]: row["errors"] for row in table_rows(section)}
    assert rows == {"cuMemAlloc_v2": 3, "cuLaunchKernel": 2}


def test_failed_calls_of_several_processes_are_those_of_each(tmp_path: Path) -> None:
    for pid in (100, 101):
        file = a_dump(pid=pid)
        two_kernels(file)
        file.call(20, 25, tid=pid, api=400, result=pid)
        file.write(tmp_path / f"{pid}.fdump")
    profile = load_all([tmp_path])
    failures = profile.failures
    assert failures is not None and failures.known == 6
    tids = [profile.threads[thread].tid for thread in failures.thread.tolist()]
    assert sorted(zip(failures.value.tolist(), tids, strict=True)) == [(100, 100), (101, 101)]


@pytest.mark.parametrize("old", [True, False])
def test_what_was_not_recorded_is_not_none(tmp_path: Path, old: bool) -> None:
    file = a_dump(recorded=False, old=old)
    two_kernels(file)
    file.name(API, 276, "cuMemcpyDtoH_v2")
    file.launch(500, 510, 3, api=276)
    profile = load(file.write(tmp_path / "x.fdump"))
    scope = Scope(profile)
    assert not [line for line in profile.warnings if "does not know" in line]
    for section in (syncs_section(scope), memory_section(scope)):
        assert (section.why, section.tables) == (KEPT_LAUNCHES, ())
    abstained = {one.id: one.why for one in find(scope).abstained}
    assert abstained["sync-drain"] == abstained["alloc-in-loop"] == KEPT_LAUNCHES


def test_a_recording_that_looked_and_found_no_call_says_so(tmp_path: Path) -> None:
    file = a_dump()
    two_kernels(file)
    section = syncs_section(Scope(load(file.write(tmp_path / "x.fdump"))))
    assert (section.why, section.facts["count"]) == ("", 0)


def test_of_several_processes_all_must_have_them(tmp_path: Path) -> None:
    for name, recorded in (("x", True), ("y", False)):
        file = a_dump(recorded=recorded)
        two_kernels(file)
        file.write(tmp_path / f"{name}.fdump")
    assert Scope(load_all([tmp_path])).lacks_calls == KEPT_LAUNCHES
    # A process that never started CUDA made no call that could be missing.
    (tmp_path / "y.fdump").unlink()
    file = DumpFile(101)
    file.range(["r"], 0, 5)
    file.write(tmp_path / "z.fdump")
    assert Scope(load_all([tmp_path])).lacks_calls == ""
