"""Whatever fails on the way to a file: it is there whole or not at all, and one line says why.

Every call of every path that writes fails in turn (`tests.support.faults`); and a file system that
is really full, or read-only, where that can be had.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from flame.core.readers.signs.nsys import MAGIC
from tests.inject.conftest import small_file_system
from tests.support.faults.checks import SCENARIOS, check, flame, kinds, once_full
from tests.support.faults.runs import CALLS, ERRORS, FaultRuns, Outcome
from tests.support.paths import ROOT, SAMPLES
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.nsysfile import NsysFile

pytestmark = pytest.mark.deep

Try = Callable[[FaultRuns], tuple[Outcome, list[Outcome]]]


@pytest.fixture
def attempt() -> Try:
    """Run it with each call failing: with all errors, once and for good."""
    return lambda runs: runs.run(CALLS, ERRORS, [False, True])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    with NsysFile(path) as file:
        for number in range(600):
            file.kernel(f"kernel_{number}", number * 100, number * 100 + 50)
    return path


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("folded", "run.collapsedstack.txt"),
        pytest.param("speedscope", "run.speedscope.json", marks=pytest.mark.deep),
    ],
)
def test_an_export_under_its_usual_name(
    form: str, name: str, attempt: Try, folder: Path, trace: Path
) -> None:
    first, outcomes = attempt(flame(folder, "export", trace, "-f", form))
    assert first.code == 0 and list(first.files) == [name]
    check(outcomes, name, {}, first.files)
    for some in (outcomes, once_full(outcomes)):
        assert kinds(some) == {"open", "read", "write", "sync", "link"}


@pytest.mark.deep
def test_an_export_over_a_file(attempt: Try, folder: Path, trace: Path) -> None:
    (folder / "out").write_text("old")
    (folder / "out").chmod(0o600)
    first, outcomes = attempt(flame(folder, "export", trace, "-f", "folded", "-o", "out"))
    assert first.code == 0
    before = {"out": f"600 {sha256(b'old').hexdigest()[:16]}"}
    check(outcomes, "out", before, first.files)
    assert kinds(outcomes) == {"open", "read", "write", "sync", "rename", "chmod"}


@pytest.mark.parametrize("replace", ["", "yes"])
def test_a_picture(replace: str, attempt: Try, folder: Path) -> None:
    first, outcomes = attempt(FaultRuns(folder, f"{SCENARIOS}:save_picture", ["a.svg", replace]))
    check(outcomes, "a.svg", {}, first.files)
    for some in (outcomes, once_full(outcomes)):
        assert kinds(some) == {"open", "read", "write", "sync", "rename" if replace else "link"}


@pytest.mark.deep
def test_a_recording_saved_from_the_live_view(attempt: Try, folder: Path, tmp_path: Path) -> None:
    dump = DumpFile(7)
    dump.launch(100, 110, 1, tid=7)
    dump.kernel("gemm", 120, 190, 1, tid=7)
    source = tmp_path / "source"
    (source / "cubins").mkdir(parents=True)
    (source / "7-a.fdump").write_bytes(dump.data())
    shutil.copy(SAMPLES / "llm_kernels.cubin", source / "cubins" / "0123456789abcdef.cubin")
    words = [str(source / "7-a.fdump"), "saved.flame"]
    first, outcomes = attempt(FaultRuns(folder, f"{SCENARIOS}:save_dump", words))
    assert first.code == 0 and len(first.files) == 4
    check(outcomes, "saved.flame", {}, first.files)
    assert kinds(outcomes) == {"open", "read", "write", "sync", "rename", "mkdir"}


@pytest.mark.deep
def test_the_text_of_kernels_beside_them(attempt: Try, folder: Path) -> None:
    first, outcomes = attempt(FaultRuns(folder, f"{SCENARIOS}:store_code", [str(folder)]))
    assert first.code == 0 and len(first.files) == 1
    for outcome in outcomes:
        assert outcome.left == (first.files if outcome.code == 0 else {}) or (
            outcome.call == "sync" and outcome.left == first.files
        )
    assert kinds(outcomes) == {"open", "read", "write", "sync", "rename"}


# Flame's own files: what cannot be kept is no failure, what was kept stays


@pytest.mark.parametrize(
    ("work", "name"), [("save_state", "state.json"), ("remember_search", "searches")]
)
def test_state(
    work: str, name: str, attempt: Try, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    (folder / "flame").mkdir(0o700)
    (folder / "flame" / name).write_text("old\n")
    first, outcomes = attempt(FaultRuns(folder, f"{SCENARIOS}:{work}"))
    assert first.files[f"flame/{name}"].startswith("600 ")
    olds = []
    for outcome in outcomes:
        assert set(outcome.left) == {"flame", f"flame/{name}"}, outcome
        assert len(outcome.lines) <= 2 and "Traceback" not in "".join(outcome.lines), outcome
        if outcome.code == 0 and work == "save_state":
            assert outcome.left == first.files
        elif outcome.left != first.files:
            olds.append(outcome)
    for some in (olds, once_full(olds)):
        left = {outcome.left[f"flame/{name}"] for outcome in some}
        assert len(left) == 1, "the old one, always the same"


@pytest.mark.deep
def test_state_where_there_was_none(
    attempt: Try, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    first, outcomes = attempt(FaultRuns(folder, f"{SCENARIOS}:save_state"))
    assert {name: text[:3] for name, text in first.files.items()} == {
        "state": "700",
        "state/flame": "700",
        "state/flame/state.json": "600",
    }
    for outcome in outcomes:
        left = {name: text for name, text in outcome.left.items() if text[4:] != "folder"}
        assert not left or outcome.left == first.files, outcome
    assert kinds(outcomes) >= {"open", "write", "sync", "rename", "mkdir"}


# The cache: what fails there costs time and never the trace


@pytest.fixture
def report(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report, and an nsys that makes `trace` of it."""
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(
        "#!/bin/sh\nunset LD_PRELOAD\n"
        'for word; do case "$word" in --output=*) output="${word#--output=}" ;; esac; done\n'
        f'cp {trace} "$output"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    made = tmp_path / "run.nsys-rep"
    made.write_bytes(MAGIC + b"1.\n")
    return made


@pytest.mark.deep
def test_a_conversion_that_cannot_be_kept(
    attempt: Try, folder: Path, tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either it is read all the same, or one line says why not; nothing half is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    first, outcomes = attempt(flame(folder, "info", report))
    assert first.code == 0
    [kept] = [name for name in first.files if name.endswith(".sqlite")]
    for outcome in outcomes:
        left = {name for name, text in outcome.left.items() if text[4:] != "folder"}
        assert left <= {kept}, outcome
        assert outcome.code in (0, 3), outcome
        complaints = [line for line in outcome.lines if line]
        assert len(complaints) == (outcome.code == 3), outcome
        assert all(line.startswith(f"flame: {report}: ") for line in complaints), outcome
    assert {outcome.call for outcome in outcomes} >= {"open", "mkdir", "rename", "chmod", "lock"}


@pytest.mark.deep
def test_a_conversion_without_room_for_temporary_files(
    attempt: Try, folder: Path, tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as what nsys says goes to."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("TMPDIR", str(folder))
    first, outcomes = attempt(flame(folder, "info", report))
    assert (first.code, first.files) == (0, {})
    for outcome in outcomes:
        assert outcome.left == {}, outcome
        complaints = [line for line in outcome.lines if line]
        assert outcome.code in (0, 3) and len(complaints) == (outcome.code == 3), outcome
    assert kinds(outcomes) >= {"open", "mkdir"}


def test_code_that_cannot_be_kept(
    attempt: Try, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    work = f"{SCENARIOS}:cache_code"
    first, outcomes = attempt(FaultRuns(folder, work, [str(SAMPLES / "llm_kernels.cubin")]))
    assert first.code == 0
    kept = {name for name in first.files if name.endswith(".sass")}
    assert len(kept) == 1
    for outcome in outcomes:
        left = {name for name, text in outcome.left.items() if text[4:] != "folder"}
        assert left <= kept and "Traceback" not in "".join(outcome.lines), outcome


# Standard output


@pytest.fixture
def full() -> Path:
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full")
    return Path("/dev/full")


def run(
    words: Sequence[str | Path], out: Path | None = None, unbuffered: str = ""
) -> tuple[int, list[str]]:
    with (out or Path(os.devnull)).open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "flame", *map(str, words)],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    return done.returncode, done.stderr.splitlines()


COMMANDS = {
    "info": ["info", "TRACE"],
    "json": ["info", "--json", "TRACE"],
    "print": ["view", "--print", "TRACE"],
    "pipe": ["TRACE"],
    "folded": ["export", "-f", "folded", "-o", "-", "TRACE"],
    "speedscope": ["export", "-f", "speedscope", "-o", "-", "TRACE"],
    "device": ["export", "-f", "folded", "-o", "/dev/full", "TRACE"],
    "stdout": ["export", "-f", "folded", "-o", "/dev/stdout", "TRACE"],
    "doctor": ["doctor"],
    "list": ["attach", "--list"],
    "listed": ["attach", "--list", "--json"],
    "help": ["--help"],
    "command help": ["view", "--help"],
    "version": ["--version"],
}


@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [*((words, "") for words in COMMANDS.values()), (["--version"], "1"), (["--help"], "1")],
    ids=[*COMMANDS, "version unbuffered", "help unbuffered"],
)
def test_standard_output_that_takes_nothing(
    words: list[str], unbuffered: str, full: Path, trace: Path
) -> None:
    sought = [trace if word == "TRACE" else word for word in words]
    code, lines = run(sought, full, unbuffered)
    complaints = [line for line in lines if not line.startswith("flame: note: ")]
    assert code == 3
    assert len(complaints) == 1, lines
    assert complaints[0].startswith("flame: ")
    assert "No space left on device" in complaints[0]


# A file system that is really so


SMALL = 1  # MiB


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk(there: bool, tmp_path: Path, trace: Path) -> None:
    with small_file_system(tmp_path / "small", SMALL) as small:
        fill(small)
        if there:
            (small / "out").write_text("")
        code, lines = run(["export", trace, "-f", "folded", "-o", small / "out"])
        assert code == 3
        assert lines == [f"flame: {small / 'out'}: cannot be written: No space left on device"]
        assert sorted(path.name for path in small.iterdir()) == ["filling", *["out"] * there]


def fill(place: Path) -> None:
    with (place / "filling").open("wb", 0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(file.tell() - 8192)


def test_a_read_only_disk(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_file_system(tmp_path / "small", SMALL) as small:
        (small / "out").write_text("old")
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(small))
        monkeypatch.setenv("XDG_STATE_HOME", str(small))
        for name in ("out", "new"):
            code, lines = run(["export", trace, "-f", "folded", "-o", small / name])
            assert code == 3
            assert lines == [f"flame: {small / name}: cannot be written: Read-only file system"]
        assert (small / "out").read_text() == "old"


def test_a_report_where_the_cache_cannot_be_written(
    tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_file_system(tmp_path / "small", SMALL) as small:
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(small))
        code, lines = run(["info", report], tmp_path / "out")
        assert (code, lines) == (0, [])
        assert "not kept for the next time" in " ".join((tmp_path / "out").read_text().split())
        assert stat.S_IMODE(small.stat().st_mode) == 0o700
