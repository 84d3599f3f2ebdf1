"""PC samples per activity: those of many launches spread over them in proportion to time."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, runs


def spread_over_rows(of_row: I4, totals: I8, weight: I8) -> I8:
    """``totals`` (i8[d]) spread over the rows of each, in proportion to ``weight``, i8[rows].

    ``of_row`` i4[rows] says which total a row is of, -1 for none. What each row has ends where the
    sum up to it, rounded down, does: so that all rows of one have its total exactly. Rows that
    weigh nothing together have equal parts.
    """
    found = np.zeros(len(of_row), np.int64)
    rows = np.flatnonzero(of_row >= 0)
    rows = rows[np.argsort(of_row[rows], kind="stable")]
    if not len(rows):
        return found
    first = runs(of_row[rows])
    size = np.diff(np.append(first, len(rows)))
    heavy = np.add.reduceat(weight[rows], first) > 0
    own = np.where(np.repeat(heavy, size), weight[rows], 1)
    up_to = np.cumsum(own)
    before = np.repeat(up_to[first] - own[first], size)
    part = (up_to - before) / np.repeat(np.add.reduceat(own, first), size)
    whole = totals[of_row[rows]]
    # Products of rising parts do not fall; but a float may be above a total of more than 53 bits.
    ends = np.minimum(np.floor(whole * part).astype(np.int64), whole)
    ends[first + size - 1] = whole[first]
    begins = np.concatenate([[0], ends[:-1]])
    begins[first] = 0
    found[rows] = ends - begins
    return found
