"""No name steers the terminal that a command writes to, by whichever way it gets there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import in_terminal, spawn
from tests.support.hostile.steering import STEERING, steering_dumps, steering_traces

COMMANDS = (
    *("info", "info --json", "view --print", "view --print --levels rank,nvtx,kernel"),
    *("top", "top --md", "top --json -o /dev/tty", "ranks -o /dev/tty"),
    *("report", "report -o /dev/tty", "report --md -o -", "report --json"),
    *("diff --print", "diff --md -o -", "diff --json", "diff -f svg -o -"),
    *("export -f svg -o -", "export -f speedscope -o -", "export -f chrome -o -"),
    "export -f html -o -",
)

RECORDED = ("top --csv", "top --csv -o -", "diff -f folded -o -", "export -f folded -o /dev/tty")
"""Those that write names as they were recorded, also their ends of lines where there are any."""


def in_quiet_terminal(command: str, *paths: str | Path) -> tuple[int, str]:
    """Exit code, and all that the terminal received but for its own ends of lines."""
    code, received = in_terminal(*command.split(), *paths)
    return code, received.replace("\r\n", "\n")


def obeyed(said: str) -> set[str]:
    """What of ``said`` a terminal does not show as it is."""
    return {character for character in said if not character.isprintable()} - {"\n"}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_is_obeyed(folder: Path, command: str) -> None:
    check_that_nothing_is_obeyed(command, steering_traces(folder))


@pytest.mark.parametrize("command", ["info", "view --print", "top", "report"])
def test_no_name_of_a_process_is_obeyed(folder: Path, command: str) -> None:
    check_that_nothing_is_obeyed(command, steering_dumps(folder))


def check_that_nothing_is_obeyed(command: str, paths: Sequence[Path]) -> None:
    code, said = in_quiet_terminal(command, *paths)
    assert code != 70 and r"\x1b" in said.replace("\\u001b", r"\x1b")
    assert obeyed(said) == set()
    assert not [line for line in said.split("\n") if line.startswith("PWN")]


@pytest.mark.parametrize("command", RECORDED)
def test_no_name_as_recorded_is_obeyed(folder: Path, command: str) -> None:
    code, said = in_quiet_terminal(command, *steering_traces(folder))
    assert code == 0 and r"\x07\x1b[8m\u202e\x9b2J" in said
    assert obeyed(said) == set()


@pytest.mark.parametrize("command", ["info", "view --print", "top", "report", "export -f folded"])
def test_no_name_in_an_error_is_obeyed(folder: Path, command: str) -> None:
    code, said = in_quiet_terminal(command, folder / f"gone{STEERING}.sqlite")
    assert (code, obeyed(said)) == (3, set())
    assert said.startswith("flame: ") and r"\x1b]0;PWN\x07" in said


@pytest.mark.deep
def test_no_name_of_a_summary_is_obeyed(folder: Path) -> None:
    summary = folder / f"{STEERING}.flamesum"
    assert spawn("ranks", *steering_traces(folder), "-o", summary).returncode == 0
    for command in ("ranks", "info", "view --print", "report"):
        check_that_nothing_is_obeyed(command, [summary])


def test_no_name_of_what_cannot_be_written_is_obeyed(folder: Path, trace: Path) -> None:
    target = folder / f"gone{STEERING}" / "x"
    code, said = in_quiet_terminal("export -f folded", trace, "-o", target)
    assert (code, obeyed(said)) == (3, set()) and r"\x1b]0;PWN\x07" in said


def test_no_name_in_a_traceback_is_obeyed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAME_DEBUG", "1")
    broken = (
        "-c",
        "import sys\nfrom flame.cli import info, main\n"
        f"def broken(args): raise ValueError({STEERING!r})\n"
        "info.inputs_of = broken\nsys.exit(main.main(['info', 'x']))",
    )
    code, received = in_terminal(program=broken)
    assert code == 70 and "ValueError" in received
    assert obeyed(received.replace("\r\n", "\n")) == set()


def test_no_stage_of_a_load_is_obeyed(folder: Path) -> None:
    shown = (
        "-c",
        "from flame.console import progress; progress.DELAY = 0\n"
        f"with progress.progress_on_stderr() as show: show('reading' + {STEERING!r}, 1, 2)",
    )
    code, received = in_terminal(program=shown)
    assert code == 0 and r"reading\x1b]0;PWN\x07\x1b[8m\u202e\x9b2J\r\x08\nPWN" in received


def test_a_pipe_gets_names_as_they_are(folder: Path) -> None:
    paths = steering_traces(folder)
    done = spawn("export", "-f", "folded", "-o", "-", "--levels", "kernel", *paths)
    assert done.returncode == 0 and "PWN\x07\x1b[8m\u202e\x9b2J" in done.stdout
