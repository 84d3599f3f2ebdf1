"""Encode messages of Protocol Buffers: the two wire types that a profile of pprof is made of.

The format: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterable

_SIGN = 1 << 64
_SHORT = tuple(bytes((value,)) for value in range(0x80))
_LENGTH = 2  # The wire type of what has its length before it.


def varint(value: int) -> bytes:
    """Encode an int64, seven bits a byte, the lowest first; one below zero takes ten bytes."""
    if 0 <= value <= 0x7F:
        return _SHORT[value]
    if value < 0:
        value += _SIGN
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """Encode the ``field`` as an int64; nothing where it is 0, as proto3 has it."""
    return varint(field << 3) + varint(value) if value else b""


def data(field: int, value: bytes) -> bytes:
    """Encode the ``field`` as bytes: a text in UTF-8, a message, or numbers that are packed."""
    return varint(field << 3 | _LENGTH) + varint(len(value)) + value


def packed(field: int, values: Iterable[int]) -> bytes:
    """Encode the repeated ``field`` as int64 numbers one behind another."""
    return data(field, b"".join(map(varint, values)))
