"""How much dumps hold so far, and whether they are being written right now."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flame.core.errors import InputError
from flame.core.readers.fdump.chunks import Bytes, Chunks, named
from flame.core.readers.fdump.layout import (
    CHUNK_HEADER,
    HEADER_SIZE,
    RUNNING,
    Chunk,
    Header,
    header_of,
)

UNKNOWN = -1
_SECOND = 1_000_000_000
_ALIVE = 3 * _SECOND
"""Every tenth of a second (FLAME_FLUSH_MS) a process says until when it has recorded."""
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
        with named(path):
            self._data = Bytes(path)
        self._chunks: Chunks | None = None

    def close(self) -> None:
        """Give the file back."""
        self._data.close()

    def header(self) -> Header:
        """Its header now."""
        with named(self._path):
            return header_of(self._data.read(0, HEADER_SIZE))

    def count(self) -> Count:
        """What is in it now; the first time all chunks are looked at, later those that grow."""
        with named(self._path):
            self._chunks = self._chunks or Chunks(self._data)
            self._chunks.update()
            numbers = {key: self._chunks.count(key) for key in _CONTENT}
            newest = self._newest(self._chunks)
        return Count(numbers["kernel"], numbers["launch"], newest, not any(numbers.values()))

    @property
    def counted(self) -> bool:
        """Whether counting again is cheap."""
        return self._chunks is not None

    def _newest(self, chunks: Chunks) -> int:
        keys = {chunks.layouts[key].type: key for key in _CONTENT if key in chunks.layouts}
        growing = [one for one in chunks.by_place.values() if one and not one.sealed]
        dtypes = [
            (one, chunks.layouts[keys[one.type]].dtype) for one in growing if one.type in keys
        ]
        return max((self._last_time(*one) for one in dtypes), default=0)

    def _last_time(self, chunk: Chunk, dtype: np.dtype[np.void]) -> int:
        """When the last thing in ``chunk`` was over, or began."""
        end = chunk.offset + CHUNK_HEADER + chunk.committed
        data = self._data.read(end - dtype.itemsize, dtype.itemsize) if chunk.committed else b""
        if len(data) < dtype.itemsize:
            return 0
        record = np.frombuffer(data, dtype)[0]
        return max(int(record[name]) for name in ("start", "end") if name in (dtype.names or ()))


def is_fresh(header: Header) -> bool:
    """Whether some process says that it goes on recording."""
    age = time.monotonic_ns() - header.end_monotonic
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

        Those that were not looked at ``until`` then (`time.monotonic`) are not counted.
        """
        paths = list(paths)
        known = {path: self._done[path] for path in paths if path in self._done}
        dumps = {path: dump for path in paths if path not in known and (dump := self.of(path))}
        ordered = sorted(dumps, key=lambda path: (not dumps[path].counted, _size(path)))
        return known | {path: self._count(path, dumps[path], until) for path in ordered}

    def _count(self, path: Path, dump: Dump, until: float) -> Count:
        if not dump.counted and time.monotonic() > until:
            return Count()
        with suppress(InputError):
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
