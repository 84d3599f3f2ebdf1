"""The published speedscope file format, https://www.speedscope.app/file-format-schema.json."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

Schema = Literal["https://www.speedscope.app/file-format-schema.json"]
SCHEMA: Schema = "https://www.speedscope.app/file-format-schema.json"

Unit = Literal["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]


class Frame(Struct, frozen=True):
    """A frame, referred to by its index in `Shared`; ``line`` and ``col`` count from 1."""

    name: str
    file: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    col: int | UnsetType = UNSET


class Shared(Struct, frozen=True):
    """What all profiles of a file refer to."""

    frames: list[Frame]


class OpenFrame(Struct, frozen=True, tag_field="type", tag="O"):
    """A frame is entered at the value ``at``."""

    frame: int
    at: float


class CloseFrame(Struct, frozen=True, tag_field="type", tag="C"):
    """The innermost open frame, which must be ``frame``, is left at the value ``at``."""

    frame: int
    at: float


class Evented(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="evented"):
    """A profile told as frames opened and closed, strictly nested, ``at`` never decreasing."""

    name: str
    unit: Unit
    start_value: float
    end_value: float
    events: list[OpenFrame | CloseFrame]


class Sampled(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="sampled"):
    """A profile told as stacks (frame indices, outermost first) and the weight of each.

    Stacks are tuples: the garbage collector lets go of tuples of numbers, and walks lists again and
    again (half of the time an export of a million stacks takes).
    """

    name: str
    unit: Unit
    start_value: float
    end_value: float
    samples: list[tuple[int, ...]]
    weights: list[float]


class File(Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole file. An ``active_profile_index`` without a profile shows a blank page."""

    schema: Schema = field(name="$schema")
    shared: Shared
    profiles: list[Evented | Sampled]
    name: str | UnsetType = UNSET
    active_profile_index: int | UnsetType = UNSET
    exporter: str | UnsetType = UNSET
