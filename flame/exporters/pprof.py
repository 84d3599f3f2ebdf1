"""Write profiles of pprof, compressed: for ``go tool pprof``, Pyroscope, Parca and speedscope.

The format: https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from flame._version import __version__
from flame.core.columns import unique
from flame.core.files.packed_output import open_gzip
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.selection import Selection
from flame.core.units import FLOP
from flame.exporters.protobuf import data, number, packed, varint
from flame.exporters.stacks import NO_NAME, encodable, fraction_digits, metric_trees, weighed_stacks

# Fields of the message Profile, and of those in it.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _TEXTS = 1, 2, 3, 4, 5, 6
_TIME, _DURATION, _COMMENT, _DEFAULT_SAMPLE_TYPE = 9, 10, 13, 14
_TYPE, _UNIT = 1, 2
_LOCATIONS, _VALUES = 1, 2
_ID, _FILE_OF_MAPPING, _HAS_FUNCTIONS, _HAS_FILES, _HAS_LINES = 1, 5, 7, 8, 9
_MAPPING_OF_LOCATION, _LINE = 2, 4
_FUNCTION_OF_LINE, _LINE_NUMBER = 1, 2
_NAME, _SYSTEM_NAME, _FILE, _FIRST_LINE = 2, 3, 4, 5

_ONLY_MAPPING = 1
"""All frames are of one: without any, pprof looks for the program to find names by addresses."""

_UNITS = {"ns": "nanoseconds", FLOP: "count"}


class _Place(NamedTuple):
    """A frame as pprof tells them apart: its file is the level of all but code."""

    name: str
    file: str
    line: int


def write(
    profile: Profile,
    selection: Selection,
    file: BinaryIO,
    *,
    name: str,
    first: StackTree,
) -> list[str]:
    """Write ``profile`` under ``selection``: a kind of sample for each metric that is not zero.

    ``first``, the tree of ``selection``, is what pprof shows unless it is told otherwise; the
    others measure the same activities on the same levels. ``name`` is that of the program that was
    profiled. Returns notes for the user. Raises as `project.project`.
    """
    return write_trees(metric_trees(profile, selection, first), profile, file, name)


def write_trees(
    trees: Sequence[StackTree], profile: Profile, file: BinaryIO, name: str
) -> list[str]:
    """Write ``trees``, of one selection of ``profile``, as one file; otherwise as `write`."""
    texts = _Texts()
    with open_gzip(file) as packing:
        for tree in trees:
            packing.write(data(_SAMPLE_TYPE, _value_type(tree, texts)))
        packing.write(number(_DEFAULT_SAMPLE_TYPE, texts.number(trees[0].metric.key)))
        packing.write(data(_MAPPING, _mapping(texts.number(name))))
        places = _Places(trees[0])
        for sample in _samples(trees, places):
            packing.write(sample)
        for place, identity in places.known.items():
            packing.write(data(_LOCATION, _location(identity, place)))
            packing.write(data(_FUNCTION, _function(identity, place, texts)))
        packing.write(_times(profile) + data(_COMMENT, varint(texts.number(_comment(trees)))))
        for text in texts.known:
            packing.write(data(_TEXTS, text.encode()))
    return [*map(_scaled, filter(_digits, trees))]


class _Texts:
    """Numbers the texts of a file; that without any letter is 0, as the format wants it."""

    def __init__(self) -> None:
        self.known = {"": 0}

    def number(self, text: str) -> int:
        return self.known.setdefault(encodable(text), len(self.known))


class _Places:
    """Numbers the frames of ``tree`` from 1 on; equal ones have the same number."""

    def __init__(self, tree: StackTree) -> None:
        self.known: dict[_Place, int] = {}
        self._tree = tree
        self._number: dict[int, bytes] = {}

    def add(self, frames: Sequence[int]) -> None:
        """Number those of ``frames`` that are new."""
        for frame in frames:
            if frame not in self._number:
                place = _place(self._tree, frame)
                self._number[frame] = varint(self.known.setdefault(place, len(self.known) + 1))

    def spell(self, frames: Sequence[int]) -> Iterator[bytes]:
        """Encode the numbers of ``frames``."""
        return map(self._number.__getitem__, frames)


def _place(tree: StackTree, frame: int) -> _Place:
    known, name = tree.frames[frame], tree.text[frame] or NO_NAME
    if known.kind in (Kind.PYTHON, Kind.SASS) and known.file:
        return _Place(name, known.file, known.line)
    return _Place(name, known.kind.title, 0)


def _samples(trees: Sequence[StackTree], places: _Places) -> Iterator[bytes]:
    """Encode each stack, the innermost frame first, with its value in every tree."""
    values: dict[bytes, list[int]] = {}
    for column, tree in enumerate(trees):
        for stack, value in _stacks(tree, places):
            if len(trees) == 1:  # There may be millions: none is kept.
                yield _sample(stack, [value])
            else:
                values.setdefault(stack, [0] * len(trees))[column] += value
    yield from map(_sample, values.keys(), values.values())


def _stacks(tree: StackTree, places: _Places) -> Iterator[tuple[bytes, int]]:
    places.add(unique(tree.frame[1:]).tolist())
    spelled = weighed_stacks(tree, lambda frames: places.spell(frames.tolist()))
    return ((b"".join(stack[::-1]), value) for stack, value in spelled)


def _sample(stack: bytes, values: list[int]) -> bytes:
    return data(_SAMPLE, data(_LOCATIONS, stack) + packed(_VALUES, values))


def _value_type(tree: StackTree, texts: _Texts) -> bytes:
    unit = "count" if _digits(tree) else _UNITS.get(tree.metric.unit, tree.metric.unit)
    return number(_TYPE, texts.number(tree.metric.key)) + number(_UNIT, texts.number(unit))


def _mapping(name: int) -> bytes:
    said = (_HAS_FUNCTIONS, _HAS_FILES, _HAS_LINES)
    known = b"".join(number(field, 1) for field in said)
    return number(_ID, _ONLY_MAPPING) + number(_FILE_OF_MAPPING, name) + known


def _location(identity: int, place: _Place) -> bytes:
    line = number(_FUNCTION_OF_LINE, identity) + number(_LINE_NUMBER, place.line)
    return number(_ID, identity) + number(_MAPPING_OF_LOCATION, _ONLY_MAPPING) + data(_LINE, line)


def _function(identity: int, place: _Place, texts: _Texts) -> bytes:
    name = texts.number(place.name)
    names = number(_NAME, name) + number(_SYSTEM_NAME, name)
    where = number(_FILE, texts.number(place.file)) + number(_FIRST_LINE, place.line)
    return number(_ID, identity) + names + where


def _times(profile: Profile) -> bytes:
    """When the recording began, where the trace tells the time of day, and how long it was."""
    origin = profile.meta.origin
    began = number(_TIME, origin + profile.begin) if origin is not None else b""
    return began + number(_DURATION, profile.duration)


def _comment(trees: Sequence[StackTree]) -> str:
    return f"flame {__version__}: {', '.join(trees[0].levels)}"


def _digits(tree: StackTree) -> int:
    return fraction_digits(tree.metric.unit)


def _scaled(tree: StackTree) -> str:
    times = 10 ** _digits(tree)
    return f"{tree.metric.title}: times {times:,}, as pprof has whole numbers only"
