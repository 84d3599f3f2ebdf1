"""Which API calls failed: read with the calls, merged, kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from tests.core.reopening.conftest import find, keep
from tests.support.writers.nsysfile import NsysFile

Failure = tuple[str, int, int]
"""(name, start, value)."""

EXPECTED: list[Failure] = [("cudaMalloc", 10, 2), ("cudaEventQuery", 30, 600)]


def written(path: Path, shift: int = 0) -> Path:
    """Four calls of which two fail, and a row that repeats one with its backtrace."""
    with NsysFile(path) as file:
        file.api("cudaMalloc_v3020", 10 + shift, 20 + shift, corr=1)
        file.api("cudaMalloc", 9 + shift, 21 + shift, corr=1, event_class=67)
        file.api("cudaEventQuery_v3020", 30 + shift, 40 + shift, corr=2)
        file.api("cudaEventQuery_v3020", 50 + shift, 60 + shift, corr=3)
        file.api("cudaLaunchKernel_v7000", 70 + shift, 80 + shift, corr=4)
        file.kernel("gemm", 100 + shift, 110 + shift, corr=4)
        for row, value in ((1, 2), (2, 2), (3, 600), (4, 0), (5, 0)):
            set_result(file, row, value)
    return path


def set_result(file: NsysFile, row: int, value: object) -> None:
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    file.db.execute(f"UPDATE {table} SET returnValue = ? WHERE rowid = ?", (value, row))


def failures(profile: Profile) -> list[Failure]:
    found = profile.failures
    assert found is not None
    columns = (found.frame.tolist(), found.start.tolist(), found.value.tolist())
    rows = zip(*columns, strict=True)
    return [(profile.frames[frame].name, start, value) for frame, start, value in rows]


def test_those_that_did_not_return_0(tmp_path: Path) -> None:
    profile = load(written(tmp_path / "trace.sqlite"))
    assert failures(profile) == EXPECTED
    assert profile.failures is not None and profile.failures.known == 4


def test_what_was_not_recorded_is_not_0(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    with NsysFile.reopened(path) as file:
        file.loosen("CUPTI_ACTIVITY_KIND_RUNTIME")
        set_result(file, 3, None)
    profile = load(path)
    assert failures(profile) == EXPECTED[:1]
    assert profile.failures is not None and profile.failures.known == 3


def test_without_the_column_the_trace_does_not_tell(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    with NsysFile.reopened(path) as file:
        file.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN returnValue")
    assert load(path).failures is None


def test_nothing_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.sqlite")
    profile = load(path)
    path.unlink()
    assert failures(profile) == EXPECTED


def test_several_files(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a.sqlite"), written(tmp_path / "b.sqlite", 7)]
    with NsysFile(tmp_path / "c.sqlite") as file:
        file.kernel("gemm", 0, 10)
    profiles = [load(path) for path in (*paths, tmp_path / "c.sqlite")]
    profile = merge_profiles(profiles, ["a", "b", "c"])
    assert [one[::2] for one in failures(profile)] == 2 * [one[::2] for one in EXPECTED]
    found, rows = profile.failures, profile.callrows
    assert found is not None and rows is not None
    assert found.known == 8 and len(rows) == 8
    pids = [profile.processes[profile.threads[at].process].source for at in found.thread]
    assert pids == [0, 0, 1, 1]


def test_a_kept_trace_tells_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written(tmp_path / "trace.sqlite")
    keep(path)
    found = find(path)
    assert found is not None and failures(found) == EXPECTED
    assert found.callrows is not None and len(found.callrows) == 4
