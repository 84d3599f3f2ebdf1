"""The picker as a process on a real (pseudo) terminal, as the command line starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.errors import InputError, UsageError
from tests.tui import traces
from tests.tui.terminals import Terminal, start

COMMAND = """
import os
from flame.cli.main import main
os.chdir(sys.argv[1])
sys.exit(main({words!r}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two traces in folders below it."""
    for name in ("rank0", "rank1"):
        (tmp_path / "log" / name).mkdir(parents=True)
        traces.decode(tmp_path / "log" / name / "trace.sqlite")
    return tmp_path


def started(terminals: list[Terminal], folder: Path, *words: str) -> Terminal:
    return start(terminals, folder, COMMAND.format(words=list(words)))


def test_flame_alone_lists_opens_and_ends(terminals: list[Terminal], folder: Path) -> None:
    terminal = started(terminals, folder)
    terminal.read_until("log/rank1/trace.sqlite")
    terminal.settle()
    terminal.press("\r")
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.press("q")
    assert terminal.wait() == 0
    assert "flame:" not in terminal.last_line
    again = started(terminals, folder)
    again.read_until("Recent")
    again.settle()
    again.press("q")
    assert again.wait() == 0


@pytest.mark.deep
def test_a_folder_opens_all_of_it_as_ranks(terminals: list[Terminal], folder: Path) -> None:
    terminal = started(terminals, folder, "log")
    terminal.read_until("rank1/trace.sqlite")
    terminal.settle()
    terminal.press("a")
    terminal.read_until("2 traces as one view")
    terminal.press("\r")
    terminal.read_until("times are not aligned, each trace begins")
    assert b"2 traces: rank0, rank1" in terminal.output
    terminal.settle()
    terminal.press("q")
    assert terminal.wait() == 0


@pytest.mark.parametrize("words", [[], ["view"], ["view", "--print"], ["view", "--web"]])
def test_without_a_terminal_a_trace_is_to_be_named(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == UsageError.exit_code
    said = capsys.readouterr().err
    assert said == "flame: name a trace to open: flame PATH, or - for a pipe (see flame --help)\n"


@pytest.mark.parametrize("words", [[], ["view", "--print"], ["info"]])
def test_without_a_terminal_a_folder_says_what_it_holds(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, str(folder)]) == InputError.exit_code
    said = capsys.readouterr().err
    assert said.startswith(f"flame: {folder}: is a folder of 2 traces, name one or several: ")
    assert str(folder / "log" / "rank0" / "trace.sqlite") in said
