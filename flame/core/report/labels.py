"""Name the processes, threads and frames of a trace in the tables of a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.labels import Labels
from flame.core.projection.number_folds import labels_of
from flame.core.report.scope import Scope
from flame.core.report.table import Place
from flame.core.timeline.idle_parts import IdleCause

PART_NAMES = (
    *("compute", "communication, exposed", "copies, alone"),
    *(f"idle: {cause.title}" for cause in IdleCause),
)
"""What the parts of the time of a GPU are called, in the order in which they are shown."""


def process_labels(profile: Profile) -> list[str]:
    """Name each process: by its file where that has no other, of several files."""
    many = len(profile.sources) > 1
    alone = Counter(process.source for process in profile.processes)
    return [
        profile.sources[process.source].label
        if many and alone[process.source] == 1
        else profile.frames[int(frame)].name
        for process, frame in zip(profile.processes, profile.grouping.process, strict=True)
    ]


def frame_place(scope: Scope, level: str, frame: int) -> Place | None:
    """Say where ``frame`` of ``level`` stands, with kernels below; None without a frame (-1)."""
    if frame < 0:
        return None
    levels = (level,) if level == "kernel" else (level, "kernel")
    return Place(levels, (scope.labels.text[frame],))


def labels_without_numbers(scope: Scope) -> Labels:
    """Name frames as the tree of ``scope`` does, but as one where many differ only in numbers."""
    naming = replace(scope.selection.naming, numbers=True)
    return labels_of(scope.profile, naming, scope.profile.activities)


def innermost_ranges(profile: Profile) -> I4:
    """Find the innermost range of each group of activities, i4[groups] frames; -1 without one.

    Ranges that stand for iterations do not count: each may have a name of its own.
    """
    kinds = profile.frames.kind
    ids = np.where(kinds == Kind.NVTX, np.arange(len(kinds)), NONE).astype(np.int32)
    ids[profile.iterations.frames] = NONE
    table = profile.activities
    return table.stacks.innermost(ids)[table.groups.nvtx]


def shown_as(labels: Labels, frames: Column) -> I8:
    """Look up what each of ``frames`` is shown as; -1 stays."""
    shown: I8 = np.append(labels.shown, np.int32(NONE))[frames].astype(np.int64)
    return shown
