"""Totals and percentiles per name count recursion once."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis import frame_totals as stats
from flame.core.analysis.distribution import distribution
from flame.core.analysis.frame_totals import frame_totals, outermost_by_frame, percentiles
from flame.core.analysis.node_activities import NodeActivities
from flame.core.model.frames import Kind
from tests.support.profiles.frame_rows import FrameRow, frame_rows
from tests.support.profiles.recorded import Path, stack_tree

PATHS = [path for depth in range(1, 5) for path in itertools.product("abc", repeat=depth)]
values = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 1_000), max_size=8)
activities = st.lists(
    st.tuples(st.sampled_from(PATHS), st.integers(0, 2**62)), min_size=1, max_size=60
)


def test_recursion_is_counted_once() -> None:
    tree = stack_tree({("f",): 1, ("f", "g", "f"): 10, ("f", "g"): 100})
    assert frame_rows(tree) == [
        FrameRow("f", Kind.NVTX, 111, 11, 3),
        FrameRow("g", Kind.NVTX, 110, 100, 2),
    ]


@given(values)
def test_a_name_holds_the_values_of_all_stacks_with_it(own: dict[Path, int]) -> None:
    rows = {row.name: row for row in frame_rows(stack_tree(own))}
    assert set(rows) == {name for path in own for name in path}
    for name, row in rows.items():
        holding = [value for path, value in own.items() if name in path]
        assert row.total == sum(holding)
        assert row.count == sum(value > 0 for value in holding)
        assert row.own == sum(value for path, value in own.items() if path[-1] == name)


@given(values)
def test_outermost_nodes_have_no_ancestor_of_their_name(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    expected = [node for node in range(len(tree)) if tree.name(node) not in tree.names(node)[:-1]]
    nodes, frames = outermost_by_frame(tree)
    assert np.sort(nodes).tolist() == expected
    assert frames.tolist() == tree.frame[nodes].tolist()


def test_an_empty_tree_has_no_names() -> None:
    assert frame_rows(stack_tree({})) == []


def test_places_are_counted_with_recursion() -> None:
    found = frame_totals(stack_tree({("f",): 1, ("f", "g", "f"): 10, ("h", "f"): 100}))
    assert found.places.tolist() == [3, 1, 1]
    assert found.total.tolist() == [111, 100, 10]
    assert len(found) == 3


def members_of(rows: list[tuple[Path, int]]) -> NodeActivities:
    """``rows``, (path, value) of every activity, below the nodes of their tree."""
    tree = stack_tree({path: 1 for path, _ in rows})
    node = np.array([tree.find(path) for path, _ in rows])
    order = np.argsort(node, kind="stable")
    return NodeActivities(tree, order, np.searchsorted(node[order], np.arange(len(tree) + 1)))


def check_percentiles(rows: list[tuple[Path, int]]) -> None:
    members = members_of(rows)
    tree, of_rows = members.tree, np.array([value for _, value in rows], np.int64)
    frames = frame_totals(tree).frame
    found = percentiles(members, of_rows, frames)
    columns = zip(found.p50, found.p95, found.p99, found.maximum, strict=True)
    for frame, row in zip(frames.tolist(), columns, strict=True):
        below = [value for path, value in rows if tree.text[frame] in path]
        one = distribution(np.array(below, np.int64))
        assert one
        assert list(map(int, row)) == [one.p50, one.p95, one.p99, one.maximum]


@given(activities)
def test_percentiles_are_those_of_all_activities_below_a_name(rows: list[tuple[Path, int]]) -> None:
    check_percentiles(rows)


@given(rows=activities)
def test_percentiles_do_not_depend_on_how_many_are_sorted_at_a_time(
    rows: list[tuple[Path, int]],
) -> None:
    before, stats._AT_A_TIME = stats._AT_A_TIME, 1
    try:
        check_percentiles(rows)
    finally:
        stats._AT_A_TIME = before


def test_a_frame_without_activities_has_no_percentiles() -> None:
    tree = stack_tree({("f",): 1, ("g",): 1})
    members = NodeActivities(tree, np.array([0]), np.array([0, 0, 1, 1]))
    only = percentiles(members, np.array([7]), frame_totals(tree).frame)
    assert [only.p50.tolist(), only.maximum.tolist()] == [[7, 0], [7, 0]]
