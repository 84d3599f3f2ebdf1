"""Copy a dump whole as it is at a moment, also while it grows and after it was unlinked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

from flame.core.readers.fdump.chunks import Chunks, DumpBytes
from flame.core.readers.fdump.host import OPEN_RANGES
from flame.core.readers.fdump.layout import CHUNK_HEADER, HEADER_SIZE, replace_committed


def copy_dump(data: DumpBytes, file: BinaryIO, looks: Iterable[Sequence[str]]) -> None:
    """Write the dump in ``data`` to ``file``; chunks end where their records did at the look.

    ``looks``: kinds of records in the order in which they are looked at. Raises OSError.
    """
    moment = _DumpState(data, looks)
    file.write(moment.header())
    for place in sorted(moment.chunks.by_place):
        file.write(moment.chunk(place))


class _DumpState:
    """How much all chunks held when each kind of records was looked at."""

    def __init__(self, data: DumpBytes, looks: Iterable[Sequence[str]]) -> None:
        self.chunks = Chunks(data)
        self._data = data
        self._ends: dict[int, int] = {}
        self._open: dict[int, bytes] = {}
        for keys in looks:
            self.chunks.update(True, keys)
            for key in keys:
                self._ends |= {
                    chunk.offset: chunk.committed for chunk in self.chunks.take_changed(key)
                }
            if OPEN_RANGES in keys:  # which are rewritten in place
                self._open = {place: self._bytes(place, end) for place, end in self._ends.items()}

    def _bytes(self, place: int, end: int) -> bytes:
        return self._data.read(place + CHUNK_HEADER, end)

    def header(self) -> bytes:
        """Return the header, changed to end behind the last chunk that is copied."""
        header = self.chunks.header
        known = max(self.chunks.by_place, default=header.header_size - header.chunk_size)
        tail = max(header.tail, known + header.chunk_size)
        data = self._data.read(0, header.header_size)
        return header._replace(tail=tail).pack() + data[HEADER_SIZE:]

    def chunk(self, place: int) -> bytes:
        """Return the chunk at ``place``, zero behind its records; a damaged chunk as it is."""
        size, chunk = self.chunks.header.chunk_size, self.chunks.by_place[place]
        if chunk is None or chunk.damaged or self.chunks.key_of(chunk) is None:
            return self._data.read(place, size).ljust(size, b"\0")
        end = self._ends.get(place, 0)
        records = self._open[place] if place in self._open else self._bytes(place, end)
        head = replace_committed(self._data.read(place, CHUNK_HEADER), end)
        return (head + records).ljust(size, b"\0")
