"""From one tree of a profile to another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.tree import StackTree
from flame.tui.session.carry import LiveBookmark, bookmark_of, carry
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from tests.tui.session.test_tree_view import TREE, A, B, keys, press_all, selected, view
from tests.tui.trees import node, random_trees, stack_tree


def carried_over(shown: TreeView, other: TreeView, zoom: bool = True) -> TreeView:
    carry(shown, other, zoom)
    return other


def test_the_same_frames_are_shown_in_another_tree_of_the_profile() -> None:
    shown = view()
    shown.zoom_to(shown.viewport.zoom_of(A))
    shown.zoom_to(shown.viewport.zoom_of(B))
    shown.cursor.select(node(TREE, "b", "x"))
    other = stack_tree({("b", "x"): 5, ("a", "y"): 7})
    carried = carried_over(shown, TreeView(other))
    assert carried.viewport.zoom.node == node(other, "b")
    assert carried.cursor.node == node(other, "b", "x")
    assert carried.viewport.width == 100
    assert not carried.undo()  # the zooms before belong to the other tree


def test_going_back_to_a_tree_keeps_its_own_zoom_and_past() -> None:
    shown, before = view(), view()
    before.zoom_to(before.viewport.zoom_of(A))
    shown.cursor.select(node(TREE, "b", "x"))
    carried = carried_over(shown, before, zoom=False)
    assert carried.viewport.zoom.node == A
    assert carried.viewport.holds(carried.cursor.node)
    assert carried.undo() and carried.viewport.zoom.node == 0


def test_a_frame_whose_path_is_gone_is_found_by_name_at_its_widest_place() -> None:
    shown = view()
    shown.cursor.select(node(TREE, "b", "x"))
    other = stack_tree({("a",): 0, ("x", "a"): 3, ("d", "x"): 9, ("e",): 20, ("e", "x"): 1})
    assert node(other, "e", "x") < node(other, "d", "x")
    assert carried_over(shown, TreeView(other)).cursor.node == node(other, "d", "x")


def test_a_frame_without_width_gives_way_to_the_one_above() -> None:
    shown = view()
    shown.cursor.select(node(TREE, "b", "x"))
    carried = carried_over(shown, TreeView(stack_tree({("b",): 4, ("b", "x"): 0})))
    assert selected(carried) == "b"


@given(random_trees, random_trees, keys)
def test_carrying_over_to_any_tree_selects_a_frame_that_is_shown(
    tree: StackTree, other: StackTree, keys: list[str]
) -> None:
    shown = TreeView(tree, 40)
    press_all(shown, keys)
    carried = carried_over(shown, TreeView(other))
    assert carried.viewport.holds(carried.cursor.node)
    assert other.total[carried.cursor.node] > 0


@given(random_trees)
def test_carrying_over_to_the_same_tree_changes_nothing(tree: StackTree) -> None:
    shown = TreeView(tree, 40)
    shown.cursor.move_down()
    shown.cursor.move_across(1)
    shown.zoom_to(shown.viewport.zoom_of(shown.cursor.node))
    carried = carried_over(shown, TreeView(tree))
    assert (carried.cursor.node, carried.viewport.zoom) == (shown.cursor.node, shown.viewport.zoom)


# A tree that grows


def later(shown: TreeView, tree: StackTree, keeper: LiveBookmark | None = None) -> TreeView:
    """The view of ``tree``, a later state of what ``shown`` shows."""
    other = TreeView(tree)
    (keeper or LiveBookmark()).carry(shown, other)
    return other


def test_a_stretch_stays_between_the_same_frames() -> None:
    before = stack_tree({("a",): 40, ("b", "x"): 10, ("b", "y"): 10, ("c",): 5, ("d",): 5})
    shown = TreeView(before, 40)
    low, high = shown.layout.span(node(before, "b", "y")).low, shown.layout.whole.high
    shown.zoom_to(Zoom(0, Span(low, high)))
    after = stack_tree({("a",): 90, ("b", "x"): 80, ("b", "y"): 30, ("c",): 20, ("d",): 10})
    other = later(shown, after)
    span = other.viewport.zoom.span
    assert (span.low, span.high) == (other.layout.span(node(after, "b", "y")).low, 230)
    assert other.viewport.zoom.node == 0


def test_a_stretch_takes_in_nothing_new_beside_it() -> None:
    before = stack_tree({("a",): 40, ("b", "x"): 10, ("c",): 5})
    shown = TreeView(before, 40)
    shown.zoom_to(Zoom(0, Span(0, 50)))
    after = stack_tree({("a",): 40, ("b", "x"): 10, ("n",): 8, ("c",): 5})
    assert later(shown, after).viewport.zoom.span == Span(0, 50)
    shown.zoom_to(Zoom(0, Span(50, 55)))
    assert later(shown, after).viewport.zoom.span == Span(58, 63)


def test_the_way_back_goes_through_the_same_frames() -> None:
    shown = view()
    for names in (("a",), ("b",), ("b", "x")):
        shown.zoom_to(shown.viewport.zoom_of(node(TREE, *names)))
    shown.undo()
    tree = stack_tree({("b", "x"): 5, ("a", "y"): 7, ("n",): 100})
    other = later(shown, tree)
    assert other.undo(forward=True)
    assert other.viewport.zoom.node == node(tree, "b", "x")
    assert other.undo() and other.undo()
    assert other.viewport.zoom.node == node(tree, "a")
    assert other.undo() and other.viewport.zoom.node == 0
    assert not other.undo()


def test_frames_that_are_gone_for_a_while_are_shown_again() -> None:
    keeper, shown = LiveBookmark(), view()
    shown.zoom_to(shown.viewport.zoom_of(B))
    shown.cursor.select(node(TREE, "b", "x", "deep"))
    gone = later(shown, stack_tree({("a",): 1}), keeper)
    assert (gone.viewport.zoom.node, gone.cursor.node) == (0, 0)
    gone = later(gone, stack_tree({("b",): 1}), keeper)
    assert selected(gone) == "b"
    back = later(gone, TREE, keeper)
    assert (back.viewport.zoom.node, back.cursor.node) == (B, node(TREE, "b", "x", "deep"))


def test_whoever_moves_meanwhile_stays_there() -> None:
    keeper, shown = LiveBookmark(), view()
    shown.zoom_to(shown.viewport.zoom_of(B))
    shown.cursor.select(node(TREE, "b", "x"))
    tree = stack_tree({("a", "x"): 1, ("a", "y"): 2})
    gone = later(shown, tree, keeper)
    gone.cursor.select(node(tree, "a", "y"))
    gone.reset()
    back = later(gone, TREE, keeper)
    assert (back.viewport.zoom.node, back.cursor.node) == (0, node(TREE, "a", "y"))


@given(random_trees, st.lists(random_trees, max_size=4), keys)
def test_a_place_that_is_there_again_is_the_same(
    tree: StackTree, others: list[StackTree], keys: list[str]
) -> None:
    keeper, shown = LiveBookmark(), TreeView(tree, 40)
    press_all(shown, keys)
    passing = shown
    for one in (*others, tree):
        passing = later(passing, one, keeper)
        assert passing.viewport.holds(passing.cursor.node)
    assert passing.viewport.zoom == shown.viewport.zoom
    assert passing.origin == shown.number
    if passing.cursor.node != shown.cursor.node:  # elsewhere it has no width
        assert tree.total[shown.cursor.node] == 0
    assert bookmark_of(passing).zoomed == bookmark_of(shown).zoomed
