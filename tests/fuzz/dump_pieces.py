"""Keep dumps small: a fuzzed dump is its pieces, without the zeros between and the usual schema.

A dump lies on a grid: a header with the schema, then chunks. An input is the pieces that lie there,
each behind its length (two bytes); the first is the header, and the schema where it has one.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Sequence
from functools import cache

from flame.core.readers.fdump.layout import CHUNK_HEADER, HEADER_SIZE
from tests.fuzz.mutations import INTEGERS, LARGE
from tests.support.writers.fdumpfile import SIZE, DumpFile, layouts, schema_of
from tests.support.writers.fdumprecords import CHUNK, HEADER

HEADER_ROOM, CELL = 1 << 13, 1 << 12
SCHEMA_AT = 256
_FORMATS = ("<B", "<H", "<I", "<Q")


@cache
def usual_schema() -> bytes:
    """The description of the records of today."""
    return schema_of(layouts())


def shrink(dump: DumpFile) -> list[bytes]:
    """The pieces of a dump, on a grid of small cells."""
    data = dump.data()
    fields = list(HEADER.unpack_from(data))
    chunks = [_shrink_chunk(data[at : at + SIZE]) for at in range(SIZE, len(data), SIZE)]
    fields[2:4], fields[9:11] = (HEADER_ROOM, CELL), (SCHEMA_AT, len(usual_schema()))
    fields[7] = HEADER_ROOM + CELL * len(chunks)
    return [HEADER.pack(*fields), *chunks]


def _shrink_chunk(data: bytes) -> bytes:
    fields = list(CHUNK.unpack_from(data))
    record, committed = fields[2] or 8, fields[5]
    room = (CELL - CHUNK_HEADER) // record * record
    fields[3], fields[5] = CELL, min(committed, room)
    head = CHUNK.pack(*fields).ljust(CHUNK_HEADER, b"\0")
    return head + data[CHUNK_HEADER : CHUNK_HEADER + fields[5]]


def pack(pieces: Iterable[bytes]) -> bytes:
    """The input that is these pieces."""
    return b"".join(struct.pack("<H", len(piece)) + piece for piece in pieces)


def unpack(data: bytes) -> list[bytes]:
    """The pieces of an input, whatever it is."""
    pieces, at = [], 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "little") % (HEADER_ROOM + 1)
        pieces.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return pieces


def build(pieces: Sequence[bytes]) -> bytes:
    """The dump that is these pieces."""
    head, *chunks = pieces or [b""]
    if len(head) <= HEADER_SIZE:
        head = head.ljust(SCHEMA_AT, b"\0") + usual_schema()
    return head[:HEADER_ROOM].ljust(HEADER_ROOM, b"\0") + b"".join(
        chunk[:CELL].ljust(CELL, b"\0") for chunk in chunks
    )


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change fields of records and of headers; repeat, exchange, drop and cut chunks."""
    pieces = unpack(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if pieces:
            _change_piece(pieces, draw)
    return pack(pieces)


def _change_piece(pieces: list[bytes], draw: random.Random) -> None:
    at, how = draw.randrange(len(pieces)), draw.randrange(8)
    if how == 0 and len(pieces) > 2:
        del pieces[at]
    elif how == 1 and at:
        pieces.insert(at, pieces[draw.randrange(1, len(pieces))])
    elif how == 2 and at:
        pieces[at] = _repeat_record(pieces[at], draw)
    elif how == 3 and not at:
        pieces[0] = _with_schema(pieces[0], draw)
    else:
        pieces[at] = _change_field(pieces[at], draw)


def _change_field(piece: bytes, draw: random.Random) -> bytes:
    changing = bytearray(piece)
    form = draw.choice(_FORMATS)
    size = struct.calcsize(form)
    if len(changing) >= size:
        at = draw.randrange(0, len(changing) - size + 1) // size * size
        known = struct.unpack_from(form, changing, at)[0]
        new = draw.choice((known + 1, known - 1, draw.choice(INTEGERS), draw.choice(LARGE)))
        struct.pack_into(form, changing, at, new % (1 << 8 * size))
    return bytes(changing)


def _repeat_record(piece: bytes, draw: random.Random) -> bytes:
    """A chunk with one of its records a second time, and counted."""
    if len(piece) < CHUNK_HEADER:
        return piece
    fields = list(CHUNK.unpack_from(piece))
    size, body = fields[2] or 8, piece[CHUNK_HEADER:]
    at = draw.randrange(len(body) + 1) // size * size
    fields[5] = min(fields[5] + size, (1 << 32) - 1)
    return CHUNK.pack(*fields) + piece[CHUNK.size : CHUNK_HEADER] + body + body[at : at + size]


def _with_schema(head: bytes, draw: random.Random) -> bytes:
    """A header with a schema of its own, of which a field, a type or a size is another."""
    schema = head[SCHEMA_AT:].rstrip(b"\0") or usual_schema()
    before = draw.choice((b'"u8"', b'"u4"', b'"start"', b'"size":', b'"type":', b'"end"', b'"id"'))
    after = draw.choice((b'"u8"', b'"u2"', b'"x"', b'"end"', b'"size":1', b'"type":1', b"0"))
    places = schema.count(before)
    if places:
        parts = schema.split(before)
        at = draw.randrange(1, places + 1)
        schema = before.join(parts[:at]) + after + before.join(parts[at:])
    changing = bytearray(head[:HEADER_SIZE].ljust(HEADER_SIZE, b"\0"))
    fields = list(HEADER.unpack_from(changing))
    fields[9:11] = SCHEMA_AT, len(schema)
    return HEADER.pack(*fields).ljust(SCHEMA_AT, b"\0") + schema
