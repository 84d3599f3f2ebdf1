"""Kept conversions: damaged ones, changed reports, and tables that are read later."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.options import silent
from tests.core.readers.nsys.report.conversions import (
    COPY,
    EXPORT,
    HEAD,
    Nsys,
    export_report,
    left_in_cache,
    open_to_others,
    runs,
)
from tests.support.writers.nsysfile import MARK, NsysFile


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "changed":
        data[-5] ^= 0xFF
    else:
        data.clear()
    path.write_bytes(data)


NOTE = "run.nsys-rep: the conversion kept in the cache was damaged, and was made again"


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
def test_a_damaged_conversion_is_made_again_once(
    how: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    damage(export_report(report, silent), how)
    again = load(report)
    assert again.gpu_time == 100
    assert NOTE in again.warnings
    assert NOTE not in load(report).warnings
    assert runs(folder) == 2


def test_a_conversion_that_no_reader_takes_is_not_kept(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(EXPORT + 'echo nonsense >"$output"\n')
    with pytest.raises(InputError) as caught:
        load(report)
    assert str(caught.value).startswith(f"{report}: ")
    assert "cache" not in str(caught.value)
    assert left_in_cache(folder) == []
    nsys(COPY)
    assert load(report).gpu_time == 100


def test_a_sound_conversion_that_no_reader_takes_is_made_again(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    """As another version of flame may have kept it."""
    nsys(COPY)
    (folder / "made.sqlite").rename(folder / "good.sqlite")
    (folder / "made.sqlite").write_text("nonsense")
    export_report(report, silent)
    (folder / "good.sqlite").rename(folder / "made.sqlite")
    again = load(report)
    assert again.gpu_time == 100
    assert NOTE in again.warnings


def test_what_was_launched_is_known_after_the_conversion_has_gone(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    profile = load(report)
    export_report(report, silent).unlink()
    assert profile.launches is not None and len(profile.launches) == 1


def test_marks_and_failed_calls_are_read_with_and_without_a_cache(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 0, 100)
        made.api("cudaMalloc_v3020", 0, 10)
        made.db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET returnValue = 2")
        made.nvtx("epoch", 5, None, type=MARK)
    for prepare in (None, open_to_others):
        if prepare:
            shutil.rmtree(folder / "cache")
            prepare(folder / "cache" / "flame")
        profile = load(report)
        assert profile.events is not None and profile.failures is not None
        assert [name.name for name in profile.events.names] == ["epoch"]
        assert profile.failures.value.tolist() == [2]


def test_the_launches_of_a_changed_report_are_not_taken(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    profile = load(report)
    report.write_bytes(HEAD + b"recorded again")
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 7, 100)
    with pytest.raises(InputError, match="has changed since it was opened"):
        _ = profile.launches


def with_os_call(folder: Path) -> None:
    """Have the conversion make a trace with a call of the operating system."""
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 0, 100)
        made.os_call("read", 0, 7)


def test_side_tables_are_read_after_the_conversion_has_gone(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    with_os_call(folder)
    nsys(COPY)
    profile = load(report)
    export_report(report, silent).unlink()
    assert profile.os_calls is not None and profile.os_calls.end.tolist() == [7]


def test_the_side_tables_of_a_changed_report_are_not_taken(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    with_os_call(folder)
    nsys(COPY)
    profile = load(report)
    report.write_bytes(HEAD + b"recorded again")
    with pytest.raises(InputError, match="has changed since it was opened"):
        _ = profile.os_calls
