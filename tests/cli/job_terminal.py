"""A shell with job control on a (pseudo) terminal, and what is to be seen on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.support.waiting import PATIENCE

ROWS, COLUMNS = 24, 80
PROMPT = "ready> "
BASH = ("bash", "--norc", "--noprofile", "--noediting", "-i")


class Shell:
    """An interactive shell; its jobs are process groups of their own, as on a person's terminal."""

    def __init__(self, term: str = "xterm-256color") -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM=term, PS1=PROMPT)
            os.execvp(BASH[0], BASH)
        self.resize(ROWS)
        self.output = b""
        self.read_until(PROMPT)

    def resize(self, rows: int) -> None:
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))

    def press(self, keys: str) -> None:
        """Press keys; what was written before is forgotten."""
        self.output = b""
        os.write(self._end, keys.encode())

    def run(self, line: str) -> str:
        """Run a command to its end: all that the terminal has got."""
        self.press(f"{line}\n")
        return self.read_until(PROMPT)

    def read_until(self, text: str) -> str:
        """Read until ``text`` appears."""
        return self.read_to(lambda output: text in output)

    def read_to(self, fits: Callable[[str], object]) -> str:
        """Read until what was written since the last keys ``fits``."""
        end = time.monotonic() + PATIENCE
        while not fits(text := self.output.decode("utf-8", "replace")):
            assert self._read(end - time.monotonic()), self.output[-2000:]
        return text

    def read_for(self, seconds: float) -> str:
        """Read what comes in this time, and forget it next time."""
        self.output = b""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        return self.output.decode("utf-8", "replace")

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._end], [], [], seconds)[0]:
            return False
        part = os.read(self._end, 65536)
        self.output += part
        return bool(part)

    def close(self) -> None:
        # Not left to the hangup, which whoever runs the tests may have them ignore.
        for child in psutil.Process(self.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._end)


_PART = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b([78D])|[\r\n\x08\x07]|[^\x1b\r\n\x08\x07]")


class Screen:
    """A terminal's screen: lines, a cursor, a scroll region, and what has scrolled off the top.

    Knows what shells, plain programs and flame's own line write, and refuses anything else.
    """

    def __init__(self, text: str = "", rows: int = ROWS) -> None:
        self.above: list[str] = []
        self.lines = [""] * rows
        self.row = self.column = 0
        self.bottom = rows - 1
        self._saved = (0, 0)
        self.feed(text)

    def feed(self, text: str) -> None:
        at = 0
        for found in _PART.finditer(text):
            assert found.start() == at, text[at : at + 20]
            at = found.end()
            self._obey(found)
        assert at == len(text) or text[at:].startswith("\x1b"), text[at:]

    @property
    def everything(self) -> list[str]:
        return [line.rstrip() for line in [*self.above, *self.lines]]

    def _obey(self, found: re.Match[str]) -> None:
        arguments, order, simple = found.groups()
        if order:
            self._control(arguments, order)
        elif simple == "7":
            self._saved = (self.row, self.column)
        elif simple == "8":
            self.row, self.column = self._saved
        elif simple == "D" or found[0] == "\n":
            self._down()
        elif found[0] == "\r":
            self.column = 0
        elif found[0] not in "\x08\x07":
            self._put(found[0])

    def _control(self, arguments: str, order: str) -> None:
        numbers = (
            [int(number or 0) for number in arguments.split(";")] if "?" not in arguments else []
        )
        if order == "H":
            self.row, self.column = numbers[0] - 1, numbers[1] - 1
        elif order == "A":
            self.row = max(self.row - 1, 0)
        elif order == "r":
            self.bottom = numbers[1] - 1 if len(numbers) == 2 else len(self.lines) - 1
            self.row = self.column = 0
        elif order == "K" and numbers == [2]:
            self.lines[self.row] = ""
        else:
            assert order == "m" or "?" in arguments, (arguments, order)

    def _down(self) -> None:
        if self.row != self.bottom:
            self.row = min(self.row + 1, len(self.lines) - 1)
            return
        self.above.append(self.lines.pop(0))
        self.lines.insert(self.bottom, "")

    def _put(self, character: str) -> None:
        if self.column == COLUMNS:
            self.column = 0
            self._down()
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1
