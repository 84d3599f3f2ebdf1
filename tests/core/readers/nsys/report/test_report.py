"""Reports are converted by nsys, once; here a shell script stands in for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.options import LoadOptions, silent
from flame.core.readers.signs.nsys import looks_like_report
from tests.core.readers.nsys.report.conversions import COPY, HEAD, Nsys, export_report, runs


def test_without_the_cache_a_report_is_converted_anew_and_nothing_is_kept(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    for number in (1, 2):
        profile = load(report, LoadOptions(cache=False))
        assert profile.gpu_time == 100
        assert not any("not kept" in warning for warning in profile.warnings)
        assert runs(folder) == number
    assert not (folder / "cache").exists()
    assert profile.launches is not None, "they were read with the rest"
    assert runs(folder) == 2


@pytest.mark.parametrize(
    ("name", "head", "is_report"),
    [
        ("run.nsys-rep", HEAD, True),
        ("run.qdrep", HEAD, True),
        ("run.sqlite", HEAD, True),
        ("run", HEAD, True),
        ("RUN.NSYS-REP", b"a report of a version to come", True),
        ("run.nsys-rep", b"", False),
        ("run.sqlite", b"anything else", False),
    ],
)
def test_reports_are_known_by_content_else_by_name(name: str, head: bytes, is_report: bool) -> None:
    assert looks_like_report(Path(name), head) is is_report


def test_a_report_opens_like_its_export(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert load(report).gpu_time == 100


def test_a_report_opens_under_any_name(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert load(report.rename(report.with_name("trace.sqlite"))).gpu_time == 100


def test_nsys_is_asked_as_its_manual_says(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    export_report(report, silent)
    command, kind, force, output, path = (folder / "arguments").read_text().splitlines()
    assert (command, kind, force) == ("export", "--type=sqlite", "--force-overwrite=true")
    assert output.endswith(".sqlite")
    assert path == str(report)


def test_a_conversion_is_kept(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    assert export_report(report, silent) == made
    assert runs(folder) == 1
    assert made.is_relative_to(folder / "cache" / "flame")


def test_a_kept_conversion_needs_no_nsys(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    (folder / "bin" / "nsys").unlink()
    assert export_report(report, silent) == made


def test_a_new_recording_is_converted(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    report.write_bytes(HEAD + b"recorded again")
    assert export_report(report, silent) != made
    assert runs(folder) == 2


def test_another_report_of_the_same_size_and_time_is_another(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    known = report.stat()
    first = export_report(report, silent)
    data = bytearray(report.read_bytes())
    data[-1] ^= 1
    report.write_bytes(data)
    os.utime(report, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert export_report(report, silent) != first
    assert runs(folder) == 2


def test_a_copy_and_a_new_name_are_the_same_report(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    copied = shutil.copy(report, folder / "copy.nsys-rep")
    assert export_report(Path(copied), silent) == made
    assert export_report(report.rename(folder / "new.nsys-rep"), silent) == made
    assert runs(folder) == 1


def test_another_nsys_converts_anew(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    export_report(report, silent)
    nsys(COPY + "# a newer one\n")
    export_report(report, silent)
    export_report(report, silent)
    assert runs(folder) == 2
