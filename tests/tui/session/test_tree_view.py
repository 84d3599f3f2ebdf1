from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import Frame, Kind
from flame.core.model.tree import StackTree
from flame.tui.session.query import Query
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from tests.tui.trees import node, random_trees, stack_tree

TREE = stack_tree(
    {
        ("a", "x"): 300,
        ("a", "y"): 100,
        ("b", "x", "deep"): 200,
        ("b",): 50,
        **{("c", f"tiny {n:03}"): 1 for n in range(350)},
    }
)
A, B, C = (node(TREE, name) for name in "abc")


def view(width: int = 100) -> TreeView:
    return TreeView(TREE, width)


def selected(shown: TreeView) -> str:
    return shown.tree.name(shown.cursor.node)


def test_down_selects_the_widest_child_and_up_the_parent() -> None:
    shown = view()
    shown.cursor.move_down()
    assert shown.cursor.node == A
    shown.cursor.move_down()
    assert shown.cursor.node == node(TREE, "a", "x")
    shown.cursor.move_down()
    assert shown.cursor.node == node(TREE, "a", "x")
    shown.cursor.move_up()
    shown.cursor.move_up()
    shown.cursor.move_up()
    assert shown.cursor.node == 0


def test_the_end_is_the_leaf_of_the_widest_way() -> None:
    shown = view()
    shown.cursor.move_to_leaf()
    assert TREE.names(shown.cursor.node) == ("a", "x")
    shown.cursor.select(B)
    shown.cursor.move_to_leaf()
    assert TREE.names(shown.cursor.node) == ("b", "x", "deep")


def test_a_fork_is_the_next_frame_that_no_child_has_nearly_all_of() -> None:
    tree = stack_tree({("a", "b", "c", "d"): 95, ("a", "b", "c", "e"): 5, ("a", "x"): 12})
    shown = TreeView(tree, 100)
    seen = []
    for _ in range(4):
        shown.cursor.move_to_fork()
        seen.append(tree.names(shown.cursor.node))
    deepest = ("a", "b", "c", "d")
    assert seen == [("a",), deepest, deepest, deepest]


def test_across_goes_along_the_row_over_parents_and_stops_at_the_ends() -> None:
    shown = view()
    shown.cursor.select(node(TREE, "a", "x"))
    shown.cursor.move_across(-1)
    assert shown.cursor.node == node(TREE, "a", "x")
    shown.cursor.move_across(1)
    shown.cursor.move_across(1)
    assert TREE.names(shown.cursor.node)[0] == "c"
    shown.cursor.move_across(1)
    assert shown.cursor.node == node(TREE, "b", "x")
    shown.cursor.move_across(1)
    assert shown.cursor.node == node(TREE, "b", "x")
    shown.cursor.move_across(-1)
    assert TREE.names(shown.cursor.node)[0] == "c"


def test_a_run_is_selected_at_its_widest_frame() -> None:
    tree = stack_tree({("big",): 1000, ("p", "one"): 3, ("q", "two"): 5, ("q", "three"): 4})
    shown = TreeView(tree, 60)
    shown.cursor.select(node(tree, "p", "one"))
    shown.cursor.select_item(shown.viewport.items(2)[0], 2)
    assert selected(shown) == "one"
    shown.cursor.select(0)
    shown.cursor.select_item(shown.viewport.items(2)[0], 2)
    assert selected(shown) == "two"


def test_enter_on_a_frame_makes_it_as_wide_as_the_screen() -> None:
    shown = view()
    shown.cursor.select(B)
    shown.zoom_in()
    assert (shown.viewport.zoom.node, shown.viewport.zoom.span, shown.viewport.top) == (
        B,
        Span(750, 1000),
        1,
    )
    assert [item.node for item in shown.viewport.items(1)] == [B]
    assert shown.viewport.rows == 3


def test_enter_on_a_run_zooms_into_the_run_and_then_into_its_frames() -> None:
    shown = view()
    shown.cursor.select(C)
    shown.cursor.move_down()
    run = shown.viewport.item_of(shown.cursor.node)
    assert run is not None and run.frames == 350
    shown.zoom_in()
    assert shown.viewport.zoom.node == C
    assert shown.viewport.zoom.span == Span(400, 750)
    first = shown.cursor.node
    shown.zoom_in()
    assert shown.viewport.zoom.node == first
    assert shown.viewport.zoom_of(first) == shown.viewport.zoom


