"""Siblings stand in order, whatever order nodes come in."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.projection.tree_builder import sort_siblings
from tests.support.profiles.recorded import i8

FEW = st.integers(0, 3)
NODES = st.lists(st.tuples(FEW, st.integers(0, 9), st.integers(-3, 3), FEW), min_size=1)


def sorted_by(parent: I8, keys: Sequence[I8]) -> list[int]:
    """What `sort_siblings` finds, in full."""
    order = sort_siblings(parent, keys)
    return list(range(len(parent))) if order is None else order.tolist()


def in_order(nodes: Sequence[tuple[int, ...]]) -> list[int]:
    """By (frame, total, key, parent), the last of which counts most."""
    return sorted(range(len(nodes)), key=lambda at: nodes[at][::-1])


@given(NODES, st.booleans(), st.booleans())
@example([(0, 5, 0, 1), (0, 3, 0, 1)], True, False)
@example([(0, 3, 0, 1), (0, 5, 0, 2), (1, 4, 0, 1), (1, 5, 0, 1)], True, True)
def test_siblings_are_in_order(
    nodes: list[tuple[int, int, int, int]], by_parent: bool, by_frame: bool
) -> None:
    rows = [(frame, -total, key, parent) for parent, frame, key, total in nodes]
    if by_frame:
        rows.sort(key=lambda row: row[0])
    if by_parent:
        rows.sort(key=lambda row: row[3])
    frame, total, key, parent = (i8(*(row[column] for row in rows)) for column in range(4))
    assert sorted_by(parent, [frame, total, key]) == in_order(rows)
    without = [(frame, total, parent) for frame, total, _, parent in rows]
    assert sorted_by(parent, [frame, total]) == in_order(without)
