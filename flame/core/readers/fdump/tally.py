"""Count the records of a dump so far: cheap to repeat while it is being written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError
from flame.core.readers.fdump.chunks import open_dump, prefix_errors
from flame.core.readers.fdump.layout import FULL, RUNNING, STOPPED

CONTENT = ("launch", "call", "kernel", "memop", "graph_run", "memory", "range", "open_range")
"""The records without which nothing has been recorded: those of calls, GPU work and ranges."""


class DumpCounts(NamedTuple):
    """Records by kind (``ranges``: ended ones, and marks), ``bytes`` of the file so far.

    ``calls`` are those that launch nothing, ``graphs`` launches recorded as a whole, ``memory``
    what was given out or taken back.
    ``dropped`` records could not be written. ``full``: there was no more room; ``stopped``: the
    time to record was over; ``ended``: all has been written.
    """

    pid: int
    kernels: int
    launches: int
    calls: int
    ranges: int
    memops: int
    bytes: int
    dropped: int
    ended: bool
    full: bool
    stopped: bool
    graphs: int = 0
    memory: int = 0


class Tally:
    """Counts the records of the dump at ``path``; `update` reads only what may have changed.

    Both raise InputError when it is no dump (or not yet: its header is being written). ``foreign``
    as `DumpBytes` has it.
    """

    def __init__(self, path: Path, foreign: bool = False) -> None:
        self._path = path
        self._data, self._chunks = open_dump(path, foreign)

    def close(self) -> None:
        """Close the file."""
        self._data.close()

    def update(self) -> DumpCounts:
        """Return the counts now."""
        with prefix_errors(self._path):
            self._chunks.update()
        header = self._chunks.header
        return DumpCounts(
            pid=header.pid,
            kernels=self._chunks.count("kernel"),
            launches=self._chunks.count("launch"),
            calls=self._chunks.count("call"),
            ranges=self._chunks.count("range"),
            memops=self._chunks.count("memop"),
            bytes=header.tail,
            dropped=header.dropped,
            ended=header.state != RUNNING,
            full=bool(header.flags & FULL),
            stopped=bool(header.flags & STOPPED),
            graphs=self._chunks.count("graph_run"),
            memory=self._chunks.count("memory"),
        )

    def is_empty(self) -> bool:
        """Return whether no call, no GPU work and no range has been recorded."""
        return not any(map(self._chunks.count, CONTENT))


def is_empty_dump(path: Path) -> bool:
    """Return whether the dump at ``path`` has no call, GPU work or range; raises as `Tally`."""
    with closing(Tally(path)) as tally:
        tally.update()
        return tally.is_empty()


def has_ended(path: Path) -> bool:
    """Return whether all of the dump at ``path`` has been written; False where it does not say."""
    try:
        with closing(Tally(path)) as tally:
            return tally.update().ended
    except InputError:
        return False
