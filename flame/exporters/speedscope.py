"""Write speedscope files: a sampled profile per metric, for https://www.speedscope.app."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

import msgspec
import numpy as np

from flame._version import __version__
from flame.core.columns import I4, Column, unique
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.labels import PackedTexts
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters.speedscope_format import (
    SCHEMA,
    SampledProfile,
    SharedFrames,
    SpeedscopeFile,
    SpeedscopeFrame,
    ValueUnit,
)
from flame.exporters.stacks import encodable, fraction_digits, metric_trees, weighed_stacks

# Measured with speedscope 1.25.0: 4,000 frames deep fails to load, 1 million stacks take minutes
# and 4 GB of the browser's memory.
DEPTH_LIMIT = 1_000
SAMPLE_LIMIT = 200_000

_PACKED_KIND = Kind.FRAME.title
_AT_ONCE = 1 << 14
"""Frames, stacks or values that are objects at the same time."""

_UNITS: dict[str, ValueUnit] = {"ns": "nanoseconds", "count": "none", "bytes": "bytes"}


def write(
    profile: Profile,
    selection: Selection,
    file: BinaryIO,
    *,
    name: str,
    first: StackTree | None = None,
) -> list[str]:
    """Write ``profile`` under ``selection``: a speedscope profile for each metric that is not zero.

    The selection's own metric comes first and is always there; the others measure the same
    activities on the same levels, but for those that are made only when they are asked for.
    ``name`` is what speedscope shows as the title. ``first`` is the tree of ``selection`` where it
    is there already. Returns warnings where the file goes beyond what speedscope opens well. Raises
    as `project.project`.
    """
    if first is None:
        first = project(profile, selection)
    return _write(metric_trees(profile, selection, first), file, name)


def write_tree(tree: StackTree, file: BinaryIO, name: str) -> list[str]:
    """Write ``tree`` alone, as a file of one profile; otherwise as `write`."""
    return _write([tree], file, name)


def write_trees(trees: Mapping[str, StackTree], file: BinaryIO, name: str) -> list[str]:
    """Write ``trees``, which have their frames in common, as profiles of these names."""
    titled = [
        replace(tree, metric=replace(tree.metric, title=title)) for title, tree in trees.items()
    ]
    return _write(titled, file, name)


def _write(trees: Sequence[StackTree], file: BinaryIO, name: str) -> list[str]:
    """Write piece by piece: a million stacks as objects are 40 times what they are in the file."""
    frames = _FrameNumbers(trees)
    outline = SpeedscopeFile(
        schema=SCHEMA,
        shared=SharedFrames([]),
        profiles=[],
        name=encodable(name),
        active_profile_index=0,
        exporter=f"flame@{__version__}",
    )
    before, frames_key, rest = msgspec.json.encode(outline).partition(b'"frames":[')
    between, profiles_key, after = rest.partition(b'"profiles":[')
    file.write(before + frames_key)
    _write_items(file, frames.written())
    file.write(between + profiles_key)
    for number, tree in enumerate(trees):
        file.write(b"," * (number > 0))
        _write_profile(file, tree, frames.number)
    file.write(after)
    return _warnings(trees)


def _write_items(file: BinaryIO, items: Iterable[object]) -> None:
    """Write the items of an array, some at a time."""
    rest, separator = iter(items), b""
    while some := list(islice(rest, _AT_ONCE)):
        file.write(separator + msgspec.json.encode(some)[1:-1])
        separator = b","


def _write_profile(file: BinaryIO, tree: StackTree, number: I4) -> None:
    """Write ``tree`` as stacks of the ``number`` of each frame."""
    parts = 10 ** fraction_digits(tree.metric.unit)
    outline = SampledProfile(
        name=tree.metric.title,
        unit=_UNITS.get(tree.metric.unit, "none"),
        start_value=0,
        end_value=_sum(tree, parts),
        samples=[],
        weights=[],
    )
    file.write(msgspec.json.encode(outline).removesuffix(b'],"weights":[]}'))
    spelled = weighed_stacks(tree, lambda frames: number[frames].tolist())
    _write_items(file, (tuple(stack) for stack, _ in spelled))
    file.write(b'],"weights":[')
    values = _values(tree)
    _write_items(file, (value / parts for value in values) if parts > 1 else values)
    file.write(b"]}")


def _values(tree: StackTree) -> Iterator[int]:
    """The values of the stacks, in their order."""
    own = tree.own[tree.own != 0]
    for low in range(0, len(own), _AT_ONCE):
        yield from own[low : low + _AT_ONCE].tolist()


class _FrameNumbers:
    """Numbers the frames of ``trees``, which are of one profile, in the order they are met there.

    ``number`` is that of each frame id, -1 for others; equal frames have the same.
    """

    def __init__(self, trees: Sequence[StackTree]) -> None:
        self._tree = trees[0]
        self.number: I4 = np.full(len(self._tree.frames), -1, np.int32)
        self._known: dict[SpeedscopeFrame, int] = {}
        self._written: list[Column] = []
        size = 0
        for tree in trees:
            used = unique(tree.frame[1:])
            size = self._add(used[self.number[used] < 0], size)

    def _add(self, frames: Column, size: int) -> int:
        """Number new ``frames`` from ``size`` on; return the next number."""
        first = frames.copy()
        text = self._tree.text
        unique = text.is_packed[frames] if isinstance(text, PackedTexts) else False
        for place in np.flatnonzero(np.broadcast_to(~np.asarray(unique), frames.shape)).tolist():
            frame = int(frames[place])
            first[place] = self._known.setdefault(_frame(self._tree, frame), frame)
        new = frames[first == frames]
        self.number[new] = np.arange(size, size + len(new))
        self.number[frames] = self.number[first]
        self._written.append(new)
        return size + len(new)

    def written(self) -> Iterator[SpeedscopeFrame]:
        """Make the frames in the order of their numbers."""
        tree, text = self._tree, self._tree.text
        for frames in self._written:
            for frame in frames:
                if isinstance(text, PackedTexts) and text.is_packed[frame]:
                    yield SpeedscopeFrame(text.frames.name(frame), _PACKED_KIND)
                else:
                    yield _frame(tree, int(frame))


def _sum(tree: StackTree, parts: int) -> float:
    total = int(tree.own.sum())
    return total / parts if parts > 1 else total


def _frame(tree: StackTree, frame: int) -> SpeedscopeFrame:
    """The frame as speedscope has it: colours go by file, so that is the level of most frames."""
    known, name = tree.frames[frame], encodable(tree.text[frame])
    if known.kind in (Kind.PYTHON, Kind.SASS) and known.file:
        return SpeedscopeFrame(name, encodable(known.file), known.line or msgspec.UNSET)
    return SpeedscopeFrame(name, known.kind.title)


def _warnings(trees: Sequence[StackTree]) -> list[str]:
    depth = max(int(tree.depth[tree.own != 0].max(initial=0)) for tree in trees)
    count = max(np.count_nonzero(tree.own) for tree in trees)
    warnings = []
    if depth > DEPTH_LIMIT:
        warnings.append(
            f"stacks of up to {depth:,} frames: speedscope may fail to open more than "
            f"{DEPTH_LIMIT:,}; choose fewer levels"
        )
    if count > SAMPLE_LIMIT:
        warnings.append(
            f"{count:,} stacks: speedscope gets slow above {SAMPLE_LIMIT:,}; "
            "choose fewer levels or a part of the trace"
        )
    return warnings
