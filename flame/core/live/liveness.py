"""Find out whether the process behind a dump still records."""

from __future__ import annotations

import os
import time
from pathlib import Path

from flame.core.live.status import SourceState
from flame.core.live.window import SECOND
from flame.core.mapped_files import MappedFile, listed_file
from flame.core.readers.fdump.layout import FULL, RUNNING, STOPPED, DumpHeader

_PROC = Path("/proc")
_SILENT = 3 * SECOND
_STARTED = 19  # field 22 of /proc/PID/stat, counted from the state on


class Liveness:
    """Watches the process that writes the dump ``file``, which None does not tell.

    A dump says now and then that it goes on. When it has been silent for longer than usual, the
    process is looked at: it may have ended without saying so. One of another PID namespace cannot
    be: then silence is all there is. ``halted``: it is there, and a signal or a debugger stops it.
    """

    def __init__(self, file: MappedFile | None) -> None:
        self._file = file
        self._beat = -1
        self._heard = self._looked = self._pause = 0
        self._gone = False
        self.halted = False

    def state(self, header: DumpHeader, beat: int, now: int) -> SourceState:
        """Return how the recording is doing at ``now``, ns of any steady clock.

        ``beat``: when it last said that it goes on, which ``header`` may be too old to tell.
        """
        if header.flags & FULL:
            return SourceState.FULL
        if header.flags & STOPPED:
            return SourceState.STOPPED
        if header.state != RUNNING:
            return SourceState.ENDED
        self._listen(header, beat, now)
        return SourceState.KILLED if self._gone else SourceState.RUNNING

    def _listen(self, header: DumpHeader, beat: int, now: int) -> None:
        if beat != self._beat:
            self._pause = max(self._pause, now - self._heard) if self._beat >= 0 else 0
            self._beat, self._heard, self._gone = beat, now, False
            self.halted = False
        elif now - max(self._heard, self._looked) > max(_SILENT, 3 * self._pause):
            self._looked = now
            self._gone = not _is_writing(header.pid, header.start_monotonic, self._file)
            self.halted = not self._gone and _is_halted(header.pid)


def _is_halted(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, ValueError, IndexError):
        return False


def _is_writing(pid: int, since: int, file: MappedFile | None) -> bool:
    """Return whether process ``pid`` existed at ``since`` and has the file mapped."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        # It counts time asleep, too, of which there may have been less at that time.
        asleep = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        tick = SECOND // os.sysconf("SC_CLK_TCK")
        if fields[0] in "ZX" or int(fields[_STARTED]) * tick > since + asleep + SECOND:
            return False
        return file is None or _maps(pid, file)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, ValueError, IndexError):
        return True


def _maps(pid: int, file: MappedFile) -> bool:
    """Return whether the process has mapped the file: after an exec it has not."""
    with (_PROC / str(pid) / "maps").open("rb") as lines:
        return any(listed_file(line) == file for line in lines)
