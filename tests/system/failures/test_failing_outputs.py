"""Whatever fails on the way to a report, a summary or what flame keeps: it is whole or not there.

As `test_failing_calls`, of what other commands write, and of what is kept between runs.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.faults.checks import check, files_of, flame, kinds, scenario
from tests.support.faults.runs import CALLS, FaultRuns, Outcome
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.nsysfile import NsysFile

pytestmark = pytest.mark.deep

Try = Callable[[FaultRuns], tuple[Outcome, list[Outcome]]]

WRITING = {"open", "read", "write", "sync"}
"""Calls without which no file is written."""


@pytest.fixture
def attempt() -> Try:
    """Run it with each call failing, once and for good."""
    return lambda runs: runs.run(CALLS, [errno.ENOSPC, errno.EIO], [False, True])


@pytest.fixture
def attempt_once() -> Try:
    """Run it with each call failing once: of what takes long, and has many calls."""
    return lambda runs: runs.run(CALLS, [errno.ENOSPC], [False])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    with NsysFile(path) as file:
        for number in range(6):
            file.api("cudaLaunchKernel_v7000", 100 * number, 100 * number + 5, number + 1)
            file.kernel(f"kernel_{number % 2}", 100 * number + 10, 100 * number + 60, number + 1)
    return path


# What commands write


OUTPUTS = {
    "text": ("report", "TRACE", "-o", "out.txt"),
    "json": ("report", "TRACE", "--json", "-o", "out.json"),
    "packed": ("report", "TRACE", "--md", "-o", "out.md.gz"),
    "page": ("report", "TRACE", "--html", "out.html"),
    "table": ("top", "TRACE", "-o", "out.txt"),
    "csv": ("top", "TRACE", "--csv", "-o", "out.csv"),
    "diff": ("diff", "TRACE", "TRACE", "--md", "-o", "out.md"),
    "base": ("diff", "TRACE", "--keep-base", "out.flame-base.json.gz"),
}


@pytest.mark.parametrize("words", OUTPUTS.values(), ids=OUTPUTS)
def test_what_a_command_writes(
    words: tuple[str, ...], attempt: Try, folder: Path, trace: Path
) -> None:
    name = words[-1]
    given = [trace if word == "TRACE" else word for word in words]
    first, outcomes = attempt(flame(folder, *given))
    assert first.code == 0 and list(first.files) == [name]
    check(outcomes, name, {}, first.files)
    assert kinds(outcomes) == {*WRITING, "link"}


def test_tables_in_a_folder(attempt_once: Try, folder: Path, trace: Path) -> None:
    """All of them, or none; of that whose name may not have reached the disk the file is there."""
    words = ("--section", "summary,kernels", "--csv", "out")
    first, outcomes = attempt_once(flame(folder, "report", trace, *words))
    assert first.code == 0 and len(files_of(first)) > 1
    for outcome in outcomes:
        left = files_of(outcome)
        if outcome.code == 0:
            assert outcome.left == first.files, outcome
            continue
        assert outcome.code == 3 and len([line for line in outcome.lines if line]) == 1, outcome
        assert left.items() <= files_of(first).items(), outcome
        assert not left or (outcome.call == "sync" and len(left) == 1), outcome
    assert kinds(outcomes) == {*WRITING, "link", "mkdir"}


def test_a_summary_of_ranks_and_what_is_kept_of_it_before(attempt: Try, folder: Path) -> None:
    """What cannot be kept before costs a line; what was kept stays where the whole cannot be."""
    first, outcomes = attempt(scenario(folder, "write_ranks", "x.flamesum"))
    assert first.code == 0 and list(first.files) == ["x.flamesum"]
    whole, name = first.files["x.flamesum"], "x.flamesum.partial"
    for outcome in outcomes:
        lines = [line for line in outcome.lines if line]
        assert {*outcome.left.values()} <= {whole}, outcome
        assert all("cannot be written" in line for line in lines), outcome
        if outcome.code == 0:
            assert outcome.left == first.files and len(lines) <= 1, outcome
            continue
        assert outcome.code == 3 and lines, outcome
        told, there = name in lines[-1], name in outcome.left
        assert told == there or (outcome.call == "sync" and there), outcome
    assert kinds(outcomes) == {*WRITING, "link"}


def test_a_summary_beside_a_dump(attempt_once: Try, folder: Path) -> None:
    dump = DumpFile(7)
    dump.launch(100, 110, 1, tid=7)
    dump.kernel("gemm", 120, 190, 1, tid=7)
    path = folder / "7-a.fdump"
    path.write_bytes(dump.data())
    first, outcomes = attempt_once(scenario(folder, "write_rank_beside", path))
    [name] = [name for name in first.files if name.endswith(".flamesum")]
    before = {path.name: first.files[path.name]}
    for outcome in outcomes:
        if outcome.code == 0:
            assert outcome.left == first.files, outcome
            continue
        assert outcome.left == before or (outcome.call == "sync" and outcome.left == first.files)
        [line] = [line for line in outcome.lines if line]
        assert outcome.code == 3 and line.startswith(f"flame: {path}: "), outcome
    assert first.code == 0 and first.files[name].startswith("600 ")
    assert kinds(outcomes) >= {*WRITING, "link"}


# What is kept between runs: what cannot be is no failure, what was kept stays


@pytest.mark.parametrize(
    ("work", "words", "name", "old"),
    [
        ("remember_settings", (), "preferences.json", '{"theme": "flame-dark"}\n'),
        ("remember_trace", ("/a.sqlite",), "recent.json", '[["/b.sqlite"]]\n'),
    ],
)
def test_what_is_remembered(
    work: str,
    words: tuple[str, ...],
    name: str,
    old: str,
    attempt: Try,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    (folder / "flame").mkdir(0o700)
    (folder / "flame" / name).write_text(old)
    first, outcomes = attempt(scenario(folder, work, *words))
    new, olds = first.files[f"flame/{name}"], set()
    assert first.code == 0 and new.startswith("600 ")
    for outcome in outcomes:
        assert set(outcome.left) == {"flame", f"flame/{name}"}, outcome
        assert len([line for line in outcome.lines if line]) <= 1, outcome
        assert "Traceback" not in "".join(outcome.lines), outcome
        olds |= {outcome.left[f"flame/{name}"]} - {new}
    assert len(olds) == 1, "the old one, always the same"


def test_a_profile_that_cannot_be_kept(
    attempt: Try, folder: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs nothing but the time of the next opening; nothing half is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    first, outcomes = attempt(scenario(folder, "keep_profile", trace))
    kept = files_of(first)
    assert [Path(name).suffix for name in kept] == [".profile"]
    for outcome in outcomes:
        assert (outcome.code, [line for line in outcome.lines if line]) == (0, []), outcome
        assert files_of(outcome) in ({}, kept), outcome
    lacking = {outcome.call for outcome in outcomes if not files_of(outcome)}
    assert lacking == {"open", "read", "write", "rename", "mkdir", "chmod"}


def test_a_fetched_trace_that_cannot_be_kept(
    attempt: Try, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says why; nothing half is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    first, outcomes = attempt(scenario(folder, "fetch_trace"))
    kept = files_of(first)
    assert first.code == 0 and [Path(name).suffix for name in kept] == [".fetched"]
    for outcome in outcomes:
        lines = [line for line in outcome.lines if line]
        assert outcome.code in (0, 3) and len(lines) == (outcome.code == 3), outcome
        assert files_of(outcome) == (kept if outcome.code == 0 else {}), outcome
    assert kinds(outcomes) >= {"open", "read", "write", "rename", "mkdir", "chmod"}
