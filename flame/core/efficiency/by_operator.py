"""Tell the work by operator, and by the shapes that operators were given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.efficiency.sums import count_operators
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
    counts = count_operators(profile, rows)
    return None if counts is None else by_operator(profile, counts, shapes)


def by_operator(profile: Profile, counts: WorkCounts, shapes: bool = False) -> OperatorRows:
    """Add up ``counts``, as `count_operators` makes them, by operator, or by ``shapes``, too."""
    assert profile.work is not None
    sized = np.array([*profile.work.costs], np.int64)
    place, first = (np.arange(len(sized)),) * 2 if shapes else _by_name(profile, sized)
    sums = counts.map(lambda column: sum_by(place, column[sized], len(first)))
    order = np.argsort(-sums.covered_ns, kind="stable")
    order = order[sums.covered[order] > 0]
    listed = (profile.frames[at] for at in sized[first[order]].tolist())
    frames = tuple(
        frame if shapes else frame._replace(name=fold_indices(frame.name)) for frame in listed
    )
    return OperatorRows(frames, sums.map(lambda column: column[order]))


def rows_of_operator(profile: Profile, rows: I8, name: str) -> I8:
    """Choose those of ``rows`` of the activities that are of operators shown as ``name``."""
    assert profile.work is not None
    frames = [at for at in profile.work.costs if fold_indices(profile.frames[at].name) == name]
    return rows[np.isin(profile.work.operator[rows], frames)]


def _by_name(profile: Profile, frames: I8) -> tuple[I8, I8]:
    """The row of each of ``frames`` by its name, and which of them is the first of each row."""
    names = [profile.frames[at].name for at in frames.tolist()]
    folded = {name: fold_indices(name) for name in set(names)}
    rows = {name: row for row, name in enumerate(dict.fromkeys(folded[one] for one in names))}
    place = np.array([rows[folded[name]] for name in names], np.int64)
    return place, np.flatnonzero(np.diff(np.maximum.accumulate(place), prepend=-1))
