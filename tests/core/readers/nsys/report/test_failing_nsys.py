"""Reports that lead nsys astray: a conversion that fails or never ends is told in a line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.options import silent
from flame.core.readers.nsys.report import STAGE
from flame.core.readers.shared import converter
from tests.core.readers.nsys.report.conversions import (
    COPY,
    EXPORT,
    Nsys,
    export_report,
    left_in_cache,
)
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, pid_runs, wait_until


def test_what_takes_for_ever_is_given_up(
    nsys: Nsys, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converter, "_SECONDS", 0.0)
    monkeypatch.setattr(converter, "_SECONDS_PER_BYTE", 0.0)
    nsys("sleep 600")
    with pytest.raises(InputError, match=r"run.nsys-rep: nsys does not end within 0 s; try: nsys "):
        export_report(report, silent)


def test_what_writes_without_end_is_given_up(
    nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converter, "_SIZE", 1 << 20)
    monkeypatch.setattr(converter, "_SIZE_PER_BYTE", 1)
    nsys(EXPORT + 'while :; do printf "%99999s" x; done >"$output"')
    with pytest.raises(InputError, match=r"run.nsys-rep: nsys writes more than 1.0\d MB; try: "):
        export_report(report, silent)
    assert left_in_cache(folder) == []


def test_a_tenth_of_what_is_free_stays_free(
    nsys: Nsys, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=100_000)

    monkeypatch.setattr(converter, "disk_usage", usage)
    nsys(EXPORT + 'while :; do printf "%99999s" x; done >"$output"')
    with pytest.raises(InputError, match="nsys writes more than 90"):
        export_report(report, silent)


@pytest.mark.parametrize(
    "name",
    [
        "two words.nsys-rep",
        'it\'s "quoted".qdrep',
        "$HOME;true.nsys-rep",
        "-o.nsys-rep",
        "层.qdrep",
    ],
)
def test_any_file_name(
    name: str, nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys(COPY)
    monkeypatch.chdir(folder)
    report.rename(name)
    assert load(name).gpu_time == 100
    assert (folder / "arguments").read_text().splitlines()[-1] == str(folder / name)


@pytest.mark.parametrize("name", ["run.nsys-rep", "it's two.qdrep", "trace.sqlite"])
def test_without_nsys_the_command_to_run_is_told(name: str, report: Path, folder: Path) -> None:
    path = report.rename(folder / name)
    with pytest.raises(InputError) as caught:
        load(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    command = shlex.split(told.partition(" run: ")[2])
    assert command[:5] == ["nsys", "export", "--type", "sqlite", "-o"]
    assert command[5].endswith(".sqlite")
    assert command[5] != str(path)
    assert command[6] == str(path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Failed to open: no space left' >&2; echo bye >&2; exit 1", "Failed to open"),
        ("echo Processing; echo 'last words'; exit 3", "(exit 3): last words"),
        ("printf '[1/2] 10%%\\r[1/2] 20%%\\nERROR: bad\\n'; exit 1", "(exit 1): ERROR: bad"),
        ("exit 1", "does not say why"),
        ("exit 0", "wrote no export"),
        ("kill -9 $$", "exit -9"),
        (EXPORT + 'echo half >"$output"; echo error: stopped; exit 1', "error: stopped"),
    ],
)
def test_what_nsys_said_is_told(
    script: str, said: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(script)
    with pytest.raises(InputError) as caught:
        export_report(report, silent)
    assert str(caught.value).startswith(f"{report}: nsys ")
    assert said in str(caught.value)
    assert left_in_cache(folder) == []


def test_nsys_that_cannot_run(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys("")
    (folder / "bin" / "nsys").write_text("#!/no/such/interpreter\n")
    with pytest.raises(InputError, match=r"nsys cannot convert it \(exit 12[67]\): .*/bin/nsys: "):
        export_report(report, silent)


def test_conversion_reports_progress_and_can_be_stopped(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    """All of it stops, also what nsys itself has started."""
    nsys(EXPORT + 'sleep 600 & echo $! >"$FOLDER/child"; wait')
    stages = []

    def stop_soon(stage: str, done: int, expected: int) -> None:
        stages.append(stage)
        if (folder / "child").exists() and (folder / "child").read_text().strip():
            raise CancelledError("stopped")

    began = time.monotonic()
    with pytest.raises(CancelledError):
        export_report(report, stop_soon)
    assert time.monotonic() - began < PATIENCE
    assert set(stages) == {STAGE}
    assert left_in_cache(folder) == []
    wait_until(lambda: not pid_runs(int((folder / "child").read_text())))


def test_on_the_command_line(nsys: Nsys, report: Path) -> None:
    root = str(ROOT)
    env = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-m", "flame", "info", str(report)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "nsys export --type sqlite -o" in done.stderr
    nsys(COPY)
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(report))
