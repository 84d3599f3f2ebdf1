"""Find stacks whose memory grows from step to step: candidates for leaks.

What lives at the end is no leak by itself: weights, states of optimizers and caches do. So growth
is looked for, at the ends of steps, and in what was allocated since the first of them: states of an
optimizer appear in the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I8, sum_by, unique_rows
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
    table = table.take(table.begin > boundaries[0])
    first, stack = unique_rows([table.python, table.native])
    sizes = np.array([_alive_by_stack(table, stack, len(first), at) for at in boundaries])
    steps = np.diff(sizes, axis=0)
    often = 3 * (steps > 0).sum(axis=0) >= 2 * len(steps)
    grown = sizes[-1] - sizes[0]
    found = np.flatnonzero((steps >= 0).all(axis=0) & often & (grown >= _LEAST_GROWTH))
    order = found[np.argsort(-grown[found], kind="stable")]
    return tuple(_growths(table, first[order[:_MOST]], sizes[:, order[:_MOST]]))


def _alive_by_stack(table: Allocations, stack: I8, number: int, position: int) -> I8:
    alive = table.alive_at(position)
    return sum_by(stack[alive], table.size[alive], number)


def _growths(table: Allocations, rows: I8, sizes: I8) -> Iterator[Growth]:
    for row, series in zip(rows.tolist(), sizes.T.tolist(), strict=True):
        yield Growth(int(table.python[row]), int(table.native[row]), tuple(series))
