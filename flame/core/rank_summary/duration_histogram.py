"""Count durations in bins of one relative width, whose sums are exact: DDSketch's mapping.

Bin b ≥ 0 holds the whole numbers v with GROWTH ** (b - 1) < v ≤ GROWTH ** b, bin -1 zeros. What
stands for a bin is within `ERROR` of all that it holds. See Masson, Rim and Lee, "DDSketch", 2019.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from flame.core.columns import F8, I8, Column

ERROR = 0.01
GROWTH = (1 + ERROR) / (1 - ERROR)

MOST_BIN = 2184
"""The bin of 2 ** 63 - 1."""

BINS = 1 << 16
"""More than there are bins, for keys of (group, bin)."""

_ZERO = -1


@cache
def bin_edges() -> I8:
    """List the largest number of each bin from 0 on, ascending, i8[MOST_BIN]; the last has none.

    They are exact, so that they are the same on every machine.
    """
    above, below, found = 1, 1, []
    for _ in range(MOST_BIN):
        found.append(above // below)
        above, below = above * 101, below * 99
    return np.array(found, np.int64)


def bins_of(values: I8) -> I8:
    """Find the bin of each of ``values``, which are not negative."""
    found = np.searchsorted(bin_edges(), values, side="left")
    return np.where(values > 0, found, _ZERO)


def middle_of(bins: Column) -> F8:
    """Compute what stands for each of ``bins``."""
    middle: F8 = np.where(bins < 0, 0.0, 2 * GROWTH ** np.maximum(bins, 0) / (GROWTH + 1))
    return middle
