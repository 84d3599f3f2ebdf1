"""How much dumps hold so far, and whether they are being written right now."""

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

UNKNOWN = -1
_SECOND = 1_000_000_000
_ALIVE = _SECOND
"""Every tenth of a second (FLAME_FLUSH_MS) a process says until when it has recorded."""
_LARGEST = 1 << 30
"""Bytes: counting takes half a second."""
_LAST_CHUNKS = 256
_CONTENT = ("launch", "kernel", "memop", "range", "open_range")


class Count(NamedTuple):
    """What is in a dump: ``newest`` of its times in ns of CLOCK_MONOTONIC.

    ``empty``: no call, no GPU work and no range.
    """

    kernels: int = UNKNOWN
    launches: int = UNKNOWN
    newest: int = 0
    empty: bool = False

    @property
    def active(self) -> bool:
        """Whether something was recorded within the last second."""
        return 0 <= time.monotonic_ns() - self.newest < _SECOND


def total(numbers: Iterable[int]) -> int:
    """Their sum, `UNKNOWN` where one is."""
    known = list(numbers)
    return UNKNOWN if UNKNOWN in known else sum(known)


class Dump:
    """The dump at ``path``, which may be growing. Everything raises InputError if it is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.counted = False
        self._data, self._chunks = open_dump(path)

    def close(self) -> None:
        """Give the file back."""
        self._data.close()

    def header(self) -> DumpHeader:
        """Its header now."""
        with prefix_errors(self._path):
            return parse_header(self._data.read(0, HEADER_SIZE))

    def count(self) -> Count:
        """What is in it now; the first time all chunks are looked at, later those that grow."""
        with prefix_errors(self._path):
            self._chunks.update()
            self.counted = True
            numbers = {key: self._chunks.count(key) for key in _CONTENT}
            newest = self._newest(filter(None, self._chunks.by_place.values()))
        return Count(numbers["kernel"], numbers["launch"], newest, not any(numbers.values()))

    def glance(self) -> Count:
        """Only how recent what was written last is."""
        with prefix_errors(self._path):
            header = self._chunks.header
            size, tail = header.chunk_size, self.header().tail
            places = range(header.header_size, tail, size)[-_LAST_CHUNKS:]
            found = (parse_chunk(self._data.read(at, CHUNK_HEADER), at, size) for at in places)
            return Count(newest=self._newest(filter(None, found)))

    def _newest(self, chunks: Iterable[Chunk]) -> int:
        """The latest time in those that are still written to."""
        layouts = self._chunks.layouts
        dtypes = {layouts[key].type: layouts[key].dtype for key in _CONTENT if key in layouts}
        growing = [one for one in chunks if not one.sealed and one.type in dtypes]
        return max((self._last_time(one, dtypes[one.type]) for one in growing), default=0)

    def _last_time(self, chunk: Chunk, dtype: np.dtype[np.void]) -> int:
        """When the last thing in ``chunk`` was over, or began."""
        end = chunk.offset + CHUNK_HEADER + chunk.committed
        data = self._data.read(end - dtype.itemsize, dtype.itemsize) if chunk.committed else b""
        if len(data) < dtype.itemsize:
            return 0
        record = np.frombuffer(data, dtype)[0]
        names = [name for name in ("start", "end") if name in (dtype.names or ())]
        return max((int(record[name]) for name in names), default=0)


def is_fresh(header: DumpHeader) -> bool:
    """Whether some process says that it goes on recording."""
    age = time.monotonic_ns() - max(header.start_monotonic, header.end_monotonic)
    return header.state == RUNNING and 0 <= age < _ALIVE


class Counts:
    """Counts of dumps by path, kept from one look to the next."""

    def __init__(self) -> None:
        self._dumps: dict[Path, Dump] = {}
        self._done: dict[Path, Count] = {}

    def of(self, path: Path) -> Dump | None:
        """The dump at ``path``, None if it cannot be read, or not yet."""
        with suppress(InputError):
            return self._dumps.get(path) or self._dumps.setdefault(path, Dump(path))
        return None

    def count(self, paths: Iterable[Path], until: float) -> dict[Path, Count]:
        """What is in dumps that can be read, small ones first.

        Of large ones, and those whose turn did not come ``until`` then (`time.monotonic`), it is
        only looked how recent they are.
        """
        paths = list(paths)
        known = {path: self._done[path] for path in paths if path in self._done}
        dumps = {path: dump for path in paths if path not in known and (dump := self.of(path))}
        ordered = sorted(dumps, key=lambda path: (not dumps[path].counted, _size(path)))
        return known | {path: self._count(path, dumps[path], until) for path in ordered}

    def _count(self, path: Path, dump: Dump, until: float) -> Count:
        with suppress(InputError):
            if not dump.counted and (time.monotonic() > until or _size(path) > _LARGEST):
                return dump.glance()
            ended = dump.header().state != RUNNING
            count = dump.count()
            if ended:
                self._done[path] = count
                self._dumps.pop(path).close()
            return count
        return Count()

    def size(self, path: Path) -> int:
        """Bytes that have been written to a dump; 0 if it cannot be read."""
        dump = self.of(path)
        with suppress(InputError):
            return dump.header().tail if dump else 0
        return 0

    def keep(self, paths: Iterable[Path]) -> None:
        """Forget all others, and give their files back."""
        wanted = set(paths)
        for path in self._done.keys() - wanted:
            del self._done[path]
        for path in self._dumps.keys() - wanted:
            self._dumps.pop(path).close()


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
