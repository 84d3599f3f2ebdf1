"""Find which activities are alike in columns that their groups have, without looking at each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I8, Column, unique_rows
from flame.core.model.activities import Activities


def unique_by_group(table: Activities, rows: I8, columns: Sequence[Column]) -> tuple[I8, I8]:
    """Find the distinct ``rows`` of ``table`` by ``columns`` of its groups, as `unique_rows` does.

    Return the place in ``rows`` of the first of each kind, and the kind of each row.
    """
    _, kind = unique_rows(columns)
    found = kind[table.groups.of_row[rows]]
    used = np.zeros(len(kind), bool)
    used[found] = True
    if not used[: int(kind.max(initial=-1)) + 1].all():
        found = (np.cumsum(used) - 1)[found]
    first = np.empty(int(used.sum()), np.int64)
    first[found[::-1]] = np.arange(len(rows) - 1, -1, -1)
    return first, found
