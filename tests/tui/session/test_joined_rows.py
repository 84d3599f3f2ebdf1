"""Which row every frame is shown in, with any chains open."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.chains import find_chains
from flame.core.model.tree import StackTree
from flame.tui.session.anchors import OpenPaths, Stretch, opened_at, paths_of
from flame.tui.session.joined_rows import ALL_CLOSED, ALL_OPEN, JoinedRows, OpenChains
from flame.tui.session.row_layout import RowLayout
from tests.tui.trees import chained_trees, node, python, random_trees, stack_tree


@st.composite
def joined(draw: st.DrawFn) -> JoinedRows:
    """The rows of a tree with some of its chains open."""
    tree = draw(chained_trees)
    first = find_chains(tree).first.tolist()
    but = draw(st.frozensets(st.sampled_from(first))) if first else frozenset()
    return JoinedRows(tree, OpenChains(draw(st.booleans()), but))


def slow_first(rows: JoinedRows, one: int) -> int:
    """The first frame of the closed chain that ``one`` is in, or itself."""
    chain = rows.chains.around(one).tolist()
    is_open = bool(chain) and rows.opened.everything != (chain[0] in rows.opened.but)
    return chain[0] if chain and not is_open else one


def slow_number(rows: JoinedRows, one: int) -> int:
    """How many rows there are above that of ``one``."""
    above = {slow_first(rows, step) for step in rows.tree.path(one)}
    return len(above) - 1


@given(joined())
def test_a_row_is_as_deep_as_there_are_rows_above(rows: JoinedRows) -> None:
    nodes = range(len(rows.tree))
    assert rows.first.tolist() == [slow_first(rows, one) for one in nodes]
    assert rows.number.tolist() == [slow_number(rows, one) for one in nodes]


@given(joined())
def test_every_row_holds_its_frames_left_to_right_and_no_two_above_one_another(
    rows: JoinedRows,
) -> None:
    shown = [one for one in range(len(rows.tree)) if slow_first(rows, one) == one]
    assert [row.tolist() for row in rows.rows] == [
        [one for one in shown if slow_number(rows, one) == number]
        for number in range(len(rows.rows))
    ]
    layout = RowLayout(rows.tree, rows)
    for number in range(len(rows.rows)):
        row = layout.row(number)
        assert (row.high[:-1] <= row.low[1:]).all()


@given(joined(), st.data())
def test_a_mark_in_a_closed_chain_marks_its_row(rows: JoinedRows, data: st.DataObject) -> None:
    size = len(rows.tree)
    marks = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    expected = [False] * size
    for one in range(size):
        expected[slow_first(rows, one)] |= marks[one]

    assert rows.marked(np.array(marks)).tolist() == expected


@given(joined())
def test_what_is_open_is_found_again_by_path(rows: JoinedRows) -> None:
    assert opened_at(JoinedRows(rows.tree), paths_of(rows)) == rows.opened


@given(joined(), chained_trees)
def test_open_paths_mean_something_in_any_tree(rows: JoinedRows, other: StackTree) -> None:
    opened = opened_at(JoinedRows(other), paths_of(rows))
    assert opened.everything == rows.opened.everything
    assert set(opened.but) <= set(find_chains(other).first.tolist())


@given(random_trees)
def test_without_chains_rows_are_depths(tree: StackTree) -> None:
    for opened in (ALL_CLOSED, ALL_OPEN):
        assert JoinedRows(tree, opened).number.tolist() == tree.depth.tolist()


def test_a_chain_that_has_lost_an_end_or_grown_is_the_same() -> None:
    a, b, c, d, e = map(python, "abcde")
    before = stack_tree({(a, b, c, d): 100})
    paths = paths_of(JoinedRows(before, OpenChains(but=frozenset({1}))))
    assert paths == OpenPaths(but=(Stretch(1, ("a", "b", "c", "d")),))
    for after, first in (
        (stack_tree({(a, b, c, d): 100, (a, e): 50}), ("a", "b")),
        (stack_tree({(a, b, c, d): 100, (a, b, c, e): 50}), ("a",)),
        (stack_tree({(a, b, c, d, e): 100}), ("a",)),
    ):
        assert opened_at(JoinedRows(after), paths).but == {node(after, *first)}
