"""Declare the published speedscope format, https://www.speedscope.app/file-format-schema.json.

It is what flame writes. What it reads is declared more widely beside the reader: files in the wild
do not quite keep to the schema.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

Schema = Literal["https://www.speedscope.app/file-format-schema.json"]
SCHEMA: Schema = "https://www.speedscope.app/file-format-schema.json"

ValueUnit = Literal["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]


class SpeedscopeFrame(Struct, frozen=True):
    """Declare a frame, referred to by its index; ``line`` and ``col`` count from 1."""

    name: str
    file: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    col: int | UnsetType = UNSET


class SharedFrames(Struct, frozen=True):
    """Hold the frames that all profiles of a file refer to."""

    frames: list[SpeedscopeFrame]


class OpenFrameEvent(Struct, frozen=True, tag_field="type", tag="O"):
    """Enter a frame at the value ``at``."""

    frame: int
    at: float


class CloseFrameEvent(Struct, frozen=True, tag_field="type", tag="C"):
    """Leave the innermost open frame, which must be ``frame``, at the value ``at``."""

    frame: int
    at: float


class EventedProfile(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="evented"
):
    """Tell a profile as frames opened and closed, strictly nested, ``at`` never decreasing."""

    name: str
    unit: ValueUnit
    start_value: float
    end_value: float
    events: list[OpenFrameEvent | CloseFrameEvent]


class SampledProfile(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="sampled"
):
    """Tell a profile as stacks (frame indices, outermost first) and the weight of each.

    Stacks are tuples: the garbage collector lets go of tuples of numbers, and walks lists again and
    again (half of the time an export of a million stacks takes).
    """

    name: str
    unit: ValueUnit
    start_value: float
    end_value: float
    samples: list[tuple[int, ...]]
    weights: list[float]


class SpeedscopeFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """Declare a whole file. An ``active_profile_index`` without a profile shows a blank page."""

    schema: Schema = field(name="$schema")
    shared: SharedFrames
    profiles: list[EventedProfile | SampledProfile]
    name: str | UnsetType = UNSET
    active_profile_index: int | UnsetType = UNSET
    exporter: str | UnsetType = UNSET