def test_a_run_over_several_parents_zooms_to_what_is_common() -> None:
    tree = stack_tree(
        {("t", "big"): 9900, ("t", "p", "one"): 30, ("t", "q", "two"): 30, ("t", "q", "six"): 40}
    )
    shown = TreeView(tree, 50)
    shown.cursor.select(node(tree, "t", "p", "one"))
    item = shown.viewport.item_of(shown.cursor.node)
    assert item is not None and item.frames == 3
    shown.zoom_in()
    assert shown.viewport.zoom.node == node(tree, "t")
    assert shown.viewport.zoom.span == Span(9900, 10000)
    assert [tree.name(item.node) for item in shown.viewport.items(2)] == ["q", "p"]
    shown.zoom_out()
    assert shown.viewport.zoom == shown.viewport.zoom_of(node(tree, "t"))


def test_zoom_out_goes_up_one_frame_and_stops_at_the_root() -> None:
    shown = view()
    shown.zoom_to(shown.viewport.zoom_of(node(TREE, "b", "x")))
    shown.zoom_out()
    assert shown.viewport.zoom.node == B
    shown.zoom_out()
    shown.zoom_out()
    assert shown.viewport.zoom.node == 0


def test_undo_returns_through_all_zooms() -> None:
    shown = view()
    for target in (A, B, node(TREE, "b", "x")):
        shown.zoom_to(shown.viewport.zoom_of(target))
    shown.reset()
    assert [shown.undo() and shown.viewport.zoom.node for _ in range(5)] == [
        node(TREE, "b", "x"),
        B,
        A,
        0,
        False,
    ]


def test_the_selected_frame_stays_in_the_zoomed_part() -> None:
    shown = view()
    shown.cursor.select(A)
    shown.zoom_to(shown.viewport.zoom_of(B))
    assert shown.cursor.node == B
    shown.cursor.move_up()
    assert shown.cursor.node == B
    shown.cursor.select(node(TREE, "b", "x"))
    shown.reset()
    assert shown.cursor.node == node(TREE, "b", "x")


def test_matches_are_visited_in_turn_within_the_zoomed_part() -> None:
    shown = view()
    shown.search(Query("^x$"))
    assert shown.matches.place_of(shown.cursor.node) == (0, 2)
    assert shown.next_match(1) and shown.cursor.node == node(TREE, "a", "x")
    assert shown.matches.place_of(shown.cursor.node) == (1, 2)
    assert shown.next_match(1) and shown.cursor.node == node(TREE, "b", "x")
    assert shown.next_match(1) and shown.cursor.node == node(TREE, "a", "x")
    assert shown.next_match(-1) and shown.cursor.node == node(TREE, "b", "x")
    shown.zoom_to(shown.viewport.zoom_of(A))
    assert shown.matches.place_of(shown.cursor.node) == (0, 1)
    shown.zoom_to(shown.viewport.zoom_of(C))
    assert not shown.next_match(1)


def test_a_match_that_only_touches_the_zoomed_part_is_not_in_it() -> None:
    shown = view()
    shown.search(Query("^[xy]$"))
    x, y = node(TREE, "a", "x"), node(TREE, "a", "y")
    assert (shown.layout.span(x), shown.layout.span(y)) == (Span(0, 300), Span(300, 400))
    shown.zoom_to(Zoom(A, Span(300, 400)))
    assert (shown.matches.place_of(x), shown.matches.place_of(y)) == ((0, 1), (1, 1))
    shown.zoom_to(Zoom(A, Span(0, 300)))
    assert (shown.matches.place_of(x), shown.matches.place_of(y)) == ((1, 1), (0, 1))


def test_matches_are_counted_per_item() -> None:
    shown = view()
    shown.search(Query("tiny 00"))
    run = shown.viewport.items(2)[2]
    assert (run.frames, shown.matches.in_item(run, 2)) == (350, 10)
    shown.search(None)
    assert shown.matches.in_item(run, 2) == 0


def test_a_name_is_summed_over_all_places_with_recursion_once() -> None:
    tree = stack_tree({("f",): 1, ("f", "g", "f"): 10, ("h", "f"): 100, ("f", "f", "f"): 1000})
    everywhere = TreeView(tree, 80).everywhere(int(tree.frame[node(tree, "f")]))
    assert everywhere == (5, 1111, 4)


def test_undo_and_redo_go_through_the_zooms_until_a_new_one() -> None:
    shown = view()
    shown.zoom_to(shown.viewport.zoom_of(A))
    shown.zoom_to(shown.viewport.zoom_of(B))
    assert shown.undo() and shown.viewport.zoom.node == A
    assert shown.undo(forward=True) and shown.viewport.zoom.node == B
    assert not shown.undo(forward=True)
    assert shown.undo()
    shown.zoom_to(shown.viewport.zoom_of(C))
    assert not shown.undo(forward=True)
    assert shown.undo() and shown.viewport.zoom.node == A


