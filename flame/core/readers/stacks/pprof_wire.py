"""Decode protobuf's wire format, as far as pprof's profile.proto has it.

https://protobuf.dev/programming-guides/encoding: fields of a message are numbered, in any order,
and a repeated number is one run of bytes or several fields. Decoded here and not by the package
protobuf: its parser makes an object of every sample and number (1 GB for 10 million locations),
and generated code is tied to a major version of it. The schema has four messages with nothing but
numbers, texts and messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, U1
from flame.core.errors import InputError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a number of 64 bits, 7 in each."""

_SIGN = 1 << 63


class Field(NamedTuple):
    """A field of a message: its number, and where its bytes begin and end.

    ``value`` is that of a number, None of bytes.
    """

    number: int
    begin: int
    end: int
    value: int | None


def read_fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in ``data`` from ``at`` to ``end``; InputError if cut off."""
    while at < end:
        tag, at = read_number(data, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, after = read_number(data, at, end)
            yield Field(number, at, after, value - 2 * _SIGN if value >= _SIGN else value)
        elif kind in (_BYTES, _FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                length, at = read_number(data, at, end)
            after = at + length
            if after > end:
                raise InputError(f"damaged, or cut off at byte {at:,}")
            yield Field(number, at, after, None)
        else:
            raise InputError(f"damaged at byte {at:,}")
        at = after


def read_number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at ``at``, of 64 bits, and where it ends."""
    value = 0
    for place in range(at, min(at + _LONGEST, end)):
        byte = data[place]
        value |= (byte & 0x7F) << 7 * (place - at)
        if byte < 0x80:
            return value & (2 * _SIGN - 1), place + 1
    raise InputError(f"damaged, or cut off at byte {at:,}")


class NumberRuns:
    """Numbers of many messages: what each has as one run of bytes, or as several fields."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._sizes: list[int] = []

    def add(self, pieces: list[bytes]) -> None:
        """Add the numbers of the next message."""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces.append(piece)
        self._sizes.append(len(piece))

    def build(self) -> tuple[I8, I8]:
        """Return all numbers, i8[n], and how many of them each message has, i8[messages]."""
        data: U1 = np.frombuffer(b"".join(self._pieces), np.uint8)
        stops = np.cumsum(np.array(self._sizes, np.int64))
        is_last = data < 0x80
        whole = stops[np.array(self._sizes, np.int64) > 0]
        if not is_last[whole - 1].all():
            raise InputError("damaged: a number is cut off")
        ended = np.concatenate([[0], np.cumsum(is_last)])
        counts: I8 = np.diff(ended[np.concatenate([[0], stops])])
        return _decode_varints(data, np.flatnonzero(is_last)), counts


def _decode_varints(data: U1, last: I8) -> I8:
    """Decode numbers that stand one after another; ``last`` are the places of their last bytes."""
    if not len(last):
        return np.zeros(0, np.int64)
    first = np.concatenate([[0], last[:-1] + 1])
    lengths = last - first + 1
    if lengths.max() > _LONGEST:
        raise InputError("damaged: a number of more than 64 bits")
    shift = np.arange(len(data)) - np.repeat(first, lengths)
    parts = (data & 0x7F).astype(np.uint64) << (7 * shift).astype(np.uint64)
    values: I8 = np.bitwise_or.reduceat(parts, first).view(np.int64)
    return values
