"""Keep of a run what comparing with it needs: frames, stacks and groups, with their sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, sum_by, unique_rows
from flame.core.compare.kept.base_file import KeptFrame, KeptGroups
from flame.core.frame import Frame, Kind
from flame.core.model.activities import NONE
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackTable
from flame.core.names.phases import TELLING, told_phase
from flame.core.projection.weights import Weights

_STACKS = ("python", "native", "nvtx")
_FRAMES = ("launch", "frame")

_NOT_KEPT = ("mangled", "detail", "strides", "values")
"""What is known of frames, and of no use to a comparison: of details the phase alone is kept."""


class KeptTable(NamedTuple):
    """Hold frames, stacks and groups as they are kept.

    ``of_group`` i8[groups] is the place of each group of the trace among those that are kept,
    which differ in more than where they ran.
    """

    frames: list[KeptFrame]
    stack_parent: list[int]
    stack_frame: list[int]
    groups: KeptGroups
    iterations: list[int]
    of_group: I8

    def sums(self, weights: Weights) -> tuple[list[int], list[int]]:
        """Sum up ``weights`` of the trace's groups: (values, numbers of activities)."""
        size = len(self.groups.kind)
        value, count = (
            sum_by(self.of_group, column.astype(np.int64), size).tolist() for column in weights
        )
        return value, count


def keep_table(profile: Profile, used: Bool) -> KeptTable:
    """Keep the groups of the activities of ``profile`` that are ``used``, bool[groups]."""
    table = profile.activities
    groups, rows = table.groups, np.flatnonzero(used)
    names = ("kind", "launched", *_STACKS, *_FRAMES)
    columns = {name: getattr(groups, name)[rows] for name in names}
    first, place = unique_rows([*columns.values()])
    of_group = np.full(len(groups), NONE, np.int64)
    of_group[rows] = place
    kept = {name: column[first] for name, column in columns.items()}
    stack_of, parent, stack_frame = _keep_stacks(table.stacks, [kept[name] for name in _STACKS])
    frame_of, frames = _keep_frames(profile, [stack_frame, *(kept[name] for name in _FRAMES)])
    kept |= {name: stack_of[kept[name]] for name in _STACKS}
    kept |= {name: frame_of[kept[name]] for name in _FRAMES}
    kept["launched"] = kept["launched"].astype(np.int64)
    iterations = frame_of[profile.iterations.frames]
    return KeptTable(
        frames,
        parent.tolist(),
        frame_of[stack_frame].tolist(),
        KeptGroups(**{name: column.tolist() for name, column in kept.items()}),
        iterations[iterations >= 0].tolist(),
        of_group,
    )


def _keep_stacks(table: StackTable, ends: list[Column]) -> tuple[I8, I8, Column]:
    """Keep the stacks that end in ``ends``: (place of every stack, their parents, their frames)."""
    wanted = np.zeros(len(table), bool)
    wanted[0] = True
    for column in ends:
        wanted[column] = True
    for rows in reversed([*table.by_depth()]):
        wanted[table.parent[rows[wanted[rows]]]] = True
    stacks = np.flatnonzero(wanted)
    place = np.cumsum(wanted) - 1
    parent = np.append(NONE, place[table.parent[stacks[1:]]])  # the empty stack has none
    return place, parent, table.frame[stacks]


def _keep_frames(profile: Profile, columns: list[Column]) -> tuple[I4, list[KeptFrame]]:
    """Keep the frames in ``columns``: (place of every frame, -1 for none, and what they are)."""
    wanted = np.zeros(len(profile.frames) + 1, bool)
    for column in columns:
        wanted[column] = True
    wanted[-1] = False
    place = np.where(wanted, np.cumsum(wanted) - 1, NONE).astype(np.int32)
    return place, [_kept_frame(profile.frames[frame]) for frame in np.flatnonzero(wanted).tolist()]


def _kept_frame(frame: Frame) -> KeptFrame:
    marks = [pair for pair in frame.extra if pair[0] not in _NOT_KEPT]
    phase = told_phase(frame.name, frame.get("detail")) if frame.kind == Kind.NVTX else ""
    if phase and not told_phase(frame.name, ""):
        marks.append(("detail", TELLING[phase]))
    return KeptFrame(int(frame.kind), frame.name, frame.file, frame.line, marks)
