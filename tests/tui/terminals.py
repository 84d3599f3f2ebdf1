"""The app as a process on a real (pseudo) terminal."""

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
from codecs import getincrementaldecoder
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.screen import Screen
from tests.support.waiting import PATIENCE

OWN = ("NO_COLOR", "FLAME_ASCII", "COLORFGBG", "TMUX", "STY")
"""What the developer's terminal may say, and a test must not depend on."""

PROGRAM = """
import sys
from pathlib import Path
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.core.loading.inputs import Inputs
from flame.tui.main.app import run
{prepare}
sys.exit(run(Inputs((Path(sys.argv[1]),)), LoadOptions(), Selection()))
"""


COMMAND = """
import fcntl, os, sys, termios
from flame.cli.main import main
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
{prepare}
sys.exit(main(["view", sys.argv[1]]))
"""
"""The same by the command line, as what a shell runs in the foreground of the terminal."""


class Terminal:
    """A process whose standard streams are a terminal of 120 x 40.

    It runs ``program`` on the file at ``path``; ``prepare`` is code to run before the app,
    ``environment`` what differs from that of a terminal with all colours.
    """

    def __init__(
        self, path: Path, prepare: str = "", program: str = PROGRAM, **environment: str
    ) -> None:
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        known = {key: text for key, text in os.environ.items() if key not in OWN}
        usual = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program.format(prepare=prepare), str(path)],
            stdin=other,
            stdout=other,
            stderr=other,
            env={**known, **usual, **environment},
        )
        os.close(other)
        self.output = b""
        self._screen, self._decode = Screen(), getincrementaldecoder("utf-8")("replace").decode

    def read_until(self, text: str) -> None:
        """Read what the process writes until ``text`` is on the screen, or has been."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.output and text not in self._screen.text:
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
        self._screen.feed(self._decode(part))
        return bool(part)

    def press(self, key: str) -> None:
        """Press ``key``; what was written before is forgotten."""
        self.output = b""
        os.write(self._end, key.encode())

    def answered(self) -> None:
        """Read until something has come, and then nothing for a while."""
        assert self._read(PATIENCE)
        self.settle()

    def settle(self, seconds: float = 0.5) -> None:
        """Read until nothing has come for so long."""
        while not self.silent_for(seconds):
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
    def echoes(self) -> bool:
        """Whether what is typed is shown, as a shell needs it."""
        return bool(termios.tcgetattr(self._end)[3] & termios.ECHO)

    @property
    def last_line(self) -> str:
        """What is on the last line after the app has closed, without control sequences."""
        text = read_screen(self.output.rpartition(b"\x1b[?1049l")[2])  # after its own screen
        return text.rstrip().splitlines()[-1] if text.strip() else ""

    def hang_up(self) -> None:
        """Close the terminal's end, of which no signal tells: it is not the process's own."""
        os.close(self._end)
        self._end = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


def read_screen(output: bytes) -> str:
    """The text of ``output`` without control sequences."""
    return re.sub(r"\x1b[\[\]<>=?0-9;]*[A-Za-z]?", "", output.decode(errors="replace"))


def start(
    terminals: list[Terminal],
    path: Path,
    prepare: str = "",
    program: str = PROGRAM,
    **environment: str,
) -> Terminal:
    """A `Terminal` that ends with the test whose ``terminals`` these are."""
    terminals.append(Terminal(path, prepare, program, **environment))
    return terminals[-1]
