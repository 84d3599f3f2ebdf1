"""Write SQLite files page by page, right or wrong (https://sqlite.org/fileformat2.html)."""

from __future__ import annotations

from collections.abc import Sequence

LEAF, INTERIOR = 13, 5
_MAGIC = b"SQLite format 3\0"
_HEAD = 100  # bytes of the first page before its own header

Schema = Sequence[tuple[str, str, int, str]]
"""Type, name, root page and SQL of each part of a database."""


def varint(value: int, width: int = 1) -> bytes:
    """The bytes of a number, at least ``width`` of them."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes([*[0x80] * (width - len(groups)), *reversed(groups)])


def record(values: Sequence[int | str | None]) -> bytes:
    """A row's header, of at most 127 bytes, and its values; integers are of four bytes."""
    kinds = [0 if v is None else 4 if isinstance(v, int) else 13 + 2 * len(v) for v in values]
    stored = [v.to_bytes(4, "big") if isinstance(v, int) else (v or "").encode() for v in values]
    types = b"".join(map(varint, kinds))
    return varint(len(types) + 1) + types + b"".join(stored)


def cell(rowid: int, row: bytes) -> bytes:
    """A row that is whole on its leaf."""
    return varint(len(row)) + varint(rowid) + row


def page(
    size: int, cells: Sequence[bytes], kind: int = LEAF, right: bytes = b"", begin: int = 0
) -> bytes:
    """A page of ``cells``, whose header begins after ``begin`` bytes."""
    at, pointers = size, []
    for one in cells:
        at -= len(one)
        pointers.append(at)
    return placed(size, pointers, b"".join(reversed(cells)), kind, right, begin)


def placed(
    size: int,
    pointers: Sequence[int],
    content: bytes,
    kind: int = LEAF,
    right: bytes = b"",
    begin: int = 0,
) -> bytes:
    """A page that ends with ``content``, in which the rows begin where ``pointers`` say."""
    numbers = (0, len(pointers), (size - len(content)) % (1 << 16))
    head = bytes([kind]) + b"".join(number.to_bytes(2, "big") for number in numbers)
    head += b"\0" + right + b"".join(pointer.to_bytes(2, "big") for pointer in pointers)
    room = size - begin - len(head) - len(content)
    assert room >= 0
    return bytes(begin) + head + bytes(room) + content


def interior(size: int, children: Sequence[tuple[int, int]], begin: int = 0) -> bytes:
    """A page that names ``children`` and the largest rowid that each holds."""
    cells = [child.to_bytes(4, "big") + varint(last) for child, last in children[:-1]]
    return page(size, cells, INTERIOR, children[-1][0].to_bytes(4, "big"), begin)


def schema_cells(schema: Schema) -> list[bytes]:
    """The rows of ``sqlite_master``."""
    return [
        cell(number, record((kind, name, name, root, sql)))
        for number, (kind, name, root, sql) in enumerate(schema, 1)
    ]


def database(size: int, schema: Schema, pages: Sequence[bytes]) -> bytes:
    """A file of ``pages``, from page 2 on."""
    return joined(page(size, schema_cells(schema), begin=_HEAD), pages)


def joined(first: bytes, pages: Sequence[bytes]) -> bytes:
    """A file of its first page, whose first bytes are set here, and others."""
    head, size, one = bytearray(_HEAD), len(first), (1).to_bytes(4, "big")
    head[:16] = _MAGIC
    head[16:24] = (1 if size == 1 << 16 else size).to_bytes(2, "big") + bytes([1, 1, 0, 64, 32, 32])
    head[28:32] = (1 + len(pages)).to_bytes(4, "big")
    head[24:28] = head[40:44] = head[56:60] = head[92:96] = one
    head[44:48] = (4).to_bytes(4, "big")
    return bytes(head) + first[_HEAD:] + b"".join(pages)
