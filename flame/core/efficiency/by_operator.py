"""Tell the work by operator, and by the shapes that operators were given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.efficiency.sums import of_rows
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.frame import Frame
from flame.core.model.profile import Profile
from flame.core.names.rename import fold_indices


class OperatorRows(NamedTuple):
    """Hold the work by operator: ``frames``, each with its row of ``counts``, most time first.

    By name each frame stands for all operators that are called so, layers of a model for those
    that differ only in their number; else they differ in shapes, types or values, too.
    """

    frames: tuple[Frame, ...]
    counts: WorkCounts


def work_by_operator(
    profile: Profile, rows: I8 | None = None, shapes: bool = False
) -> OperatorRows | None:
    """Add up the work of ``rows`` of the activities (all: None) by operator, or by ``shapes``, too.

    None where nothing tells of work.
    """
    work = profile.work
    if work is None:
        return None
    chosen = np.flatnonzero(work.operator >= 0) if rows is None else rows[work.operator[rows] >= 0]
    place, first = _places(profile, shapes)
    of_row = place[work.operator[chosen]]
    sums = of_rows(profile).map(lambda column: sum_by(of_row, column[chosen], len(first)))
    order = np.argsort(-sums.covered_ns, kind="stable")
    order = order[sums.covered[order] > 0]
    listed = (profile.frames[first[at]] for at in order.tolist())
    frames = tuple(
        frame if shapes else frame._replace(name=fold_indices(frame.name)) for frame in listed
    )
    return OperatorRows(frames, sums.map(lambda column: column[order]))


def rows_of_operator(profile: Profile, rows: I8, name: str) -> I8:
    """Choose those of ``rows`` of the activities that are of operators shown as ``name``."""
    assert profile.work is not None
    frames = [at for at in profile.work.costs if fold_indices(profile.frames[at].name) == name]
    return rows[np.isin(profile.work.operator[rows], frames)]


def _places(profile: Profile, shapes: bool) -> tuple[I8, list[int]]:
    """The row of each frame that has a cost, and the first frame of each row."""
    assert profile.work is not None
    place = np.zeros(len(profile.frames), np.int64)
    rows, first = dict[object, int](), list[int]()
    for frame in profile.work.costs:
        key = frame if shapes else fold_indices(profile.frames[frame].name)
        place[frame] = rows.setdefault(key, len(rows))
        if place[frame] == len(first):
            first.append(frame)
    return place, first
