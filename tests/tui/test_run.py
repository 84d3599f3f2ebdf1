"""The app as a process on a real (pseudo) terminal: what it writes, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.tui.app import run
from tests.tui import traces

PATIENCE = 30.0
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from flame.core.options import LoadOptions
from flame.core.selection import Selection
from flame.tui.app import run
{prepare}
sys.exit(run(sys.argv[1], LoadOptions(), Selection()))
"""
STUCK = """
import time
from flame.core import load
def stuck(path, options, progress):
    progress("reading", 1, 100)
    time.sleep(600)
load.load = stuck
"""


BROKEN = """
from flame.core import load
def broken(path, options, progress):
    raise RuntimeError("a bug")
load.load = broken
"""


class Terminal:
    """A process whose standard streams are a terminal of 120 x 40."""

    def __init__(self, path: Path, prepare: str = "") -> None:
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        colours = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment = {**os.environ, **colours, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(prepare=prepare), str(path)],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
        )
        os.close(other)
        self.output = b""

    def read_until(self, text: str) -> None:
        """Read what the process writes until ``text`` appears."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.output:
            assert self._read(end - time.monotonic()), self.output[-2000:]

    def _read(self, seconds: float) -> bool:
        """Read once; False at the end or if nothing comes in time."""
        if seconds <= 0 or not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self._end, 65536)
        except OSError:  # the other end is closed
            return False
        self.output += part
        return bool(part)

    def press(self, key: str) -> None:
        """Press ``key``; what was written before is forgotten."""
        self.output = b""
        os.write(self._end, key.encode())

    def settle(self) -> None:
        """Read until nothing has come for half a second."""
        while not self.silent_for(0.5):
            pass

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing at all is written for so long."""
        return not self._read(seconds)

    def wait(self) -> int:
        """Read to the end; the exit code."""
        while self._read(PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    @property
    def last_line(self) -> str:
        """What is on the last line after the app has closed, without control sequences."""
        text = re.sub(r"\x1b[\[\]<>=?0-9;]*[A-Za-z]?", "", self.output.decode(errors="replace"))
        return text.rstrip().splitlines()[-1] if text.strip() else ""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """Processes to be ended with the test."""
    started: list[Terminal] = []
    yield started
    for terminal in started:
        terminal.close()


def start(terminals: list[Terminal], path: Path, prepare: str = "") -> Terminal:
    terminals.append(Terminal(path, prepare))
    return terminals[-1]


def test_open_idle_and_quit(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    assert terminal.silent_for(1.0), "an idle screen writes nothing"
    terminal.press("q")
    assert terminal.wait() == 0
    assert "flame:" not in terminal.last_line


def test_bytes_per_key_stay_small(terminals: list[Terminal], decode: Path) -> None:
    terminal = start(terminals, decode)
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    for key, most in (("j", 4_000), ("j", 4_000), ("\r", 15_000), ("/", 1_000)):
        terminal.press(key)
        terminal.settle()
        assert 0 < len(terminal.output) < most, key


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
    terminal.read_until("reading")
    begin = time.monotonic()
    terminal.press("q")
    assert terminal.wait() == 130
    assert time.monotonic() - begin < 5
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
        run("any.sqlite", LoadOptions(), Selection())


def test_stderr_must_be_a_terminal(decode: Path) -> None:
    program = [sys.executable, "-c", PROGRAM.format(prepare=""), str(decode)]
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(program, capture_output=True, text=True, env=environment)
    assert "UsageError: stderr is no terminal" in result.stderr
