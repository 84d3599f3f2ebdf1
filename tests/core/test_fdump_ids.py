"""What the ids in a dump lead to, and what a damaged one says twice."""

from __future__ import annotations

import numpy as np

from flame.core.readers.fdump.ids import ABSENT, Ids


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_rows_are_found_by_id_in_whatever_order_they_are() -> None:
    ids = Ids(column(7, 3, 9), [column(1, 2, 3)])
    assert ids.of(column(3, 9, 7, 3)).tolist() == [1, 2, 0, 1]


def test_zero_and_unknown_ids_lead_nowhere() -> None:
    ids = Ids(column(0, 4), [column(1, 2)])
    assert ids.of(column(0, 5, 4)).tolist() == [ABSENT, ABSENT, 1]
    assert len(ids) == 1


def test_of_different_rows_with_one_id_none_is_believed() -> None:
    ids = Ids(column(1, 2, 2, 3, 3), [column(5, 6, 6, 7, 8), column(0, 0, 0, 0, 0)])
    one, repeated, contradictory = ids.of(column(1, 2, 3)).tolist()
    assert one == 0
    assert repeated in (1, 2)
    assert contradictory == ABSENT


def test_rows_that_differ_in_one_column_contradict_each_other() -> None:
    ids = Ids(column(2, 2), [column(6, 6), column(0, 1)])
    assert ids.of(column(2)).tolist() == [ABSENT]
