"""Make the profile of a kept run: its frames, stacks and groups with their sums, and no rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from flame.core.columns import I4, I8
from flame.core.compare.kept.base_file import KeptDurations, KeptPart, KeptRunData, KeptSteps
from flame.core.errors import InputError
from flame.core.frame import Frame, Kind
from flame.core.model.activities import NONE, Activities, Groups, off_gpu_columns, repeat
from flame.core.model.frames import FrameBuilder
from flame.core.model.grouping import add_grouping
from flame.core.model.iterations import Iterations, no_iterations
from flame.core.model.lazy_rows import KnownSums
from flame.core.model.meta import GraphNodes, Meta
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackTable

MEASURED = METRICS[:2]
"""What is kept: GPU time, and the number of activities."""

_STACKS = ("python", "native", "nvtx")
_FRAMES = ("launch", "frame")


def kept_profile(data: KeptRunData, part: KeptPart) -> Profile:
    """Make the profile of a ``part`` of a run; InputError where its numbers do not fit."""
    check_part(data, part)
    frames, ids = _frames(data)
    grouping = add_grouping(frames, (), (), (), np.zeros(0, np.int32))
    stacks = StackTable.of_links(
        np.array(data.stack_parent, np.int32), ids[np.array(data.stack_frame, np.int64)]
    )
    table = _table(data, ids, stacks)
    total, count = (np.array(column, np.int64) for column in (part.total, part.count))
    iterations = _iterations(ids[data.iterations])
    return Profile(
        frames=frames.build(),
        activities=table,
        processes=(),
        threads=(),
        devices=(),
        grouping=grouping,
        meta=Meta(format="kept base"),
        begin=0,
        end=data.facts.duration,
        graph_nodes=GraphNodes(data.facts.nodes),
        warnings=(),
        host_builder=partial(_same, table),
        own_metrics=MEASURED,
        timed=False,
        known=KnownSums({"gpu": total, "count": count}, count, tuple, iterations),
    )


def _same(table: Activities) -> Activities:
    return table


def check_part(data: KeptRunData, part: KeptPart) -> None:
    """Check that all places are there, and that columns are as long as others; else InputError."""
    groups, size = data.groups, len(data.groups.kind)
    columns = [getattr(groups, name) for name in ("launched", *_STACKS, *_FRAMES)]
    columns += [part.total, part.count]
    fits = all(len(column) == size for column in columns)
    fits &= all(max(getattr(groups, name), default=0) < len(data.stack_parent) for name in _STACKS)
    fits &= all(max(getattr(groups, name), default=0) < len(data.frames) for name in _FRAMES)
    fits &= max(data.iterations, default=0) < max(len(data.frames), 1)
    fits &= all(frame.kind < len(Kind) for frame in data.frames)
    fits &= all(kind < len(Kind) for kind in groups.kind) and _is_trie(data)
    fits &= sum(part.total) < 1 << 62 and sum(part.count) < 1 << 62
    fits &= data.steps is None or _steps_fit(data.steps, size)
    fits &= part.durations is None or _durations_fit(part.durations, size)
    if not fits:
        raise InputError("the kept base does not hold together: keep it again")


def _steps_fit(steps: KeptSteps, groups: int) -> bool:
    fits = len(steps.step) == len(steps.group) == len(steps.total)
    fits &= max(steps.step, default=-1) < len(steps.period)
    fits &= max(steps.group, default=-1) < groups
    return fits and sum(steps.period) + sum(steps.total) < 1 << 62


def _durations_fit(durations: KeptDurations, groups: int) -> bool:
    fits = len(durations.group) == len(durations.ns) == len(durations.count)
    fits &= max(durations.group, default=-1) < groups
    return fits and sum(durations.count) < 1 << 62


def _is_trie(data: KeptRunData) -> bool:
    """Whether the stacks begin with the empty one, and parents stand before their children."""
    parent, frame = data.stack_parent, data.stack_frame
    if len(parent) != len(frame) or parent[:1] != [NONE] or frame[:1] != [NONE]:
        return False
    above = np.array(parent[1:], np.int64)
    below = (above >= 0) & (above < np.arange(1, len(parent)))
    there = np.array(frame[1:], np.int64)
    return bool(below.all() and ((there >= 0) & (there < len(data.frames))).all())


def _frames(data: KeptRunData) -> tuple[FrameBuilder, I4]:
    """Add the frames of a run, and say which id each has; the last is of none (-1)."""
    frames = FrameBuilder()
    ids = [
        frames.add(Frame(Kind(one.kind), one.name, one.file, one.line, tuple(one.marks)))
        for one in data.frames
    ]
    return frames, np.array([*ids, NONE], np.int32)


def _table(data: KeptRunData, ids: I4, stacks: StackTable) -> Activities:
    groups, size = data.groups, len(data.groups.kind)
    columns = {name: np.array(getattr(groups, name), np.int32) for name in _STACKS}
    columns |= {name: ids[np.array(getattr(groups, name), np.int64)] for name in _FRAMES}
    kind, launched = np.array(groups.kind, np.uint8), np.array(groups.launched, bool)
    no_row = np.zeros(0, np.int64)
    table = Activities(
        **off_gpu_columns(0), kind=kind[:0], start=no_row, duration=no_row, stacks=stacks
    )
    off = off_gpu_columns(size)
    unknown = {name: off[name] for name in ("process", "thread", "device", "stream", "stack")}
    table.__dict__["groups"] = Groups(
        repeat(np.int32(0), 0), kind, **unknown, **columns, launched=launched
    )
    return table


def _iterations(frames: I8 | I4) -> Iterations:
    none = no_iterations()
    return Iterations(
        none.source,
        none.number,
        none.process,
        none.thread,
        none.start,
        none.end,
        none.frame,
        np.asarray(frames, np.int64),
    )
