"""Decode the speedscope file format, https://www.speedscope.app/file-format-schema.json.

Wider than the schema, which older versions and other tools' writers do not quite keep to.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct

from flame.core.errors import InputError

Number = int | float
Index = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]

_LONGEST_REASON = 200  # it may quote the file


class InputFrame(Struct, frozen=True, gc=False):
    """A frame, referred to by its index."""

    name: str
    file: str | None = None
    line: Number | None = None


class InputShared(Struct, frozen=True):
    """The frames that all profiles of a file refer to."""

    frames: list[InputFrame]


class InputEvent(Struct, frozen=True, gc=False):
    """A frame is entered (O) or left (C) at the value ``at``."""

    type: Literal["O", "C"]
    frame: Index
    at: Number


class EventedInput(Struct, frozen=True, rename="camel", tag_field="type", tag="evented"):
    """A profile as frames opened and closed."""

    unit: str
    events: list[InputEvent]
    name: str = ""
    start_value: Number = 0


class SampledInput(Struct, frozen=True, rename="camel", tag_field="type", tag="sampled"):
    """A profile as stacks, outermost frame first, and the weight of each.

    ``samples`` stay text here: a list for each of a million stacks is most of the time and of the
    memory that it takes to decode a large file.
    """

    unit: str
    samples: Raw
    weights: list[Number]
    name: str = ""
    start_value: Number = 0


class SpeedscopeInput(Struct, frozen=True, rename="camel"):
    """A whole speedscope file."""

    shared: InputShared
    profiles: list[EventedInput | SampledInput]
    active_profile_index: Number | None = None
    exporter: str | None = None

    @property
    def shown(self) -> int:
        """The index of the profile that is shown first."""
        return int(self.active_profile_index or 0)


_Decoded = TypeVar("_Decoded")
_DECODER = msgspec.json.Decoder(SpeedscopeInput)


def decode_file(data: bytes) -> SpeedscopeInput:
    """Decode the file in ``data``; InputError where it is none."""
    return decode_json(_DECODER, data.removeprefix(b"\xef\xbb\xbf"))


def decode_json(decoder: msgspec.json.Decoder[_Decoded], data: bytes) -> _Decoded:
    """Decode ``data``; InputError where it is not what is wanted.

    What only Python's own decoder takes (lone surrogates, which JavaScript writes, control
    characters, bytes that are no UTF-8) is read too, though slower and with those replaced.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise InputError(str(error)[:_LONGEST_REASON]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        repaired = _repair(data)
        if repaired is None:
            raise InputError(f"damaged or cut off: {error}") from None
    return decode_json(decoder, repaired)


def _repair(data: bytes) -> bytes | None:
    """Return ``data`` as strict JSON in UTF-8, None where it is no JSON for Python either."""
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
        strict = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return strict.encode("utf-8", "replace")
