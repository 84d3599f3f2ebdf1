"""What is recorded so far, in the last row of the terminal while the command runs."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from flame.record.bottom_row import BottomRow

if TYPE_CHECKING:
    from flame.record.totals import Dumps

_PATIENCE = 1.0
"""Seconds before the row is taken: most short programs end sooner."""


def live_line(folder: Path) -> LiveLine | None:
    """The line for a recording in ``folder``; None where no person would see it as it is meant."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return LiveLine(folder, sys.stderr.fileno())


class LiveLine:
    """Elapsed time and `Totals` of a folder, on the terminal ``fd``."""

    def __init__(self, folder: Path, fd: int) -> None:
        self._row = BottomRow(fd)
        self._folder = folder
        self._begin = time.monotonic()
        self._dumps: Dumps | None = None
        self._failed = False

    def update(self) -> None:
        """Show what there is now. A mistake here ends the line, not the recording."""
        if self._failed or self._elapsed < _PATIENCE:
            return
        try:
            self._row.show(f"flame: recording {_clock(self._elapsed)}, {self._text()}")
        except Exception:
            self._failed = True
            self.release()
            if os.environ.get("FLAME_DEBUG"):
                traceback.print_exc()

    def release(self) -> None:
        """Give the row back; `update` would take it again."""
        self._row.release()

    def close(self) -> None:
        """Give everything back."""
        self.release()
        if self._dumps is not None:
            self._dumps.close()

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begin

    def _text(self) -> str:
        if self._dumps is None:
            from flame.record.totals import Dumps

            self._dumps = Dumps(self._folder)
        return self._dumps.update().text


def _clock(seconds: float) -> str:
    """``0:42``, ``1:02:03``."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
