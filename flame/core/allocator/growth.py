"""Find stacks whose memory grows from step to step: candidates for leaks.

What lives at the end is no leak by itself: weights, states of optimizers and caches do. So growth
is looked for, at the ends of steps, and in what was allocated since the first of them: states of an
optimizer appear in the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I8, unique_rows
from flame.core.model.allocator.allocations import Allocations
from flame.core.model.allocator.recorded import Growth

LEAST_BOUNDARIES = 3
_LEAST_GROWTH = 1 << 20
_MOST = 50


def find_growth(table: Allocations, boundaries: Sequence[int]) -> tuple[Growth, ...]:
    """Find the stacks of a device's ``table`` that grow; the most grown first.

    ``boundaries`` are events, at least `LEAST_BOUNDARIES`. From each to the next the bytes of a
    stack never fall, and grow in two of three steps at least, by 1 MiB in all.
    """
    if len(boundaries) < LEAST_BOUNDARIES:
        return ()
    steps = len(boundaries) - 1
    table = _of_often_used(table.take(table.begin > boundaries[0]), steps)
    first, stack = unique_rows([table.python, table.native])
    sizes = _alive_by_stack(table, stack, len(first), np.array(boundaries, np.int64))
    changes = np.diff(sizes, axis=0)
    often = 3 * (changes > 0).sum(axis=0) >= 2 * steps
    grown = sizes[-1] - sizes[0]
    found = np.flatnonzero((changes >= 0).all(axis=0) & often & (grown >= _LEAST_GROWTH))
    order = found[np.argsort(-grown[found], kind="stable")]
    return tuple(_growths(table, first[order[:_MOST]], sizes[:, order[:_MOST]]))


def _of_often_used(table: Allocations, steps: int) -> Allocations:
    """The allocations of stacks that have as many as it takes to grow in two of three ``steps``.

    There are few of these where there are many steps: what is worked out next is not more than
    the table is.
    """
    first, stack = unique_rows([table.python, table.native])
    count = np.bincount(stack, minlength=len(first))
    return table.take(3 * count[stack] >= 2 * steps)


def _alive_by_stack(table: Allocations, stack: I8, number: int, boundaries: I8) -> I8:
    """How many bytes of each stack live at each of ``boundaries``, i8[boundaries, stacks]."""
    changes = np.zeros((len(boundaries) + 1, number), np.int64)
    np.add.at(changes, (np.searchsorted(boundaries, table.begin), stack), table.size)
    np.subtract.at(changes, (np.searchsorted(boundaries, table.end), stack), table.size)
    alive: I8 = changes.cumsum(axis=0)[:-1]
    return alive


def _growths(table: Allocations, rows: I8, sizes: I8) -> Iterator[Growth]:
    for row, series in zip(rows.tolist(), sizes.T.tolist(), strict=True):
        yield Growth(int(table.python[row]), int(table.native[row]), tuple(series))
