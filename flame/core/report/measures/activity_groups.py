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
    group = table.groups.of_row[rows]
    place = np.full(len(table.groups), len(rows))  # of the first row of each group
    place[group[::-1]] = np.arange(len(rows) - 1, -1, -1)
    used = np.flatnonzero(place < len(rows))
    some, kind_of_used = unique_rows([column[used] for column in columns])
    kind = np.zeros(len(table.groups), np.int64)
    kind[used] = kind_of_used
    first = np.full(len(some), len(rows))
    np.minimum.at(first, kind_of_used, place[used])
    return first, kind[group]
