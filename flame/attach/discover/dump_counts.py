"""Count what dumps hold so far, and tell whether they are being written right now."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flame.core.errors import InputError
from flame.core.readers.fdump.chunks import open_dump, prefix_errors
from flame.core.readers.fdump.layout import (
    CHUNK_HEADER,
    HEADER_SIZE,
    RUNNING,
    Chunk,
    DumpHeader,
    parse_chunk,
    parse_header,
)
from flame.core.readers.fdump.tally import CONTENT

UNKNOWN = -1
_SECOND = 1_000_000_000
_ALIVE = _SECOND
"""Every tenth of a second (FLAME_FLUSH_MS) a process says until when it has recorded."""
_LARGEST = 1 << 30
"""Bytes: counting takes half a second."""
_LAST_CHUNKS = 256


class DumpCount(NamedTuple):
    """Count what is in a dump; ``newest`` of its times is in ns of CLOCK_MONOTONIC.

    ``empty``: no call, no GPU work and no range.
    """

    kernels: int = UNKNOWN
    launches: int = UNKNOWN
    newest: int = 0
    empty: bool = False

    @property
    def active(self) -> bool:
        """Tell whether something was recorded within the last second."""
        return 0 <= time.monotonic_ns() - self.newest < _SECOND


def total(numbers: Iterable[int]) -> int:
    """Add ``numbers``; `UNKNOWN` where one of them is."""
    known = list(numbers)
    return UNKNOWN if UNKNOWN in known else sum(known)


class OpenDump:
    """Read the dump at ``path``, which may be growing. All raise InputError if it is none.

    Whose it is, and what would come of unpacking it, is not known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.counted = False
        self._data, self._chunks = open_dump(path, foreign=True)

    def close(self) -> None:
        """Close the file."""
        self._data.close()

    def header(self) -> DumpHeader:
        """Read its header as it is now."""
        with prefix_errors(self._path):
            return parse_header(self._data.read(0, HEADER_SIZE))

    def count(self) -> DumpCount:
        """Count what is in it now: in all chunks the first time, later in those that grow."""
        with prefix_errors(self._path):
            self._chunks.update()
            self.counted = True
            numbers = {key: self._chunks.count(key) for key in CONTENT}
            newest = self._newest(filter(None, self._chunks.by_place.values()))
        return DumpCount(numbers["kernel"], numbers["launch"], newest, not any(numbers.values()))

    def glance(self) -> DumpCount:
        """Read only how recent what was written last is."""
        with prefix_errors(self._path):
            header = self._chunks.header
            size, tail = header.chunk_size, self.header().tail
            places = range(header.header_size, tail, size)[-_LAST_CHUNKS:]
            chunks = (parse_chunk(self._data.read(at, CHUNK_HEADER), at, size) for at in places)
            return DumpCount(newest=self._newest(filter(None, chunks)))

    def _newest(self, chunks: Iterable[Chunk]) -> int:
        """The latest time in those that are still written to."""
        layouts = self._chunks.layouts
        dtypes = {layouts[key].type: layouts[key].dtype for key in CONTENT if key in layouts}
        growing = [chunk for chunk in chunks if not chunk.sealed and chunk.type in dtypes]
        return max((self._last_time(chunk, dtypes[chunk.type]) for chunk in growing), default=0)

    def _last_time(self, chunk: Chunk, dtype: np.dtype[np.void]) -> int:
        """When the last thing in ``chunk`` was over, or began."""
        end = chunk.offset + CHUNK_HEADER + chunk.committed
        data = self._data.read(end - dtype.itemsize, dtype.itemsize) if chunk.committed else b""
        if len(data) < dtype.itemsize:
            return 0
        record = np.frombuffer(data, dtype)[0]
        names = [name for name in ("start", "end", "time") if name in (dtype.names or ())]
        return max((int(record[name]) for name in names), default=0)


def is_fresh(header: DumpHeader) -> bool:
    """Tell whether some process says that it goes on recording."""
    age = time.monotonic_ns() - max(header.start_monotonic, header.end_monotonic)
    return header.state == RUNNING and 0 <= age < _ALIVE


class DumpCounter:
    """Count dumps by path, keeping what is known from one look to the next."""

    def __init__(self) -> None:
        self._dumps: dict[Path, OpenDump] = {}
        self._done: dict[Path, DumpCount] = {}

    def dump(self, path: Path) -> OpenDump | None:
        """Open the dump at ``path``; None if it cannot be read, or not yet."""
        with suppress(InputError):
            return self._dumps.get(path) or self._dumps.setdefault(path, OpenDump(path))
        return None

    def count(self, paths: Iterable[Path], until: float) -> dict[Path, DumpCount]:
        """Count what is in dumps that can be read, small ones first.

        Of large ones, and those whose turn did not come ``until`` then (`time.monotonic`), it is
        only looked how recent they are.
        """
        paths = list(paths)
        known = {path: self._done[path] for path in paths if path in self._done}
        dumps = {path: dump for path in paths if path not in known and (dump := self.dump(path))}
        ordered = sorted(dumps, key=lambda path: (not dumps[path].counted, _size(path)))
        return known | {path: self._count(path, dumps[path], until) for path in ordered}

    def _count(self, path: Path, dump: OpenDump, until: float) -> DumpCount:
        with suppress(InputError):
            if not dump.counted and (time.monotonic() > until or _size(path) > _LARGEST):
                return dump.glance()
            ended = dump.header().state != RUNNING
            count = dump.count()
            if ended:
                self._done[path] = count
                self._dumps.pop(path).close()
            return count
        return DumpCount()

    def size(self, path: Path) -> int:
        """Return the bytes that have been written to a dump; 0 if it cannot be read."""
        dump = self.dump(path)
        with suppress(InputError):
            return dump.header().tail if dump else 0
        return 0

    def keep(self, paths: Iterable[Path]) -> None:
        """Forget all dumps but these, and close their files."""
        wanted = set(paths)
        for path in self._done.keys() - wanted:
            del self._done[path]
        for path in self._dumps.keys() - wanted:
            self._dumps.pop(path).close()


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
