"""The columnar tree, against plain dictionaries of paths."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import Kind
from tests.support.profiles.recorded import Path, leaves, stack_tree

PATHS = [path for depth in range(4) for path in itertools.product("abc", repeat=depth)]
values = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 1 << 40), max_size=8)

TREE = {("a",): 5, ("a", "b"): 10, ("a", "c"): 30, ("d",): 40, (): 2}


def below(own: dict[Path, int], path: Path) -> int:
    """Sum of ``own`` at ``path`` and below."""
    return sum(value for at, value in own.items() if at[: len(path)] == path)


@given(values)
def test_own_values_survive_the_layout(own: dict[Path, int]) -> None:
    assert leaves(stack_tree(own)) == {path: value for path, value in own.items() if value}


@given(values)
def test_the_total_of_a_node_is_the_sum_of_its_subtree(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    for node in range(len(tree)):
        assert tree.total[node] == below(own, tree.names(node))


@given(values)
def test_the_count_of_a_node_is_the_number_of_activities_below(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    ones = {path: int(value > 0) for path, value in own.items()}
    for node in range(len(tree)):
        assert tree.count[node] == below(ones, tree.names(node))


@given(values)
def test_nodes_stand_in_preorder(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    for node, (parent, end) in enumerate(zip(tree.parent, tree.end, strict=True)):
        inside = [other for other in range(len(tree)) if node in tree.path(other)]
        assert inside == list(range(node, end))
        assert parent < node
        assert tree.depth[node] == len(tree.names(node))


@given(values)
def test_children_come_widest_first(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    for node in range(len(tree)):
        children = tree.children(node)
        assert children == np.flatnonzero(tree.parent == node).tolist()
        totals = tree.total[children].tolist()
        assert totals == sorted(totals, reverse=True)


@given(values)
def test_left_edges_lay_children_side_by_side_after_the_own_value(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    for node in range(len(tree)):
        at = tree.x[node] + tree.own[node]
        for child in tree.children(node):
            assert tree.x[child] == at
            at += tree.total[child]
        assert at == tree.x[node] + tree.total[node]


def test_rows_hold_the_nodes_of_each_depth_left_to_right() -> None:
    tree = stack_tree(TREE)
    named = [[tree.name(node) for node in row.tolist()] for row in tree.rows]
    assert named == [["all"], ["a", "d"], ["c", "b"]]


def test_the_root_alone_is_a_tree() -> None:
    tree = stack_tree({})
    assert (len(tree), tree.total.tolist(), tree.children(0)) == (1, [0], [])
    assert [row.tolist() for row in tree.rows] == [[0]]


def test_the_path_of_a_node_begins_at_the_root() -> None:
    tree = stack_tree(TREE)
    node = tree.find(("a", "b"))
    assert tree.path(node)[0] == 0
    assert tree.names(node) == ("a", "b")


def test_find_goes_as_far_as_the_names_lead() -> None:
    tree = stack_tree(TREE)
    assert tree.names(tree.find(("a", "c"))) == ("a", "c")
    assert tree.names(tree.find(("a", "nowhere", "b"))) == ("a",)
    assert tree.find(("nowhere",)) == 0


@given(values, st.sets(st.integers(0, 20)))
def test_outermost_are_the_marked_nodes_below_no_other(
    own: dict[Path, int], marked: set[int]
) -> None:
    tree = stack_tree(own)
    found = tree.outermost(np.isin(np.arange(len(tree)), list(marked)))
    expected = [
        node
        for node in range(len(tree))
        if node in marked and marked.isdisjoint(tree.path(node)[:-1])
    ]
    assert np.flatnonzero(found).tolist() == expected


def test_a_node_view_tells_what_the_columns_hold() -> None:
    root = stack_tree(TREE, Kind.KERNEL).root
    assert (root.name, root.kind, root.total, root.self, root.count) == ("all", "root", 87, 2, 5)
    wide, narrow = root.children
    assert (wide.name, wide.kind, wide.total, wide.self, wide.count) == ("a", "kernel", 45, 5, 3)
    assert [child.name for child in wide] == ["c", "b"]
    assert narrow.children == []


def test_huge_values_add_up_exactly() -> None:
    big = (1 << 61) + 1
    tree = stack_tree({("a",): big, ("b",): big, ("b", "c"): 1})
    assert tree.total.tolist() == [2 * big + 1, big + 1, 1, big]


@given(values, st.integers(0, 20))
def test_a_part_holds_the_stacks_through_its_node(own: dict[Path, int], chosen: int) -> None:
    tree = stack_tree(own)
    node = min(chosen, len(tree) - 1)
    path, part = tree.names(node), tree.restrict_to(node)
    through = {at: value for at, value in leaves(tree).items() if at[: len(path)] == path}
    assert leaves(part) == through
    assert part.total[: len(path) + 1].tolist() == [int(tree.total[node])] * (len(path) + 1)
    assert part.count[0] == tree.count[node]
    below = [tree.names(one) for one in range(node, int(tree.end[node]))]
    above = [path[:depth] for depth in range(len(path))]
    assert [part.names(one) for one in range(len(part))] == above + below
    for one in range(len(part)):
        inside = [other for other in range(len(part)) if one in part.path(other)]
        assert inside == list(range(one, int(part.end[one])))
        assert part.depth[one] == len(part.names(one))
