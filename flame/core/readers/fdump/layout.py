"""Parse the layout of a dump: its header, the headers of chunks, and its schema of records."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import msgspec
import numpy as np

from flame.core.errors import InputError
from flame.core.readers.signs.fdump import is_dump

VERSION = 1
RUNNING = 0
FULL, STOPPED = 1, 2
CHUNK_HEADER = 64
USUAL_SIZE = 1 << 16
"""Of the header and of every chunk in version 1."""

TEXT = "text"
KINDS = frozenset(
    {
        *(TEXT, "frame", "range_name", "node", "name", "meta", "drop", "module", "sample"),
        *("launch", "call", "kernel", "memop", "graph_node", "range", "open_range"),
        *("module_end", "graph_exec", "graph_run", "memory"),
    }
)
"""Keys of all records of version 1."""

_HEADER = struct.Struct("<8s4I4Q4IQ")
_CHUNK = struct.Struct("<IHHIIIIQ")
_CHUNK_MAGIC = 0x4B484346
_MOST = 1 << 20
_LONGEST_SCHEMA = 1 << 20
_NEVER = 1 << 62  # ns; what is computed with it fits 64 bits
_TYPES = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "u8": "<u8"}


class DumpHeader(NamedTuple):
    """The fixed part of the header, see ``inject/dump/dump.h``. ``state`` 0 is `RUNNING`."""

    magic: bytes
    version: int
    header_size: int
    chunk_size: int
    pid: int
    start_unix: int
    start_monotonic: int
    tail: int
    dropped: int
    schema_offset: int
    schema_size: int
    state: int
    flags: int
    end_monotonic: int

    def pack(self) -> bytes:
        """Return the header as it stands in a dump, `HEADER_SIZE` bytes."""
        return _HEADER.pack(*self)


HEADER_SIZE = _HEADER.size


def parse_header(data: bytes) -> DumpHeader:
    """Parse the header that ``data`` begins with; InputError if none, or of another version."""
    if not is_dump(data):
        raise InputError("not a dump of flame")
    if len(data) < HEADER_SIZE:
        raise InputError("cut off within its header: nothing in it can be read")
    header = DumpHeader(*_HEADER.unpack_from(data))
    if header.version != VERSION:
        raise InputError(
            f"a dump of version {header.version}, this flame reads version {VERSION}: update flame"
        )
    if header.start_monotonic >= _NEVER:
        raise InputError("damaged: it says that it began at no time there is")
    if not (_is_possible_size(header.header_size) and _is_possible_size(header.chunk_size)):
        return header._replace(header_size=USUAL_SIZE, chunk_size=USUAL_SIZE)
    return header


def _is_possible_size(size: int) -> bool:
    return 1 << 12 <= size <= _MOST and size % CHUNK_HEADER == 0


class Chunk(NamedTuple):
    """A chunk at ``offset`` of the file, with ``committed`` bytes of records behind its header.

    ``damaged``: it says that it holds what cannot be. ``sealed``: nothing more will come.
    ``made``: when, ns of the monotonic clock; chunks are made one after the other.
    """

    offset: int
    type: int
    record_size: int
    committed: int
    sealed: bool
    damaged: bool
    made: int


def parse_chunk(data: bytes, offset: int, size: int) -> Chunk | None:
    """Parse the header ``data`` of a chunk of ``size`` bytes; None if it is none."""
    if len(data) < CHUNK_HEADER:
        return None
    magic, kind, record, own_size, _, committed, sealed, made = _CHUNK.unpack_from(data)
    if magic != _CHUNK_MAGIC or own_size != size:
        return None
    room = size - CHUNK_HEADER
    damaged = committed > room or (record > 0 and committed % record > 0)
    return Chunk(offset, kind, record, min(committed, room), bool(sealed), damaged, made)


def replace_committed(data: bytes, committed: int) -> bytes:
    """Return the header ``data`` of a chunk, saying that it holds ``committed`` bytes."""
    *before, _, sealed, made = _CHUNK.unpack_from(data)
    return _CHUNK.pack(*before, committed, sealed, made) + data[_CHUNK.size :]


class _Record(msgspec.Struct):
    type: int
    size: int
    fields: list[tuple[str, str]]


class _Schema(msgspec.Struct):
    records: dict[str, msgspec.Raw]


class RecordLayout(NamedTuple):
    """The layout of one kind of record; ``size`` is 0 where it varies (texts)."""

    type: int
    size: int
    dtype: np.dtype[Any]


def parse_layouts(schema: bytes) -> dict[str, RecordLayout]:
    """Parse the schema: the layout of each kind of record, by its key; InputError if it is none.

    Kinds that contradict themselves are left out: their records are then of an unknown kind.
    """
    try:
        records = msgspec.json.decode(schema, type=_Schema).records
    except (ValueError, RecursionError):
        raise InputError("damaged: the description of its records cannot be read") from None
    known = {key: _parse_layout(key, bytes(record)) for key, record in records.items()}
    return {key: layout for key, layout in known.items() if layout is not None}


def _parse_layout(key: str, text: bytes) -> RecordLayout | None:
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (ValueError, RecursionError):
        return None
    names = [name for name, _ in record.fields]
    if len(set(names)) < len(names) or any(kind not in _TYPES for _, kind in record.fields):
        return None
    dtype = np.dtype([(name, _TYPES[kind]) for name, kind in record.fields])
    fits = dtype.itemsize == record.size and (record.size > 0) == (key != TEXT)
    return RecordLayout(record.type, record.size, dtype) if fits else None


def locate_schema(header: DumpHeader) -> tuple[int, int]:
    """Return offset and size of the schema; InputError where it cannot be there."""
    end = header.schema_offset + header.schema_size
    if header.schema_offset < HEADER_SIZE or end > header.header_size:
        raise InputError("damaged: the description of its records lies nowhere")
    return header.schema_offset, min(header.schema_size, _LONGEST_SCHEMA)
