"""The app as a process on a real (pseudo) terminal: what it writes, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.tui.main.app import run
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until
from tests.tui import traces
from tests.tui.terminals import PROGRAM, Terminal, start

STUCK = """
import time
from flame.core.loading import many
def stuck(path, options, progress):
    progress("stuck", 1, 100)
    time.sleep(6_000)
many.load_file = stuck
"""


BROKEN = """
from flame.core.loading import many
def broken(path, options, progress):
    raise RuntimeError("a bug")
many.load_file = broken
"""


def test_open_idle_and_quit(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    # An idle screen writes nothing, once all is drawn.
    wait_until(lambda: terminal.silent_for(1.0))
    terminal.press("q")
    assert terminal.wait() == 0
    assert "flame:" not in terminal.last_line


def test_the_app_ends_with_its_terminal(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.hang_up()
    assert terminal.process.wait(PATIENCE) == 130


@pytest.mark.deep
def test_bytes_per_key_stay_small(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.press("jj")  # until the details are so long that they have a scrollbar
    terminal.answered()
    for key, most in (("k", 2_000), ("j", 2_000), ("\r", 4_000), ("/", 1_000)):
        terminal.press(key)
        terminal.answered()
        assert 0 < len(terminal.output) < most, key


@pytest.mark.deep
def test_bytes_per_key_in_a_dialog_stay_small(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.press("L")
    terminal.answered()
    for key in ("j", "k", "\x1b[B"):
        terminal.press(key)
        terminal.answered()
        assert 0 < len(terminal.output) < 1_000, key


def test_a_file_that_cannot_be_read(terminals: list[Terminal], tmp_path: Path) -> None:
    terminal = start(terminals, tmp_path / "none.sqlite")
    terminal.read_until("no such file")
    terminal.press("q")
    assert terminal.wait() == 3
    assert terminal.last_line.startswith("flame: ")
    assert terminal.last_line.endswith("none.sqlite: no such file")


def test_quitting_does_not_wait_for_a_load_that_hangs(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = start(terminals, decode, STUCK)
    terminal.read_until("stuck")
    terminal.press("q")
    assert terminal.wait() == 130  # within the patience of the test, which the load is beyond
    assert "flame:" not in terminal.last_line


def test_a_bug_reaches_the_caller_and_leaves_the_terminal_as_it_was(
    terminals: list[Terminal], decode: Path
) -> None:
    terminal = start(terminals, decode, BROKEN)
    assert terminal.wait() == 1
    assert terminal.last_line == "RuntimeError: a bug"
    assert b"\x1b[?1049l" in terminal.output
    assert "locals" not in terminal.output.decode()


def test_hostile_names_write_no_control_sequence_of_their_own(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    terminal = start(terminals, traces.hostile(tmp_path / "hostile.sqlite"))
    terminal.read_until("owned")
    terminal.settle()
    for forbidden in (b"\x1b[2J", b"\x1b]0;owned", b"\x1b[31m", "\u202e".encode()):
        assert forbidden not in terminal.output


@pytest.mark.parametrize("terminal", ["dumb", "unknown"])
def test_a_dumb_terminal_is_refused(monkeypatch: pytest.MonkeyPatch, terminal: str) -> None:
    monkeypatch.setenv("TERM", terminal)
    with pytest.raises(UsageError, match=f"TERM={terminal} cannot show the app: use --print"):
        run(Inputs((Path("any.sqlite"),)), LoadOptions(), Selection())


def test_stderr_must_be_a_terminal(decode: Path) -> None:
    program = [sys.executable, "-c", PROGRAM.format(prepare=""), str(decode)]
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(program, capture_output=True, text=True, env=environment)
    assert "UsageError: stderr is no terminal" in result.stderr
