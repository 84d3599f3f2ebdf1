"""Reports are converted by nsys, once; here a shell script stands in for it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.options import silent
from flame.core.readers.nsys.report import MAGIC, STAGE, export_report, looks_like_report
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.nsysfile import NsysFile

Nsys = Callable[[str], None]

HEAD = MAGIC + b"1.\n\x0bLocal (CLI)"

EXPORT = """
for word; do
  case "$word" in --output=*) output="${word#--output=}" ;; esac
  last="$word"
done
printf '%s\\n' "$@" >"$FOLDER/arguments"
echo run >>"$FOLDER/runs"
"""
COPY = EXPORT + 'cp "$FOLDER/made.sqlite" "$output"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and a PATH of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    for name in ("sh", "cp", "sleep"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def nsys(folder: Path) -> Nsys:
    """Puts a script called nsys on PATH."""

    def install(script: str) -> None:
        path = folder / "bin" / "nsys"
        path.write_text(f"#!{folder}/bin/sh\n{script}")
        path.chmod(0o755)

    return install


@pytest.fixture
def report(folder: Path) -> Path:
    """A report, and the export that the stand-in makes of any report."""
    with NsysFile(folder / "made.sqlite") as file:
        file.kernel("gemm", 0, 100)
    path = folder / "run.nsys-rep"
    path.write_bytes(HEAD)
    return path


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def left_in_cache(folder: Path) -> list[str]:
    return [path.suffix for path in (folder / "cache").rglob("*") if path.is_file()]


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


def test_a_new_recording_is_converted_and_the_old_forgotten(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    report.write_bytes(HEAD + b"recorded again")
    other = folder / "other.nsys-rep"
    other.write_bytes(HEAD)
    kept = {export_report(other, silent), export_report(report, silent)}
    assert made not in kept
    assert set((folder / "cache" / "flame").iterdir()) == kept


def test_a_conversion_is_for_its_user_alone(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert export_report(report, silent).parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_written_beside_the_report(nsys: Nsys, report: Path, folder: Path) -> None:
    place = folder / "place"
    place.mkdir()
    nsys(COPY)
    export_report(report.rename(place / report.name), silent)
    assert [path.name for path in place.iterdir()] == [report.name]


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
    with pytest.raises(InputError, match="cannot be converted"):
        export_report(report, silent)


def test_a_cache_that_cannot_be_made(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    (folder / "cache").write_text("in the way")
    with pytest.raises(InputError, match="cannot be converted"):
        export_report(report, silent)


def test_a_relative_cache_is_ignored(
    nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys(COPY)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert export_report(report, silent).parent == folder / "home" / ".cache" / "flame"


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
    assert time.monotonic() - began < 10
    assert set(stages) == {STAGE}
    assert left_in_cache(folder) == []
    wait_until(lambda: is_gone(int((folder / "child").read_text())))


def is_gone(pid: int) -> bool:
    """Whether the process has ended; a zombie has ended."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


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
