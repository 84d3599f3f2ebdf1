"""Pack columns of whole numbers: small ones as few bytes, equal bytes side by side; and texts."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Column

MOST_DEFLATED = 1100
"""How many times as long as itself what zlib has deflated is at most, and a little more."""

_FREE, _MOST_PACKED = 64 << 20, 150
"""Bytes that any file may unpack to, and more of them for a byte of it: as packed traces.

Ranks that differ come to 30 of them. Only equal ones, a thousand of one trace, come to more.
"""

_LEVEL = 6
_WIDEST = 8


class PackedColumn(msgspec.Struct, array_like=True, frozen=True):
    """Hold ``rows`` numbers of ``width`` bytes each; ``data`` has all first bytes, then all second.

    A number n is written as 2n, or as -2n - 1 where it is negative.
    """

    rows: int
    width: int
    data: bytes


def pack_column(column: Column, level: int = _LEVEL) -> PackedColumn:
    """Pack ``column``."""
    number = column.astype(np.int64)
    folded = ((number << 1) ^ (number >> 63)).view(np.uint64).astype("<u8")
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    planes = folded.view(np.uint8).reshape(len(folded), _WIDEST)[:, :width].T
    return PackedColumn(len(number), width, deflate(planes.tobytes(), level) if width else b"")


def unpack_column(packed: PackedColumn, rows: int) -> I8:
    """Unpack a column, which must have so many ``rows``; ValueError where it has not."""
    if packed.rows != rows or not 0 <= packed.width <= _WIDEST:
        raise ValueError("a column has another length")
    raw = inflate(packed.data, rows * packed.width) if packed.width else b""
    folded = np.zeros((rows, _WIDEST), np.uint8)
    folded[:, : packed.width] = np.frombuffer(raw, np.uint8).reshape(packed.width, rows).T
    del raw
    number = folded.view("<u8").reshape(rows)
    sign = (number & np.uint64(1)).view(np.int64)
    number >>= np.uint64(1)
    unfolded: I8 = number.view(np.int64)
    unfolded ^= np.negative(sign, out=sign)
    return unfolded


def deflate(raw: bytes, level: int = _LEVEL) -> bytes:
    """Deflate ``raw``."""
    return zlib.compress(raw, level)


def inflate(data: bytes, size: int) -> bytes:
    """Inflate ``data`` to exactly ``size`` bytes; ValueError where that is not what it holds.

    Nothing is inflated to more than that.
    """
    if not 0 <= size <= MOST_DEFLATED * (len(data) + 1):
        raise ValueError("a part is longer than it can be")
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(data, size) if size else b""
        rest = stream.decompress(stream.unconsumed_tail if size else data, 1)
    except zlib.error as error:
        raise ValueError("a part is damaged") from error
    if len(raw) != size or rest or not stream.eof or stream.unused_data:
        raise ValueError("a part has another length")
    return raw


class PackedColumns:
    """Unpacks columns one by one; of those that are ``rising`` the differences are kept."""

    def __init__(self, packed: Mapping[str, PackedColumn], rising: frozenset[str]) -> None:
        self._packed = packed
        self._rising = rising

    def has(self, name: str) -> bool:
        """Whether there is a column ``name``."""
        return name in self._packed

    def rows(self, name: str) -> int:
        """How many rows a column says that it has."""
        return self._packed[name].rows if self.has(name) else 0

    def take(self, name: str, rows: int) -> I8:
        """Unpack the column ``name``; ValueError where it is not there with so many ``rows``."""
        if not self.has(name):
            raise ValueError("a column is lacking")
        column = unpack_column(self._packed[name], rows)
        return np.cumsum(column) if name in self._rising else column

    def narrow(self, name: str, rows: int) -> I4:
        """Unpack a column of numbers of 32 bits."""
        return narrowed(self.take(name, rows))


def is_too_large(columns: Mapping[str, PackedColumn], texts: int, size: int) -> bool:
    """Tell whether ``columns``, and so many bytes of ``texts``, are too much for ``size`` bytes.

    Columns of nothing but 0 take no bytes at all, however many rows they say that they have.
    """
    unpacked = _WIDEST * sum(column.rows for column in columns.values()) + texts
    return unpacked > _FREE + _MOST_PACKED * size


def narrowed(column: I8) -> I4:
    """Hold numbers in 32 bits; ValueError where one does not fit."""
    narrow = column.astype(np.int32)
    if (narrow != column).any():
        raise ValueError("a number is too large")
    return narrow


# Texts


class DeflatedTexts(msgspec.Struct, array_like=True, frozen=True):
    """Hold texts and what belongs to them, as msgpack that is deflated from ``size`` bytes."""

    size: int
    data: bytes


def as_wire(value: Any) -> Any:
    """``value`` with texts as bytes: names in files may have lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return list(map(as_wire, value)) if isinstance(value, tuple) else value


def as_plain(value: Any) -> Any:
    """Undo `as_wire`."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    return tuple(map(as_plain, value)) if isinstance(value, (list, tuple)) else value


def pack_texts(value: Any) -> DeflatedTexts:
    """Pack texts, as `as_wire` makes them, and what belongs to them."""
    raw = msgspec.msgpack.encode(value)
    return DeflatedTexts(len(raw), deflate(raw))