def test_panning_keeps_the_width_and_stops_at_the_edges() -> None:
    shown = view()
    assert not shown.pan(1)
    shown.zoom_to(shown.viewport.zoom_of(B))
    low, high = shown.viewport.zoom.span
    assert shown.pan(-1)
    quarter = (high - low) // 4
    assert shown.viewport.zoom.span == (low - quarter, high - quarter)
    assert shown.viewport.zoom.node == 0  # what is around both b and its neighbour
    while shown.pan(-1):
        assert shown.viewport.zoom.span.high - shown.viewport.zoom.span.low == high - low
    assert shown.viewport.zoom.span.low == 0
    assert shown.viewport.holds(shown.cursor.node)


def test_closer_halves_what_is_shown_around_the_selected_frame() -> None:
    shown = view()
    shown.cursor.select(node(TREE, "b", "x"))
    shown.closer(1)
    own = shown.layout.span(shown.cursor.node)
    low, high = shown.viewport.zoom.span
    assert high - low == 500
    assert low <= own.low and own.high <= high
    shown.closer(-1)
    assert shown.viewport.total == 1000
    for _ in range(30):
        shown.closer(1)
    assert shown.viewport.total >= 16
    assert shown.viewport.holds(shown.cursor.node)


def test_down_selects_the_widest_child_in_any_order_of_children() -> None:
    tree = stack_tree({("p", "a"): 1, ("p", "b"): 9})
    unsorted = TreeView(_mirrored(tree), 100)
    unsorted.cursor.move_down()
    unsorted.cursor.move_down()
    assert unsorted.tree.name(unsorted.cursor.node) == "b"
    names = [unsorted.tree.name(child) for child in unsorted.heaviest_children(1, 5)]
    assert names == ["b", "a"]


def _mirrored(tree: StackTree) -> StackTree:
    """``tree`` of a root, one child and two grandchildren, with these exchanged."""
    order = [0, 1, 3, 2]
    columns = {name: getattr(tree, name)[order] for name in ("frame", "own", "own_count")}
    return replace(tree, **columns)


def test_the_picture_changes_with_zoom_width_and_search_but_not_with_the_cursor() -> None:
    shown = view()
    pictures = {shown.picture}
    shown.cursor.move_down()
    assert shown.picture in pictures
    shown.search(Query("a"))
    pictures.add(shown.picture)
    shown.viewport.width = 90
    pictures.add(shown.picture)
    shown.zoom_in()
    pictures.add(shown.picture)
    assert len(pictures | {TreeView(TREE, 100).picture}) == 5


def test_a_tree_that_weighs_nothing_takes_every_key() -> None:
    shown = TreeView(stack_tree({("a",): 0}), 80)
    press_all(shown, ["down", "right", "left", "up", "enter", "out", "reset", "undo", "n"])
    assert shown.cursor.node == 0


def test_kinds_of_one_name_are_separate_places() -> None:
    tree = stack_tree({("f",): 1, (Frame(Kind.NVTX, "f"), "f"): 2})
    assert TreeView(tree, 80).everywhere(int(tree.frame[node(tree, "f")])).places == 1


def press_all(shown: TreeView, keys: list[str]) -> None:
    actions: dict[str, Callable[[], object]] = {
        "down": shown.cursor.move_down,
        "up": shown.cursor.move_up,
        "right": lambda: shown.cursor.move_across(1),
        "left": lambda: shown.cursor.move_across(-1),
        "enter": shown.zoom_in,
        "out": shown.zoom_out,
        "reset": shown.reset,
        "undo": shown.undo,
        "redo": lambda: shown.undo(forward=True),
        "pan": lambda: shown.pan(1),
        "back": lambda: shown.pan(-1),
        "closer": lambda: shown.closer(1),
        "farther": lambda: shown.closer(-1),
        "search": lambda: shown.search(Query("[a-c]")),
        "n": lambda: shown.next_match(1),
    }
    for key in keys:
        actions[key]()


keys = st.lists(
    st.sampled_from(
        [
            *("down", "up", "right", "left", "enter", "out", "reset", "undo", "search", "n"),
            *("redo", "pan", "back", "closer", "farther"),
        ]
    ),
    max_size=25,
)


@given(random_trees, keys, st.integers(1, 60))
def test_whatever_is_pressed_the_selected_frame_lies_in_the_zoomed_part(
    tree: StackTree, keys: list[str], width: int
) -> None:
    shown = TreeView(tree, width)
    press_all(shown, keys)
    assert shown.viewport.holds(shown.cursor.node)
    assert tree.total[shown.cursor.node] > 0
    assert tree.depth[shown.cursor.node] >= shown.viewport.top
    assert 0 <= shown.viewport.cell_of(shown.cursor.node) < width
    assert shown.viewport.rows >= 1
