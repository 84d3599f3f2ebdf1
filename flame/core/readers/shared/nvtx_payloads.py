"""Decode extended payloads of NVTX, which a schema describes: structures of numbers.

Types of entries are of NVTX's `nvToolsExtPayload.h`; those from 2**24 on are schemas, and
enumerations, that a program has registered itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
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


class Schema(NamedTuple):
    """Describe a payload of ``size`` bytes, by the numbers in it."""

    size: int
    entries: Sequence[PayloadEntry]


def decode_payload(data: bytes, schema: Schema, enums: Sequence[str]) -> Mapping[str, int] | None:
    """Decode the numbers in ``data`` by label.

    None where there are none, it is not as long as the schema says, or they lie on one another.
    Entries of other types are left out; of those that a program registered, all but those whose
    labels are among ``enums``. So are entries that reach beyond the end.
    """
    placed = sorted(
        (entry.offset, entry.offset + struct.calcsize(form), form, entry.label)
        for entry in schema.entries
        if (form := _form(entry, enums)) and entry.offset >= 0
    )
    overlap = any(before[1] > after[0] for before, after in pairwise(placed))
    if overlap or len(data) != schema.size:
        return None
    inside = [one for one in placed if one[1] <= len(data)]
    return {label: struct.unpack_from(form, data, at)[0] for at, _, form, label in inside} or None


def _form(entry: PayloadEntry, enums: Sequence[str]) -> str | None:
    """How `struct` reads the entry; None where that is not known."""
    is_enum = entry.type >= _REGISTERED and entry.label in enums
    return _ENUM if is_enum else _TYPES.get(entry.type)
