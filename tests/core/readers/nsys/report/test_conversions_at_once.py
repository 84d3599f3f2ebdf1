"""Several conversions at once, killed ones, and who may read what they make."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from flame.core.loading.many import load
from flame.core.options import silent
from tests.core.readers.nsys.report.conversions import (
    COPY,
    EXPORT,
    HEAD,
    Nsys,
    export_report,
    left_in_cache,
    runs,
)
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until

LOAD = "import sys; from flame.core.loading.many import load; print(load(sys.argv[1]).gpu_time)"


def loading(report: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LOAD, str(report)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_two_at_once_convert_once(nsys: Nsys, report: Path, folder: Path) -> None:
    wait = 'echo here >"$FOLDER/began"; until [ -e "$FOLDER/go" ]; do sleep 0.05; done\n'
    nsys(COPY + wait)
    both = [loading(report), loading(report)]
    wait_until((folder / "began").exists)
    wait_until(lambda: has_open(both[0], ".lock") and has_open(both[1], ".lock"))
    (folder / "go").touch()
    assert [process.communicate(timeout=PATIENCE)[0] for process in both] == ["100\n", "100\n"]
    assert runs(folder) == 1
    assert left_in_cache(folder) == [".sqlite"]


def has_open(process: subprocess.Popen[str], suffix: str) -> bool:
    files = Path(f"/proc/{process.pid}/fd").iterdir()
    return any(os.path.realpath(file).endswith(suffix) for file in files)


def test_what_a_killed_one_left_goes_when_it_is_old(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(EXPORT + 'echo half >"$output"; echo $$ >"$FOLDER/child"; sleep 600')
    process = loading(report)
    wait_until(lambda: (folder / "child").exists() and (folder / "child").read_text().strip())
    process.kill()
    process.communicate(timeout=PATIENCE)
    with suppress(ProcessLookupError):  # its guard may have done it
        os.killpg(int((folder / "child").read_text()), signal.SIGKILL)
    cache = folder / "cache" / "flame"
    [workspace] = cache.glob("*.tmp")
    nsys(COPY)
    assert load(report).gpu_time == 100
    assert workspace.is_dir(), "it may be somebody's who has just begun"
    for path in (*workspace.iterdir(), workspace):
        os.utime(path, (0, 0))
    report.write_bytes(HEAD + b"another")
    load(report)
    assert {path.suffix for path in cache.iterdir()} == {".sqlite"}


def test_a_conversion_is_for_its_user_alone(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert export_report(report, silent).parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_written_beside_the_report(nsys: Nsys, report: Path, folder: Path) -> None:
    place = folder / "place"
    place.mkdir()
    nsys(COPY)
    export_report(report.rename(place / report.name), silent)
    assert [path.name for path in place.iterdir()] == [report.name]
