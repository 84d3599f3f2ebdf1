"""Explain slow iterations: by what of their time they differ from the normal ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct, sum_by, taken
from flame.core.report.labels import PART_NAMES, innermost_ranges, labels_without_numbers, shown_as
from flame.core.report.program.iteration_measures import (
    LEADS,
    IterationColumns,
    work_of,
)
from flame.core.report.program.iteration_verdicts import Verdicts, median
from flame.core.report.scope import Scope

EXPLAINING = (*PART_NAMES, *LEADS)
"""What an iteration is explained by: its own parts, and the gap that it has ended."""

_TOLD = 0.8
"""Part of what an iteration takes longer that is told."""

MOST = 20
"""Iterations whose kernels are compared with those of the normal ones: those that take longest."""

_MOST_FRAMES = 5


class LongerParts(NamedTuple):
    """Hold by how much parts of slow iterations are longer than usual, i8[n], ns.

    ``row`` is the place of the iteration, ``part`` that in `EXPLAINING`; ``excess`` is how much
    longer the whole iteration is than the median. Largest first, by iteration.
    """

    row: I8
    part: I8
    longer: I8
    excess: I8


class LongerFrames(NamedTuple):
    """Say what a slow iteration has more of: a kernel below its innermost range, frames or -1.

    ``usual`` is how many of it a normal iteration has.
    """

    row: int
    kernel: int
    range: int
    longer: int
    number: int
    usual: float


def longer_parts(columns: IterationColumns, verdicts: Verdicts) -> LongerParts:
    """Compare the parts of slow iterations with the medians of the normal ones."""
    slow = np.flatnonzero(verdicts.slow)
    parts = np.concatenate([columns.parts, columns.lead])
    usual = np.array([median(part) for part in parts[:, verdicts.normal]], np.int64)
    longer = parts[:, slow] - usual[:, None]
    order = np.argsort(-longer, axis=0, kind="stable")
    longer = np.take_along_axis(longer, order, axis=0)
    excess = columns.period[slow] - (verdicts.statistics.p50 if verdicts.statistics else 0)
    before = np.cumsum(longer, axis=0) - longer
    place, rank = np.nonzero(((longer > 0) & (before < _TOLD * excess)).T)
    return LongerParts(slow[place], order[rank, place], longer[rank, place], excess[place])


def longer_frames(
    scope: Scope, columns: IterationColumns, verdicts: Verdicts, parts: LongerParts
) -> list[LongerFrames]:
    """Find what the iterations ran longer of than the normal ones, where that is most of it."""
    first = np.append(True, np.diff(parts.row) > 0)[: len(parts.row)]
    computing = parts.row[first & (parts.part == PART_NAMES.index("compute"))]
    computing = computing[np.argsort(-columns.period[computing], kind="stable")][:MOST]
    if not len(computing) or not verdicts.normal.any():
        return []
    work = _Work.of(scope, columns)
    usual = work.sums(verdicts.normal)
    return [one for row in sorted(computing.tolist()) for one in work.longer(row, usual)]


class _Sums(NamedTuple):
    """GPU time and number of activities by kind of work, of ``size`` iterations."""

    time: I8
    number: I8
    size: int


class _Work(NamedTuple):
    """Activities by the ``place`` of their iteration; ``key`` numbers kernels below ranges."""

    place: I8
    key: I8
    duration: I8
    kernel: I8
    range: I8

    @classmethod
    def of(cls, scope: Scope, columns: IterationColumns) -> _Work:
        table, labels = scope.profile.activities, labels_without_numbers(scope)
        order = np.argsort(columns.number)
        rows, place = work_of(scope, columns.number[order])
        groups = table.groups
        kernel = shown_as(labels, groups.frame)
        inside = shown_as(labels, innermost_ranges(scope.profile))
        keys, of_group = distinct((kernel << 32) | (inside & 0xFFFFFFFF))
        low = (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64)
        key = of_group[taken(groups.of_row, rows)]
        return cls(order[place], key, taken(table.duration, rows), keys >> 32, low)

    def sums(self, marks: Bool) -> _Sums:
        """Sum up the work of the iterations in ``marks``."""
        rows = np.flatnonzero(marks[self.place])
        size = len(self.kernel)
        time = sum_by(self.key[rows], self.duration[rows], size)
        return _Sums(time, np.bincount(self.key[rows], minlength=size), int(marks.sum()))

    def longer(self, row: int, usual: _Sums) -> Iterator[LongerFrames]:
        """List what the iteration at ``row`` has more of than ``usual``, most first."""
        rows = np.flatnonzero(self.place == row)
        size = len(self.kernel)
        time = sum_by(self.key[rows], self.duration[rows], size)
        count = np.bincount(self.key[rows], minlength=size)
        more = time - usual.time // usual.size
        for at in np.argsort(-more, kind="stable")[:_MOST_FRAMES].tolist():
            if more[at] > 0:
                expected = round(int(usual.number[at]) / usual.size, 2)
                kernel, inside = int(self.kernel[at]), int(self.range[at])
                yield LongerFrames(row, kernel, inside, int(more[at]), int(count[at]), expected)
