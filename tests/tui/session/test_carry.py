"""From one tree of a profile to another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.tree import StackTree
from flame.tui.session.carry import Keeper, carry, stand_of
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import View, Zoom
from tests.tui.session.test_tree_view import TREE, A, B, keys, press_all, selected, view
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


# A tree that grows


def later(shown: View, tree: StackTree, keeper: Keeper | None = None) -> View:
    """The view of ``tree``, a later state of what ``shown`` shows."""
    other = View(tree)
    (keeper or Keeper()).carry(shown, other)
    return other


def test_a_stretch_stays_between_the_same_frames() -> None:
    before = stack_tree({("a",): 40, ("b", "x"): 10, ("b", "y"): 10, ("c",): 5, ("d",): 5})
    shown = View(before, 40)
    low, high = shown.layout.span(node(before, "b", "y")).low, shown.layout.whole.high
    shown.zoom_to(Zoom(0, Span(low, high)))
    after = stack_tree({("a",): 90, ("b", "x"): 80, ("b", "y"): 30, ("c",): 20, ("d",): 10})
    other = later(shown, after)
    span = other.zoom.span
    assert (span.low, span.high) == (other.layout.span(node(after, "b", "y")).low, 230)
    assert other.zoom.node == 0


def test_the_way_back_goes_through_the_same_frames() -> None:
    shown = view()
    for names in (("a",), ("b",), ("b", "x")):
        shown.zoom_to(shown.zoom_of(node(TREE, *names)))
    shown.undo()
    tree = stack_tree({("b", "x"): 5, ("a", "y"): 7, ("n",): 100})
    other = later(shown, tree)
    assert other.undo(forward=True)
    assert other.zoom.node == node(tree, "b", "x")
    assert other.undo() and other.undo()
    assert other.zoom.node == node(tree, "a")
    assert other.undo() and other.zoom.node == 0
    assert not other.undo()


def test_frames_that_are_gone_for_a_while_are_shown_again() -> None:
    keeper, shown = Keeper(), view()
    shown.zoom_to(shown.zoom_of(B))
    shown.select(node(TREE, "b", "x", "deep"))
    gone = later(shown, stack_tree({("a",): 1}), keeper)
    assert (gone.zoom.node, gone.cursor) == (0, 0)
    gone = later(gone, stack_tree({("b",): 1}), keeper)
    assert selected(gone) == "b"
    back = later(gone, TREE, keeper)
    assert (back.zoom.node, back.cursor) == (B, node(TREE, "b", "x", "deep"))


def test_whoever_moves_meanwhile_stays_there() -> None:
    keeper, shown = Keeper(), view()
    shown.zoom_to(shown.zoom_of(B))
    shown.select(node(TREE, "b", "x"))
    tree = stack_tree({("a", "x"): 1, ("a", "y"): 2})
    gone = later(shown, tree, keeper)
    gone.select(node(tree, "a", "y"))
    gone.reset()
    back = later(gone, TREE, keeper)
    assert (back.zoom.node, back.cursor) == (0, node(TREE, "a", "y"))


@given(random_trees, st.lists(random_trees, max_size=4), keys)
def test_a_place_that_is_there_again_is_the_same(
    tree: StackTree, others: list[StackTree], keys: list[str]
) -> None:
    keeper, shown = Keeper(), View(tree, 40)
    press_all(shown, keys)
    passing = shown
    for one in (*others, tree):
        passing = later(passing, one, keeper)
        assert passing.holds(passing.cursor)
    assert passing.zoom == shown.zoom
    assert passing.origin == shown.number
    if passing.cursor != shown.cursor:  # elsewhere it has no width
        assert tree.total[shown.cursor] == 0
    assert stand_of(passing).zoomed == stand_of(shown).zoomed
