"""The speedscope file format as files have it, https://www.speedscope.app/file-format-schema.json.

Wider than the schema, which older versions and other tools' writers do not quite keep to.
"""

from __future__ import annotations

import json
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

Number = int | float


class Frame(Struct, frozen=True, gc=False):
    """A frame, referred to by its index."""

    name: str
    file: str | None = None
    line: Number | None = None


class Shared(Struct, frozen=True):
    """What all profiles of a file refer to."""

    frames: list[Frame]


class Event(Struct, frozen=True, gc=False):
    """A frame is entered (O) or left (C) at the value ``at``."""

    type: Literal["O", "C"]
    frame: int
    at: Number


class Evented(Struct, frozen=True, rename="camel", tag_field="type", tag="evented"):
    """A profile told as frames opened and closed."""

    unit: str
    events: list[Event]
    name: str = ""
    start_value: Number = 0


class Sampled(Struct, frozen=True, rename="camel", tag_field="type", tag="sampled"):
    """A profile told as stacks, outermost frame first, and the weight of each.

    ``samples`` are left as text: a list for each of a million stacks is most of the time and of the
    memory that reading a large file would take.
    """

    unit: str
    samples: Raw
    weights: list[Number]
    name: str = ""
    start_value: Number = 0


class File(Struct, frozen=True, rename="camel"):
    """A whole file."""

    shared: Shared
    profiles: list[Evented | Sampled]
    name: str | None = None
    active_profile_index: Number | None = None
    exporter: str | None = None
    schema: str | None | UnsetType = field(name="$schema", default=UNSET)


def decode(data: bytes) -> File:
    """The file that ``data`` is; ValueError, of one line, where it is none.

    What only Python's own decoder accepts (lone surrogates, which JavaScript writes, and control
    characters in names) is read as well, in three times the time.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if isinstance(error, msgspec.ValidationError) or (whole := _whole(data)) is None:
            raise ValueError(str(error)) from None
    return _DECODER.decode(whole)


_DECODER = msgspec.json.Decoder(File)


def _whole(data: bytes) -> bytes | None:
    """``data`` as strict JSON in valid UTF-8, None where it is no JSON at all."""
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None
