"""Write speedscope files: a sampled profile per metric, for https://www.speedscope.app."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

import msgspec

from flame._version import __version__
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
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
from flame.exporters.stacks import encodable, fraction_digits, used_frames, weighed_stacks

# Measured with speedscope 1.25.0: 4,000 frames deep fails to load, 1 million stacks take minutes
# and 4 GB of the browser's memory.
DEPTH_LIMIT = 1_000
SAMPLE_LIMIT = 200_000

_UNITS: dict[str, ValueUnit] = {"ns": "nanoseconds", "count": "none", "bytes": "bytes"}


def write(profile: Profile, selection: Selection, file: BinaryIO, *, name: str) -> list[str]:
    """Write ``profile`` under ``selection``: a speedscope profile for each metric that is not zero.

    The selection's own metric comes first and is always there; the others measure the same
    activities on the same levels. ``name`` is what speedscope shows as the title. Returns warnings
    where the file goes beyond what speedscope opens well. Raises as `project.project`.
    """
    return _write(list(_trees(profile, selection)), file, name)


def write_tree(tree: StackTree, file: BinaryIO, name: str) -> list[str]:
    """Write ``tree`` alone, as a file of one profile; otherwise as `write`."""
    return _write([tree], file, name)


def _trees(profile: Profile, selection: Selection) -> Iterator[StackTree]:
    first = project(profile, selection)
    yield first
    for metric in profile.metrics:
        if metric.table == first.metric.table and metric != first.metric:
            tree = project(profile, replace(selection, metric=metric.key))
            if tree.own.any():
                yield tree


def _write(trees: Sequence[StackTree], file: BinaryIO, name: str) -> list[str]:
    frames: dict[SpeedscopeFrame, int] = {}
    profiles = [_sampled(tree, frames) for tree in trees]
    written = SpeedscopeFile(
        schema=SCHEMA,
        shared=SharedFrames(list(frames)),
        profiles=[*profiles],
        name=encodable(name),
        active_profile_index=0,
        exporter=f"flame@{__version__}",
    )
    file.write(msgspec.json.encode(written))
    return _warnings(profiles)


def _sampled(tree: StackTree, frames: dict[SpeedscopeFrame, int]) -> SampledProfile:
    """``tree`` as stacks of indices into ``frames``, which grows by the frames met first here."""
    used = used_frames(tree)
    index = {frame: frames.setdefault(_frame(tree, frame), len(frames)) for frame in used}
    samples: list[tuple[int, ...]] = []
    weights: list[float] = []
    parts = 10 ** fraction_digits(tree.metric.unit)
    for stack, weight in weighed_stacks(tree, index):
        samples.append(tuple(stack))
        weights.append(weight / parts if parts > 1 else weight)
    return SampledProfile(
        name=tree.metric.title,
        unit=_UNITS.get(tree.metric.unit, "none"),
        start_value=0,
        end_value=_sum(tree, parts),
        samples=samples,
        weights=weights,
    )


def _sum(tree: StackTree, parts: int) -> float:
    total = int(tree.own.sum())
    return total / parts if parts > 1 else total


def _frame(tree: StackTree, frame: int) -> SpeedscopeFrame:
    """The frame as speedscope has it: colours go by file, so that is the level of most frames."""
    known, name = tree.frames[frame], encodable(tree.text[frame])
    if known.kind in (Kind.PYTHON, Kind.SASS) and known.file:
        return SpeedscopeFrame(name, encodable(known.file), known.line or msgspec.UNSET)
    return SpeedscopeFrame(name, known.kind.title)


def _warnings(profiles: Sequence[SampledProfile]) -> list[str]:
    depth = max(max(map(len, profile.samples), default=0) for profile in profiles)
    count = max(len(profile.samples) for profile in profiles)
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
