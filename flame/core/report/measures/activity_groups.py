"""Find which activities are alike in columns that their groups have, without looking at each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I8, Column, taken, unique_rows
from flame.core.kept_results import kept
from flame.core.model.activities import NONE, Activities


def unique_by_group(table: Activities, rows: I8, columns: Sequence[Column]) -> tuple[I8, I8]:
    """Find the distinct ``rows`` of ``table`` by ``columns`` of its groups, as `unique_rows` does.

    These ascend. Return the place in ``rows`` of the first of each kind, and the kind of each row.
    """
    first, kind = kinds_of_groups(table, rows, columns)
    return first, kind[taken(table.groups.of_row, rows)]


def kinds_of_groups(table: Activities, rows: I8, columns: Sequence[Column]) -> tuple[I8, I8]:
    """Find the same, and the kind of each group of ``table``; -1 of those that have no rows."""
    place = _first_of_all(table) if len(rows) == len(table) else _first_places(table, rows)
    used = np.flatnonzero(place < len(rows))
    some, kind_of_used = unique_rows([column[used] for column in columns])
    kind = np.full(len(table.groups), NONE, np.int64)
    kind[used] = kind_of_used
    first = np.full(len(some), len(rows))
    np.minimum.at(first, kind_of_used, place[used])
    return first, kind


@kept
def _first_of_all(table: Activities) -> I8:
    return _first_places(table, np.arange(len(table)))


def _first_places(table: Activities, rows: I8) -> I8:
    """The place in ``rows`` of the first of each group, their number where there is none."""
    group = taken(table.groups.of_row, rows)
    place = np.full(len(table.groups), len(rows))
    place[group[::-1]] = np.arange(len(rows) - 1, -1, -1)
    return place
