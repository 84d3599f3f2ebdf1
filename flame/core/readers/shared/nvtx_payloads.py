"""Decode extended payloads of NVTX, which a schema describes: structures of numbers.

Types of entries are of NVTX's `nvToolsExtPayload.h`; those from 2**24 on are schemas, and
enumerations, that a program has registered itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

_TYPES = {5: "<i", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q"}
"""int, int32, uint32, int64, uint64 and size_t, of programs of 64 bits."""

_REGISTERED = 1 << 24
_ENUM = "<i"
"""How C stores an enumeration whose values fit an int."""


class PayloadEntry(NamedTuple):
    """Describe a number: what it is called, of what type it is, and where it stands, bytes."""

    label: str
    type: int
    offset: int


class _Number(NamedTuple):
    """A number in a payload: where it begins and ends, how `struct` reads it, how it is called."""

    begin: int
    end: int
    form: str
    label: str


class Schema(NamedTuple):
    """Describe a payload of ``size`` bytes, by the numbers in it."""

    size: int
    numbers: Sequence[_Number]


def build_schema(size: int, entries: Iterable[PayloadEntry], enums: Sequence[str]) -> Schema | None:
    """Build the schema of payloads of ``size`` bytes, once for all of them.

    None where entries lie on one another. Those of other types are left out; of those that a
    program registered, all but those whose labels are among ``enums``. So are entries that reach
    beyond the end: what remains is no more than a payload has room for.
    """
    numbers = sorted(
        _Number(entry.offset, entry.offset + struct.calcsize(form), form, entry.label)
        for entry in entries
        if (form := _form(entry, enums)) and entry.offset >= 0
    )
    if any(before.end > after.begin for before, after in pairwise(numbers)):
        return None
    return Schema(size, [number for number in numbers if number.end <= size])


def decode_payload(data: bytes, schema: Schema) -> Mapping[str, int] | None:
    """Decode the numbers in ``data`` by label.

    None where there are none, or it is not as long as the schema says.
    """
    if len(data) != schema.size:
        return None
    numbers = schema.numbers
    return {one.label: struct.unpack_from(one.form, data, one.begin)[0] for one in numbers} or None


def _form(entry: PayloadEntry, enums: Sequence[str]) -> str | None:
    """How `struct` reads the entry; None where that is not known."""
    is_enum = entry.type >= _REGISTERED and entry.label in enums
    return _ENUM if is_enum else _TYPES.get(entry.type)
