"""Moving, zooming, searching and undoing where chains of frames are rows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import Frame, Kind
from flame.core.model.tree import StackTree, TreeLayout
from flame.options.state import decode, encode
from flame.tui.main.place import go_to, state_of
from flame.tui.session.carry import LiveBookmark, carry
from flame.tui.session.joined_rows import ALL_OPEN
from flame.tui.session.query import Query
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from flame.tui.views.pane import switch_chains
from tests.tui.session.test_tree_view import press_all, selected
from tests.tui.trees import chained_trees, node, python, stack_tree

A, B, C, D, X, Y = map(python, "abcdxy")
LAUNCH = Frame(Kind.LAUNCH, "l")
TREE = stack_tree(
    {
        (A, B, C, X, Y, LAUNCH, "k"): 6_000,
        (A, B, C, D, LAUNCH, "k"): 3_950,
        (A, D, LAUNCH): 50,
        ("other",): 2_000,
    }
)
"""``a › b › c`` is a chain, which ``d`` leaves in its middle, and so is ``x › y`` below it."""

ABC = [node(TREE, *"abc"[: place + 1]) for place in range(3)]


def view() -> TreeView:
    return TreeView(TREE, 100)


def names(shown: TreeView, number: int) -> list[str]:
    """The frames that a row shows, those of closed chains joined."""
    items = shown.viewport.items(number)
    members = (shown.layout.joined.members(item.node).tolist() for item in items)
    return ["".join(map(TREE.name, nodes)) for nodes in members]


def test_what_leaves_a_chain_stands_right_below_it() -> None:
    shown = view()
    assert [names(shown, number) for number in range(6)] == [
        ["all"],
        ["abc", "other"],
        ["xy", "d"],  # the other d, of 50, is narrower than half a cell
        ["l", "l"],
        ["k", "k"],
        [],
    ]
    assert shown.viewport.row_of(node(TREE, "a", "d")) == 2
    shown.viewport.open(ALL_OPEN)
    assert [names(shown, number) for number in range(4)] == [["all"], ["a", "other"], ["b"], ["c"]]


def test_a_closed_row_selects_its_last_frame() -> None:
    shown = view()
    shown.cursor.move_down()
    assert selected(shown) == "c"
    shown.cursor.move_down()
    assert selected(shown) == "y"
    shown.cursor.move_up()
    assert selected(shown) == "c"
    shown.cursor.move_up()
    assert shown.cursor.node == 0
    shown.cursor.select_item(shown.viewport.items(1)[0], 1)
    assert selected(shown) == "c"


def test_a_frame_that_is_selected_in_a_row_stays_it() -> None:
    shown = view()
    shown.cursor.select(ABC[1])
    shown.cursor.select_item(shown.viewport.items(1)[0], 1)
    shown.cursor.move_to_top()
    shown.cursor.select(ABC[1])
    shown.zoom_in()
    assert selected(shown) == "b"
    shown.cursor.move_to_top()
    assert selected(shown) == "b"


def test_moving_across_goes_from_row_to_row() -> None:
    shown = view()
    shown.cursor.select(ABC[0])
    shown.cursor.move_across(1)
    assert selected(shown) == "other"
    shown.cursor.move_across(-1)
    assert selected(shown) == "c"


def test_enter_makes_the_whole_row_as_wide_as_the_screen() -> None:
    for one in ABC:
        shown = view()
        shown.cursor.select(one)
        shown.zoom_in()
        assert shown.viewport.zoom == Zoom(ABC[0], shown.layout.span(ABC[0]))
        assert (shown.viewport.top, shown.viewport.rows) == (1, 4)
        shown.zoom_out()
        assert shown.viewport.zoom.node == 0


def test_zooming_out_goes_by_row() -> None:
    shown = view()
    shown.zoom_to(shown.viewport.zoom_of(node(TREE, *"abcxyl")))
    zooms = []
    for _ in range(3):
        shown.zoom_out()
        zooms.append(TREE.name(shown.viewport.zoom.node))
    assert zooms == ["x", "a", "all"]


def test_opening_and_closing_keeps_what_is_selected() -> None:
    shown = view()
    shown.cursor.select(ABC[1])
    switch_chains(shown)
    assert (selected(shown), shown.cursor.row) == ("b", 2)
    assert names(shown, 4) == ["xy", "d"]  # of one chain, not of all
    switch_chains(shown)
    assert (selected(shown), shown.cursor.row) == ("b", 1)


def test_all_chains_open_from_where_there_is_none() -> None:
    shown = view()
    switch_chains(shown)
    assert shown.viewport.opened == ALL_OPEN
    assert shown.viewport.row_of(node(TREE, *"abcxy")) == 5
    shown.cursor.select(ABC[0])
    switch_chains(shown)
    assert [shown.viewport.row_of(one) for one in ABC] == [1, 1, 1]
    assert shown.viewport.row_of(node(TREE, *"abcxy")) == 3
    shown.cursor.select(0)
    switch_chains(shown)
    assert shown.viewport.row_of(node(TREE, *"abcxy")) == 2


def test_a_zoom_inside_a_chain_that_closes_is_one_to_its_row() -> None:
    shown = view()
    shown.viewport.open(ALL_OPEN)
    shown.zoom_to(shown.viewport.zoom_of(ABC[1]))
    assert shown.viewport.zoom.node == ABC[1]
    shown.cursor.select(ABC[1])
    switch_chains(shown)
    assert shown.viewport.zoom == Zoom(ABC[0], shown.layout.span(ABC[0]))
    part = Zoom(ABC[1], Span(100, 200))
    switch_chains(shown)
    shown.zoom_to(part)
    switch_chains(shown)
    assert shown.viewport.zoom == Zoom(ABC[0], Span(100, 200))
    assert shown.viewport.holds(shown.cursor.node)


def test_there_are_as_many_rows_as_are_open() -> None:
    shown = view()
    assert shown.viewport.rows == 5
    shown.viewport.open(ALL_OPEN)
    assert shown.viewport.rows == 8
    assert shown.undo() and shown.viewport.rows == 5


def test_what_is_panned_to_inside_a_chain_is_below_its_row() -> None:
    shown = view()
    shown.zoom_to(shown.viewport.zoom_of(node(TREE, *"abcx")))
    assert shown.pan(1)
    assert shown.viewport.zoom == Zoom(ABC[0], Span(1_500, 7_500))


def test_opening_can_be_undone_and_redone_among_zooms() -> None:
    shown = view()
    shown.cursor.select(ABC[2])
    shown.zoom_in()
    switch_chains(shown)
    shown.cursor.select(node(TREE, *"abcx"))
    shown.zoom_in()
    assert shown.undo() and shown.viewport.zoom.node == ABC[0]
    assert shown.viewport.opened.but == {ABC[0]}
    assert shown.undo() and not shown.viewport.opened.but
    assert shown.undo() and shown.viewport.zoom.node == 0
    assert not shown.undo()
    assert shown.undo(forward=True) and shown.undo(forward=True)
    assert shown.viewport.opened.but == {ABC[0]}
    assert shown.cursor.row == shown.viewport.row_of(shown.cursor.node)


def test_matches_inside_count_for_the_row_and_can_be_selected() -> None:
    shown = view()
    shown.search(Query("^[bd]$"))
    assert shown.matches.in_item(shown.viewport.items(1)[0], 1) == 1
    assert shown.next_match(1) and TREE.names(shown.cursor.node) == ("a", "b")
    shown.cursor.select(ABC[1])
    switch_chains(shown)
    assert shown.matches.in_item(shown.viewport.items(1)[0], 1) == 0
    assert shown.matches.in_item(shown.viewport.items(2)[0], 2) == 1


def test_what_is_open_stays_open_in_another_tree() -> None:
    shown = view()
    shown.cursor.select(ABC[2])
    switch_chains(shown)
    other = stack_tree({(A, B, C, X, Y): 7, (X, Y): 3})
    after = TreeView(other)
    carry(shown, after)
    assert after.viewport.opened.but == {node(other, "a")}
    before = view()
    carry(shown, before, zoom=False)
    assert not before.viewport.opened.but


def test_a_chain_that_is_gone_for_a_while_is_open_again() -> None:
    keeper, shown = LiveBookmark(), view()
    shown.cursor.select(ABC[2])
    switch_chains(shown)
    gone = TreeView(stack_tree({("other",): 1}))
    keeper.carry(shown, gone)
    assert not gone.viewport.opened.but
    back = view()
    keeper.carry(gone, back)
    assert back.viewport.opened.but == {ABC[0]}
    assert back.undo() and not back.viewport.opened.but


def test_a_chain_that_is_closed_meanwhile_stays_closed() -> None:
    keeper, shown = LiveBookmark(), view()
    shown.cursor.select(ABC[2])
    switch_chains(shown)
    later = view()
    keeper.carry(shown, later)
    switch_chains(later)
    last = view()
    keeper.carry(later, last)
    assert not last.viewport.opened.but


def test_the_state_says_what_is_open() -> None:
    shown = view()
    switch_chains(shown)
    shown.cursor.select(ABC[1])
    switch_chains(shown)
    shown.zoom_in()
    state = decode(encode(state_of("icicle", shown, None)))
    assert (state.all_open, state.chains) == (True, [(1, ["a", "b", "c"])])
    other = view()
    go_to(other, state)
    assert other.viewport.state == shown.viewport.state
    assert other.cursor.node == ABC[1]


def test_an_inverted_chain_is_stood_for_by_its_first_frame() -> None:
    shown = TreeView(replace(TREE, layout=TreeLayout(inverted=True)), 100)
    shown.cursor.move_down()
    assert selected(shown) == "a"


moves = st.lists(
    st.sampled_from(
        [
            *("down", "up", "right", "left", "enter", "out", "reset", "undo", "search", "n"),
            *("redo", "pan", "back", "closer", "farther", "chain", "leaf", "fork", "top"),
        ]
    ),
    max_size=30,
)


def press(shown: TreeView, keys: list[str]) -> None:
    for key in keys:
        if key == "chain":
            switch_chains(shown)
        elif key == "leaf":
            shown.cursor.move_to_leaf()
        elif key == "fork":
            shown.cursor.move_to_fork()
        elif key == "top":
            shown.cursor.move_to_top()
        else:
            press_all(shown, [key])


@given(chained_trees, moves, st.integers(1, 60))
def test_whatever_is_pressed_the_selected_frame_is_in_a_row_of_the_zoomed_part(
    tree: StackTree, keys: list[str], width: int
) -> None:
    shown = TreeView(tree, width)
    press(shown, keys)
    assert shown.viewport.holds(shown.cursor.node)
    assert shown.viewport.top <= shown.cursor.row < shown.viewport.top + shown.viewport.rows
    zoomed = shown.viewport.zoom.node
    assert shown.viewport.shown(zoomed) == zoomed


@given(chained_trees, moves)
def test_everything_can_be_undone_and_redone(tree: StackTree, keys: list[str]) -> None:
    shown = TreeView(tree, 40)
    first = shown.viewport.state
    press(shown, [key for key in keys if key not in ("undo", "redo")][:15])
    last = shown.viewport.state
    while shown.undo():
        pass
    assert shown.viewport.state == first
    while shown.undo(forward=True):
        pass
    assert shown.viewport.state == last


@given(chained_trees, st.lists(chained_trees, max_size=3), moves)
def test_what_is_shown_is_shown_again_when_a_tree_is_back(
    tree: StackTree, others: list[StackTree], keys: list[str]
) -> None:
    keeper, shown = LiveBookmark(), TreeView(tree, 40)
    press(shown, keys)
    passing = shown
    for one in (*others, tree):
        later = TreeView(one)
        keeper.carry(passing, later)
        passing = later
        assert passing.viewport.holds(passing.cursor.node)
    assert passing.viewport.state == shown.viewport.state
