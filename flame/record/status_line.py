"""Show what is recorded so far in the last row of the terminal while the command runs.

As apt and dnf do: the scroll region ends above the row, so that what scrolls never meets it.
"""

from __future__ import annotations

import os
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flame.console.terminal import print_traceback
from flame.core.shown_text import printable

if TYPE_CHECKING:
    from flame.record.totals import RecordedDumps


_DELAY = 1.0
"""Seconds before the row is taken: most short programs end sooner."""
_FEWEST_ROWS = 8
_FEWEST_COLUMNS = 40
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_WHOLE_SCREEN = f"{_SAVE}\x1b[r{_RESTORE}"
_DOWN_AND_UP = "\x1bD\x1b[A"
"""One row down, which scrolls where there is none, and up: the cursor is not in the last row."""


def open_status_line(folder: Path) -> StatusLine | None:
    """Return the line for a recording in ``folder``; None where no person would see it."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return StatusLine(folder, sys.stderr.fileno())


class StatusLine:
    """Show elapsed time and `RecordingTotals` of a folder on the terminal ``fd``."""

    def __init__(self, folder: Path, fd: int) -> None:
        self._row = BottomRow(fd)
        self._folder = folder
        self._begin = time.monotonic()
        self._dumps: RecordedDumps | None = None
        self._failed = False

    def update(self) -> None:
        """Show what there is now. A mistake here ends the line, not the recording."""
        if self._failed or self._elapsed < _DELAY:
            return
        try:
            self._row.show(f"flame: recording {_clock(self._elapsed)}, {self._text()}")
        except Exception as error:
            self._failed = True
            self.release()
            if os.environ.get("FLAME_DEBUG"):
                print_traceback(error)

    def release(self) -> None:
        """Give the row back; `update` would take it again."""
        self._row.release()

    def close(self) -> None:
        """Give the row back and close the dumps."""
        self.release()
        if self._dumps is not None:
            self._dumps.close()

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begin

    def _text(self) -> str:
        if self._dumps is None:
            from flame.record.totals import RecordedDumps

            self._dumps = RecordedDumps(self._folder)
        return self._dumps.update().text


def _clock(seconds: float) -> str:
    """``0:42``, ``1:02:03``."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


class BottomRow:
    """Take the last row of the terminal ``fd`` by `show`, and give it back by `release`.

    It is left alone, and given back, while another job or a full-screen program has the terminal.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._row = 0

    def show(self, text: str) -> None:
        """Write ``text`` (ASCII) there on one line, or nothing where that would disturb."""
        with suppress(OSError, termios.error):
            columns, rows = os.get_terminal_size(self._fd)
            if rows < _FEWEST_ROWS or columns < _FEWEST_COLUMNS or not self._is_ours():
                self.release()
                return
            if rows != self._row:
                self._take(rows)
            self._write(_at(self._row, printable(text)[: columns - 1]))

    def release(self) -> None:
        """Give the row back, empty; the cursor stays where it is."""
        if not self._row:
            return
        row, self._row = self._row, 0
        with suppress(OSError):
            # In a window of another size than before, something else may stand there.
            same = os.get_terminal_size(self._fd).lines == row
            self._write(_WHOLE_SCREEN + (_at(row, "") if same else ""))

    def _take(self, rows: int) -> None:
        self._write(f"{_WHOLE_SCREEN}{_DOWN_AND_UP}{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}")
        self._row = rows

    def _is_ours(self) -> bool:
        """Whether flame's job has the terminal, and reads it by lines as usual programs do."""
        if os.tcgetpgrp(self._fd) != os.getpgrp():
            return False
        return bool(termios.tcgetattr(self._fd)[3] & termios.ICANON)

    def _write(self, text: str) -> None:
        # One call: what the program writes at the same time comes before or after it.
        os.write(self._fd, text.encode("ascii", "replace"))


def _at(row: int, text: str) -> str:
    """``text`` in ``row`` instead of what is there, in no colour."""
    return f"{_SAVE}\x1b[{row};1H\x1b[m\x1b[2K{text}{_RESTORE}"
