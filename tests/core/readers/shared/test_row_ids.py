"""Ids of rows of numbers, whatever these are."""

from __future__ import annotations

import numpy as np

from flame.core.columns import Column
from flame.core.model.activities import NONE
from flame.core.readers.shared.row_ids import RowIds
from tests.support.generated.colliding import colliding_rows


def test_each_row_is_made_once_with_its_numbers() -> None:
    made: list[tuple[int, ...]] = []

    def make(*row: int) -> int:
        made.append(row)
        return len(made) - 1

    ids = RowIds(make)
    columns: list[Column] = [np.array([3, 3, -1]), np.array([4, 4, 1 << 63], np.uint64)]
    assert ids.look_up(columns).tolist() == [made.index((3, 4))] * 2 + [made.index((-1, 1 << 63))]
    assert ids.look_up([column[:1] for column in columns]).tolist() == [ids.get(3, 4)]
    assert (len(made), ids.get(4, 3)) == (2, NONE)


def test_rows_whose_hashes_collide_are_looked_up_by_other_hashes() -> None:
    rows = colliding_rows(100)
    assert len(set(map(hash, rows))) == 1
    ids = RowIds(lambda first, second: first)
    assert ids.look_up([np.array(rows)[:, 0], np.array(rows)[:, 1]]).tolist() == [
        first for first, _ in rows
    ]
    assert len(set(map(hash, ids._ids))) == len(rows)
