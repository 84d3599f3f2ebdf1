"""A program on a pseudo terminal: keys in, the time to the first and last byte out."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from typing import NamedTuple

import psutil

from benchmarks.support.measuring import ROOT

COLUMNS, ROWS = 200, 50
QUIET = 0.15
"""So many seconds without a byte and without work are the end of a reaction."""
QUIET_START = 1.5
"""The same while a file is read: on a busy machine a pause is not the end yet."""
PATIENCE = 120.0
ENVIRONMENT = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "PYTHONPATH": str(ROOT),
    # Neither the settings nor the search history of whoever runs this.
    "XDG_CONFIG_HOME": str(ROOT / "benchmarks"),
    "XDG_STATE_HOME": os.devnull,
    "XDG_CACHE_HOME": os.devnull,  # nor what was read the last time
}

UP, DOWN, RIGHT, LEFT = (f"\x1b[{letter}" for letter in "ABCD")
ENTER, ESCAPE, TAB, PAGE_DOWN, HOME = "\r", "\x1b", "\t", "\x1b[6~", "\x1b[H"

HELD = 20
"""Presses of a key that is held, at `PER_SECOND`."""
PER_SECOND = 30


class Reaction(NamedTuple):
    """Seconds to the first and to the last byte (NaN if none came), and how many there were.

    ``work`` is the processor seconds until all is quiet, in steps of the kernel's clock.
    """

    first: float
    last: float
    size: float
    work: float


class Terminal:
    """A process whose standard streams are a terminal; it answers no query."""

    def __init__(self, command: list[str], columns: int = COLUMNS, rows: int = ROWS) -> None:
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._begin = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=os.environ | ENVIRONMENT
        )
        os.close(other)
        self._work = psutil.Process(self.process.pid)

    def press(self, key: str) -> Reaction:
        """Send ``key`` and wait until all is quiet."""
        begin = time.perf_counter()
        os.write(self._end, key.encode())
        return self.react(begin)

    def hold(self, keys: str) -> Reaction:
        """Send ``keys``, `HELD` times the same one, at the pace of a keyboard.

        The times are from the last press on; the bytes are those of one press, without what
        follows once the key is let go.
        """
        key, size = keys[: len(keys) // HELD], 0
        for _ in range(HELD):
            begin = time.perf_counter()
            os.write(self._end, key.encode())
            size += self.read_for(1 / PER_SECOND)
        after = self.react(begin)
        return after._replace(size=size / HELD)

    def answer(self, key: str) -> float:
        """Seconds from ``key`` to the next byte, where the program is never at rest."""
        while self._read():
            pass
        begin = time.perf_counter()
        os.write(self._end, key.encode())
        while not self._read() and time.perf_counter() - begin < PATIENCE:
            pass
        return time.perf_counter() - begin

    def start(self) -> Reaction:
        """Wait until the program has drawn what it was started with."""
        return self.react(self._begin, QUIET_START)

    def react(self, begin: float, quiet: float = QUIET) -> Reaction:
        """Read until no byte has come and no work was done for a while; TimeoutError if never."""
        first = last = float("nan")
        size, since = 0, begin
        before = worked = self.worked()
        while (now := time.perf_counter()) - begin < PATIENCE:
            part = self._read()
            if part:
                last = time.perf_counter() - begin
                first = last if not size else first
                size += part
            if part or self.worked() - worked > 0.02:
                worked, since = self.worked(), time.perf_counter()
            elif now - since > quiet:
                return Reaction(first, last, size, self.worked() - before)
        raise TimeoutError(f"not at rest after {PATIENCE:.0f} s")

    def read_for(self, seconds: float) -> int:
        """Read for so long, whatever comes; the number of bytes."""
        end, size = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            size += self._read()
        return size

    def _read(self) -> int:
        if not select.select([self._end], [], [], 0.02)[0]:
            return 0
        try:
            return len(os.read(self._end, 1 << 20))
        except OSError as error:  # the other end is closed
            raise TimeoutError("ended by itself") from error

    def worked(self) -> float:
        """CPU seconds that the process has used, in steps of the kernel's clock."""
        try:
            spent = self._work.cpu_times()
        except psutil.Error as error:
            raise TimeoutError("ended by itself") from error
        return float(spent.user + spent.system)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)
