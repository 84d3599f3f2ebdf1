"""Decode extended payloads of NVTX, which a schema describes: structures of numbers.

Types of entries are of NVTX's `nvToolsExtPayload.h`; those from 2**24 on are schemas, and
enumerations, that a program has registered itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_TYPES = {5: "<i", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q"}
"""int, int32, uint32, int64, uint64 and size_t, of programs of 64 bits."""

_REGISTERED = 1 << 24
_ENUM = "<i"
"""How C stores an enumeration whose values fit an int."""


class Entry(NamedTuple):
    """Describe a number: what it is called, of what type it is, and where it stands, bytes."""

    label: str
    type: int
    offset: int


class Schema(NamedTuple):
    """Describe a payload of ``size`` bytes, by the numbers in it."""

    size: int
    entries: Sequence[Entry]


def decode_payload(data: bytes, schema: Schema, enums: Sequence[str]) -> Mapping[str, int] | None:
    """Decode the numbers in ``data`` by label; None where it is not as long as the schema says.

    Entries of other types are left out; of those that a program registered, all but those whose
    labels are among ``enums``. So are entries that reach beyond the end.
    """
    if len(data) != schema.size:
        return None
    found = {}
    for label, kind, offset in schema.entries:
        form = _ENUM if kind >= _REGISTERED and label in enums else _TYPES.get(kind)
        if form and 0 <= offset <= len(data) - struct.calcsize(form):
            (found[label],) = struct.unpack_from(form, data, offset)
    return found
