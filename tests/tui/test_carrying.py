"""From one tree of a profile to another."""

from __future__ import annotations

from hypothesis import given

from flame.core.tree import StackTree
from flame.tui.carrying import carry
from flame.tui.view import View
from tests.tui.test_view import TREE, A, B, keys, press_all, selected, view
from tests.tui.trees import node, random_trees, stack_tree


def carried_over(shown: View, other: View, zoom: bool = True) -> View:
    carry(shown, other, zoom)
    return other


def test_the_same_frames_are_shown_in_another_tree_of_the_profile() -> None:
    shown = view()
    shown.zoom_to(shown.zoom_of(A))
    shown.zoom_to(shown.zoom_of(B))
    shown.select(node(TREE, "b", "x"))
    other = stack_tree({("b", "x"): 5, ("a", "y"): 7})
    carried = carried_over(shown, View(other))
    assert carried.zoom.node == node(other, "b")
    assert carried.cursor == node(other, "b", "x")
    assert carried.width == 100
    assert not carried.undo()  # the zooms before belong to the other tree


def test_going_back_to_a_tree_keeps_its_own_zoom_and_past() -> None:
    shown, before = view(), view()
    before.zoom_to(before.zoom_of(A))
    shown.select(node(TREE, "b", "x"))
    carried = carried_over(shown, before, zoom=False)
    assert carried.zoom.node == A
    assert carried.holds(carried.cursor)
    assert carried.undo() and carried.zoom.node == 0


def test_a_frame_whose_path_is_gone_is_found_by_name_at_its_widest_place() -> None:
    shown = view()
    shown.select(node(TREE, "b", "x"))
    other = stack_tree({("a",): 0, ("x", "a"): 3, ("d", "x"): 9})
    assert carried_over(shown, View(other)).cursor == node(other, "d", "x")


def test_a_frame_without_width_gives_way_to_the_one_above() -> None:
    shown = view()
    shown.select(node(TREE, "b", "x"))
    carried = carried_over(shown, View(stack_tree({("b",): 4, ("b", "x"): 0})))
    assert selected(carried) == "b"


@given(random_trees, random_trees, keys)
def test_carrying_over_to_any_tree_selects_a_frame_that_is_shown(
    tree: StackTree, other: StackTree, keys: list[str]
) -> None:
    shown = View(tree, 40)
    press_all(shown, keys)
    carried = carried_over(shown, View(other))
    assert carried.holds(carried.cursor)
    assert other.total[carried.cursor] > 0


@given(random_trees)
def test_carrying_over_to_the_same_tree_changes_nothing(tree: StackTree) -> None:
    shown = View(tree, 40)
    shown.move_down()
    shown.move_across(1)
    shown.zoom_to(shown.zoom_of(shown.cursor))
    carried = carried_over(shown, View(tree))
    assert (carried.cursor, carried.zoom) == (shown.cursor, shown.zoom)
