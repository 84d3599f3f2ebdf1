"""The chunks of a dump that may still be growing, and the records in them."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.options import silent
from flame.core.readers.compressed import GZIP, read_whole
from flame.core.readers.fdump.layout import (
    CHUNK_HEADER,
    HEADER_SIZE,
    RUNNING,
    USUAL_SIZE,
    Chunk,
    Header,
    Layout,
    chunk_of,
    header_of,
    layouts_of,
    schema_place,
)

AT_ONCE = 64
"""Chunks whose records are decoded together."""

# Room that is made ahead is 16 MiB: behind more places without a chunk there is none.
_MOST_ABSENT = 1 << 12


@contextmanager
def named(path: Path) -> Iterator[None]:
    """What goes wrong with the dump at ``path`` is said with its name, in a line."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


class Bytes:
    """The bytes of a dump, by place; one that is gzipped is unpacked into memory.

    Not mapped: a file that somebody shortens while it is mapped ends whoever reads it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._data: bytes | None = None
        try:
            if os.pread(self._file, len(GZIP), 0) == GZIP:
                self._data = read_whole(path, silent)
        except (EOFError, zlib.error) as error:
            self.close()
            raise InputError(f"damaged: not a whole gzip file ({error}); copy it again") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)

    def size(self) -> int:
        """How long the file is now."""
        return os.fstat(self._file).st_size if self._data is None else len(self._data)

    def read(self, offset: int, size: int) -> bytes:
        """``size`` bytes from ``offset`` on, fewer where the file ends before."""
        if self._data is not None:
            return self._data[offset : offset + size]
        return os.pread(self._file, size, offset)


class Chunks:
    """The chunks of one dump as far as `update` has seen them, in their order in the file.

    Chunks lie on a grid, so that a damaged one hides no other.
    """

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._spoilt: set[int] = set()
        self.header = self._placed(header_of(data.read(0, HEADER_SIZE)))
        self.layouts: dict[str, Layout] = layouts_of(data.read(*schema_place(self.header)))
        self.by_place: dict[int, Chunk | None] = {}
        self._committed: Counter[int] = Counter()
        self._open: list[int] = []
        self._next = self.header.header_size

    def _placed(self, header: Header) -> Header:
        """``header`` with the sizes of version 1 where a chunk is found only by these."""
        usual = header._replace(header_size=USUAL_SIZE, chunk_size=USUAL_SIZE)
        found, otherwise = (self._chunk(one, one.header_size) for one in (header, usual))
        return usual if found is None and otherwise is not None else header

    def _chunk(self, header: Header, offset: int) -> Chunk | None:
        data = self._data.read(offset, CHUNK_HEADER)
        chunk = chunk_of(data, offset, header.chunk_size)
        if chunk is None and data[:4].strip(b"\0"):
            self._spoilt.add(offset)
        return chunk

    def update(self, beyond_tail: bool = False) -> None:
        """Look again at the header and at chunks that may have grown; add those that are new.

        ``beyond_tail``: all places in the file, so that a damaged tail hides nothing.
        """
        sizes = self.header.header_size, self.header.chunk_size
        header = header_of(self._data.read(0, HEADER_SIZE))
        self.header = header = header._replace(header_size=sizes[0], chunk_size=sizes[1])
        end = self._data.size() if beyond_tail else min(header.tail, self._data.size())
        known, self._open = self._open, []
        for place in known:
            self._add(place, self._chunk(header, place))
        absent = 0
        while self._next < end and absent < _MOST_ABSENT:
            chunk = self._chunk(header, self._next)
            absent = 0 if chunk else absent + 1
            self._add(self._next, chunk)
            self._next += header.chunk_size

    def _add(self, place: int, chunk: Chunk | None) -> None:
        known, self.by_place[place] = self.by_place.get(place), chunk
        for one, sign in ((known, -1), (chunk, 1)):
            if one is not None:
                self._committed[one.type] += sign * one.committed
        if chunk is None or not chunk.sealed:
            self._open.append(place)

    def count(self, key: str) -> int:
        """Records of a kind."""
        layout = self.layouts.get(key)
        return self._committed[layout.type] // layout.size if layout and layout.size else 0

    def size(self) -> int:
        """How long the file is now."""
        return self._data.size()

    def lost(self) -> int:
        """How many chunks cannot be read: something else, or nothing, is where one began."""
        absent = {place for place, chunk in self.by_place.items() if chunk is None}
        written = self.header.tail if self.header.state != RUNNING else 0
        return len(absent & self._spoilt | {place for place in absent if place < written})

    def records(self) -> Records:
        """What is in the chunks as `update` has just seen them, to be read when it is wanted."""
        known = [chunk for chunk in self.by_place.values() if chunk is not None]
        return Records(self._data, self.layouts, known)


class Records:
    """The records of a dump up to one moment; the file may go on growing.

    ``unreadable`` chunks hold records of a kind that is not known, or of another size than the dump
    says, or more than there can be.
    """

    def __init__(self, data: Bytes, layouts: dict[str, Layout], chunks: Sequence[Chunk]) -> None:
        self._data = data
        self._layouts = layouts
        keys = {layout.type: key for key, layout in layouts.items()}
        self._chunks: dict[str, list[Chunk]] = {key: [] for key in layouts}
        self.unreadable = 0
        for one in chunks:
            key = keys.get(one.type)
            fits = key is not None and one.record_size == layouts[key].size
            if key is not None and fits:
                self._chunks[key].append(one)
            self.unreadable += not fits or one.damaged

    def chunks(self, key: str) -> list[Chunk]:
        """The chunks with records of one kind, in their order in the file."""
        return self._chunks.get(key, [])

    def content(self, chunk: Chunk) -> bytes:
        """The bytes of whole records in ``chunk``, fewer where the file ends before."""
        return self._data.read(chunk.offset + CHUNK_HEADER, chunk.committed)

    def columns(self, key: str, names: Sequence[str]) -> Iterator[dict[str, I8]]:
        """The fields ``names`` of all records of a kind, i8 each, some thousand records at a time.

        Fields that this dump does not record are 0.
        """
        chunks = self.chunks(key)
        for low in range(0, len(chunks), AT_ONCE):
            dtype = self._layouts[key].dtype
            data = b"".join(self._rows(one, dtype) for one in chunks[low : low + AT_ONCE])
            yield _columns(np.frombuffer(data, dtype), names)

    def table(self, key: str, names: Sequence[str]) -> dict[str, I8]:
        """The same, of all records together."""
        parts, nothing = list(self.columns(key, names)), np.zeros(0, np.int64)
        return {name: np.concatenate([nothing, *(part[name] for part in parts)]) for name in names}

    def _rows(self, chunk: Chunk, dtype: np.dtype[Any]) -> bytes:
        data = self.content(chunk)
        size = len(data) // dtype.itemsize * dtype.itemsize
        if not chunk.damaged:
            return data[:size]
        # What has never been written is zero, and no record is.
        rows = np.frombuffer(data[:size], np.uint8).reshape(-1, dtype.itemsize)
        return rows[rows.any(axis=1)].tobytes()


def _columns(records: Any, names: Sequence[str]) -> dict[str, I8]:
    have = records.dtype.names
    return {
        name: records[name].astype(np.int64) if name in have else np.zeros(len(records), np.int64)
        for name in names
    }
