"""Decode the messages of a pprof profile into columns.

The schema is https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.stacks.pprof_wire import Field, NumberRuns, read_fields, read_number

Tick = Callable[[int], None]
"""Called with how many bytes have been read; may raise to stop."""

_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_COMMENT, _DEFAULT_TYPE = 13, 14
_LABEL = 3
_TICK = 1 << 20


@dataclass(frozen=True)
class Mapping:
    """A file that was mapped into memory, ``file`` as a string's number."""

    start: int
    offset: int
    file: int


@dataclass(frozen=True)
class Location:
    """A place in a program: lines as (function, line), the innermost inlined one first."""

    address: int
    mapping: int
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Function:
    """A function: numbers of the strings that are its name and its file."""

    name: int
    file: int


@dataclass
class PprofProfile:
    """A profile: samples as runs of numbers, and what these refer to, by id as text.

    Of texts Python's hash has a secret; a file can choose numbers so that all their hashes collide.

    ``types`` are the numbers of the strings that name what is measured, and its unit; ``comment``
    is that of what the writer says of it. Of samples
    the innermost location comes first.
    """

    types: list[tuple[int, int]] = field(default_factory=list)
    default_type: int = 0
    comment: int = 0
    strings: list[bytes] = field(default_factory=list)
    mappings: dict[str, Mapping] = field(default_factory=dict)
    locations: dict[str, Location] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    labels: int = 0
    _locations: NumberRuns = field(default_factory=NumberRuns)
    _values: NumberRuns = field(default_factory=NumberRuns)

    def build_samples(self) -> tuple[I8, I8, I8, I8]:
        """Return the locations of all samples, how many each has, and the same of values."""
        return *self._locations.build(), *self._values.build()

    def text(self, number: int) -> str:
        """Return a string; InputError where the file has none of that number."""
        if not 0 <= number < len(self.strings):
            count = len(self.strings)
            raise InputError(f"damaged: it names string {number:,} of {count:,}")
        return self.strings[number].decode("utf-8", "backslashreplace")

    def add_sample(self, data: bytes, field: Field) -> None:
        """Add the sample in the bytes of ``field``."""
        numbers: tuple[list[bytes], list[bytes]] = [], []
        for part in read_fields(data, field.begin, field.end):
            if part.number in (1, 2):
                numbers[part.number - 1].append(data[part.begin : part.end])
            elif part.number == _LABEL:
                self.labels += 1
        self._locations.add(numbers[0])
        self._values.add(numbers[1])


def decode_profile(data: bytes, tick: Tick) -> PprofProfile:
    """Decode a whole profile; InputError where it is damaged or cut off."""
    profile = PprofProfile()
    due = 0
    for one in read_fields(data, 0, len(data)):
        if one.begin >= due:
            tick(one.begin)
            due = one.begin + _TICK
        if one.number == _DEFAULT_TYPE:
            profile.default_type = one.value or 0
        elif one.number == _COMMENT and one.value is None and one.end > one.begin:
            profile.comment, _ = read_number(data, one.begin, one.end)
        elif one.value is None:
            _decode_part(profile, data, one)
    return profile


def _decode_part(profile: PprofProfile, data: bytes, one: Field) -> None:
    if one.number == _SAMPLE:
        profile.add_sample(data, one)
    elif one.number == _STRING:
        profile.strings.append(data[one.begin : one.end])
    elif one.number == _LOCATION:
        _add_location(profile, data, one)
    elif one.number == _FUNCTION:
        numbers = _numbers(data, one)
        profile.functions[str(numbers.get(1, 0))] = Function(
            numbers.get(2, 0) or numbers.get(3, 0), numbers.get(4, 0)
        )
    elif one.number == _MAPPING:
        numbers = _numbers(data, one)
        place = Mapping(numbers.get(2, 0), numbers.get(4, 0), numbers.get(5, 0))
        profile.mappings[str(numbers.get(1, 0))] = place
    elif one.number == _SAMPLE_TYPE:
        numbers = _numbers(data, one)
        profile.types.append((numbers.get(1, 0), numbers.get(2, 0)))


def _add_location(profile: PprofProfile, data: bytes, one: Field) -> None:
    numbers: dict[int, int] = {}
    lines = []
    for part in read_fields(data, one.begin, one.end):
        if part.value is not None:
            numbers[part.number] = part.value
        elif part.number == 4:
            line = _numbers(data, part)
            lines.append((line.get(1, 0), line.get(2, 0)))
    location = Location(numbers.get(3, 0), numbers.get(2, 0), tuple(lines))
    profile.locations[str(numbers.get(1, 0))] = location


def _numbers(data: bytes, one: Field) -> dict[int, int]:
    """The numbers in a message, by field."""
    parts = read_fields(data, one.begin, one.end)
    return {part.number: part.value for part in parts if part.value is not None}
