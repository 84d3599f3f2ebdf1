"""Find the chunks of a dump that may still be growing."""

from __future__ import annotations

import fcntl
import os
import stat
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from flame.core.errors import InputError
from flame.core.mapped_files import (
    IsNotRegularError,
    MappedFile,
    identify_mapped,
    open_foreign,
    open_regular,
)
from flame.core.options import silent
from flame.core.readers.fdump.layout import (
    CHUNK_HEADER,
    HEADER_SIZE,
    RUNNING,
    USUAL_SIZE,
    Chunk,
    DumpHeader,
    RecordLayout,
    locate_schema,
    parse_chunk,
    parse_header,
    parse_layouts,
)
from flame.core.readers.fdump.records import RecordPiece, Records
from flame.core.readers.shared.packed_files import PackedError, find_packing, read_whole

# Room that is made ahead is 16 MiB: behind more places without a chunk there is none.
_MOST_ABSENT = 1 << 12
_LONGEST_MAGIC = 8
_NOT_REGULAR = "not a regular file; copy it to one first"


@contextmanager
def prefix_errors(path: str | Path) -> Iterator[None]:
    """Raise InputError and OSError as an InputError of one line that begins with ``path``."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


class DumpBytes:
    """The bytes of a dump, by place; a packed dump is unpacked into memory.

    Not mapped: a file that somebody shortens while it is mapped ends whoever reads it.
    """

    def __init__(self, path: Path, descriptor: int | None = None, foreign: bool = False) -> None:
        """Open the file at ``path``, or duplicate ``descriptor``, which stays the caller's.

        ``foreign``: another user's process may have put it there. No link is followed then, and a
        packed one is refused, which costs nothing.
        """
        if descriptor is None:
            self._file = _open_file(path, foreign)
        else:
            self._file = _duplicate_descriptor(descriptor)
        # Descriptors are few: what is forgotten gives its own back.
        self._close = weakref.finalize(self, os.close, self._file)
        self._data: bytes | None = None
        try:
            status = os.fstat(self._file)
            if not stat.S_ISREG(status.st_mode):
                raise InputError(_NOT_REGULAR)
            self.file = status.st_dev, status.st_ino
            """Device and inode."""
            if find_packing(os.pread(self._file, _LONGEST_MAGIC, 0)):
                if foreign:
                    raise InputError("packed, so nobody records to it; see it with flame view")
                self._data = read_whole(Path(f"/proc/self/fd/{self._file}"), silent)
        except PackedError as error:
            self.close()
            raise InputError(f"damaged: {error}; copy it again") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._close()

    def mapped_file(self) -> MappedFile | None:
        """Say how the file is listed where a process has mapped it; None where nobody can tell."""
        with suppress(OSError):
            return identify_mapped(self._file)
        return None

    def size(self) -> int:
        """Return how long the file is now."""
        return os.fstat(self._file).st_size if self._data is None else len(self._data)

    def read(self, offset: int, size: int) -> bytes:
        """Read ``size`` bytes from ``offset`` on, fewer where the file ends before."""
        if self._data is not None:
            return self._data[offset : offset + size]
        return os.pread(self._file, size, offset)


def _open_file(path: Path, foreign: bool) -> int:
    try:
        return open_foreign(path) if foreign else open_regular(path)
    except IsNotRegularError:
        raise InputError(_NOT_REGULAR) from None


def _duplicate_descriptor(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 0)


class Chunks:
    """The chunks of one dump as far as `update` has seen them, in their order in the file.

    Chunks lie on a grid, so that a damaged one hides no other. ``unreadable`` chunks hold records
    of a kind that is not known, or of another size than the dump says, or more than there can be.
    """

    def __init__(self, data: DumpBytes) -> None:
        self._data = data
        self._spoilt: set[int] = set()
        self._missing: set[int] = set()
        self.header = self._find_sizes(parse_header(data.read(0, HEADER_SIZE)))
        self.layouts: dict[str, RecordLayout] = parse_layouts(
            data.read(*locate_schema(self.header))
        )
        self.by_place: dict[int, Chunk | None] = {}
        self.unreadable = 0
        self._keys = {layout.type: key for key, layout in self.layouts.items()}
        self._committed: Counter[int] = Counter()
        self._open: list[int] = []
        self._absent: list[int] = []
        self._changed: dict[str, set[int]] = {key: set() for key in self.layouts}
        self._next = self.header.header_size

    def _find_sizes(self, header: DumpHeader) -> DumpHeader:
        """Return ``header``, with the sizes of version 1 where a chunk is found only by these."""
        usual = header._replace(header_size=USUAL_SIZE, chunk_size=USUAL_SIZE)
        chunk, otherwise = (
            self._read_chunk(candidate, candidate.header_size) for candidate in (header, usual)
        )
        return usual if chunk is None and otherwise is not None else header

    def _read_chunk(self, header: DumpHeader, offset: int) -> Chunk | None:
        data = self._data.read(offset, CHUNK_HEADER)
        chunk = parse_chunk(data, offset, header.chunk_size)
        if chunk is None and data[:4].strip(b"\0"):
            self._spoilt.add(offset)
        return chunk

    def update(self, beyond_tail: bool = False, keys: Iterable[str] | None = None) -> None:
        """Look again at the header and at chunks that may have grown; add those that are new.

        ``beyond_tail``: all places in the file, so that a damaged tail hides nothing. ``keys``:
        only chunks with records of these kinds need to be up to date.
        """
        known = self.header
        header = parse_header(self._data.read(0, HEADER_SIZE))
        if header.start_monotonic != known.start_monotonic or header.pid != known.pid:
            raise InputError("another dump has been written over it")
        self.header = header = header._replace(
            header_size=known.header_size, chunk_size=known.chunk_size
        )
        self._discover(self.size() if beyond_tail else min(header.tail, self.size()))
        self._refresh(None if keys is None else {*keys})

    def _discover(self, end: int) -> None:
        """Add the chunks behind the last known chunk; later calls look again at what follows it."""
        place, self._absent = self._next, []
        while place < end and len(self._absent) < _MOST_ABSENT:
            chunk = self._read_chunk(self.header, place)
            if chunk is None:
                self._absent.append(place)
            else:
                for absent in self._absent:
                    self._add(absent, None)
                self._add(place, chunk)
                self._absent = []
                self._next = place + self.header.chunk_size
            place += self.header.chunk_size

    def _refresh(self, keys: set[str] | None) -> None:
        """Look again at chunks that may have grown, new ones included.

        A thread begins a chunk when the one before is full: where there is a later one, all of the
        earlier one is seen.
        """
        known, self._open = self._open, []
        for place in known:
            chunk = self.by_place[place]
            if keys is None or chunk is None or self._keys.get(chunk.type) in keys:
                self._add(place, self._read_chunk(self.header, place))
            else:
                self._open.append(place)

    def _add(self, place: int, chunk: Chunk | None) -> None:
        known, self.by_place[place] = self.by_place.get(place), chunk
        (self._missing.add if chunk is None else self._missing.discard)(place)
        if chunk is None or not chunk.sealed:
            self._open.append(place)
        if chunk == known:
            return
        for version, sign in ((known, -1), (chunk, 1)):
            if version is not None:
                self._committed[version.type] += sign * version.committed
                self.unreadable += sign * (version.damaged or self.key_of(version) is None)
        if chunk is not None and (key := self.key_of(chunk)) is not None:
            self._changed[key].add(place)

    def key_of(self, chunk: Chunk) -> str | None:
        """Return the kind of the records in ``chunk``; None where they contradict the schema."""
        key = self._keys.get(chunk.type)
        return key if key is not None and chunk.record_size == self.layouts[key].size else None

    def count(self, key: str) -> int:
        """Count the records of a kind."""
        layout = self.layouts.get(key)
        return self._committed[layout.type] // layout.size if layout and layout.size else 0

    def size(self) -> int:
        """Return how long the file is now."""
        return self._data.size()

    def count_lost(self) -> int:
        """Count chunks that cannot be read: something else, or nothing, is where one began."""
        absent = self._missing.union(self._absent)
        written = self.header.tail if self.header.state != RUNNING else 0
        return len(absent & self._spoilt | {place for place in absent if place < written})

    def take_changed(self, key: str) -> Iterator[Chunk]:
        """Yield chunks of a kind that have changed since the last call for it, in file order."""
        changed, self._changed[key] = sorted(self._changed.get(key, ())), set()
        for place in changed:
            chunk = self.by_place[place]
            if chunk is not None and self.key_of(chunk) == key:
                yield chunk

    def records(self) -> Records:
        """Return the records in the chunks as `update` has seen them; they are read on demand."""
        return self.records_of(chunk for chunk in self.by_place.values() if chunk is not None)

    def records_of(self, chunks: Iterable[Chunk]) -> Records:
        """Return the records in some ``chunks``, as `records` does."""
        pieces: dict[str, list[RecordPiece]] = {}
        for chunk in chunks:
            if (key := self.key_of(chunk)) is not None:
                pieces.setdefault(key, []).append(piece_of(chunk))
        return self.records_in(pieces)

    def records_in(self, pieces: Mapping[str, Sequence[RecordPiece]]) -> Records:
        """Return the records in some pieces of chunks, by kind."""
        return Records(self._data.read, self.layouts, pieces)


def piece_of(chunk: Chunk, low: int = 0) -> RecordPiece:
    """Return the records of ``chunk`` from the byte ``low`` on as a piece."""
    begin = chunk.offset + CHUNK_HEADER
    return RecordPiece(begin + low, begin + max(chunk.committed, low), chunk.damaged, chunk.made)


def open_dump(path: Path, foreign: bool = False) -> tuple[DumpBytes, Chunks]:
    """Open the dump at ``path``; the caller closes its bytes. InputError if it is no dump (yet)."""
    with prefix_errors(path):
        data = DumpBytes(path, foreign=foreign)
        try:
            return data, Chunks(data)
        except BaseException:
            data.close()
            raise
