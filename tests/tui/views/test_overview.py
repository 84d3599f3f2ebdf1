"""The overview: where the zoomed part lies in the whole tree, and where the matches are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from flame.core.model.tree import StackTree
from flame.tui.session.query import Query
from flame.tui.session.tree_view import TreeView
from flame.tui.views.overview import _MATCH, _ZOOMED, Overview
from tests.support.tiers import deep_except
from tests.tui.conftest import User, open_app
from tests.tui.trees import random_trees


def cells(overview: Overview, width: int, state: int) -> list[int]:
    return [cell for cell, one in enumerate(overview._states(width).tolist()) if one == state]


def touched(low: int, high: int, whole: int, width: int) -> set[int]:
    """The cells that the stretch reaches into; one where it is narrower than any."""
    found = {c for c in range(width) if c * whole < high * width and low * width < (c + 1) * whole}
    return found or {min(low * width // whole, width - 1)}


@given(random_trees, st.integers(1, 60), st.data())
def test_the_zoomed_part_is_bright(tree: StackTree, width: int, data: st.DataObject) -> None:
    view = TreeView(tree)
    node = data.draw(st.sampled_from(tree.total.nonzero()[0].tolist()))
    view.zoom_to(view.viewport.zoom_of(node))
    low, high = view.viewport.zoom.span
    whole = int(tree.total[0])
    bright = cells(Overview(view), width, _ZOOMED)
    if (low, high) == (0, whole):
        assert bright == []
    else:
        assert set(bright) == touched(low, high, whole, width)


@given(random_trees, st.integers(1, 60))
def test_every_match_is_marked_and_nothing_else(tree: StackTree, width: int) -> None:
    view = TreeView(tree)
    view.search(Query("a"))
    whole, expected = int(tree.total[0]), set[int]()
    for node in range(1, len(tree)):
        if tree.name(node) == "a" and tree.total[node]:
            low = int(tree.x[node])
            expected |= touched(low, low + int(tree.total[node]), whole, width)
    assert set(cells(Overview(view), width, _MATCH)) == expected


# In the app


async def test_zoom_and_matches_are_shown(decode: Path) -> None:
    async with open_app(decode) as user:
        assert set(user.read("overview")) == {"▁"}
        await user.press("down", "down", "down", "enter")
        line = user.read("overview")
        width = user.screen.view.viewport.width
        assert abs(line.count("▄") - 200 / 456 * width) <= 2
        assert len(line) == width
        await user.press("slash", *"sampler", "enter")
        assert abs(user.read("overview").count("█") - 26 / 456 * width) <= 2
        assert "▄" in user.read("overview")


def mouse(user: User, kind: type[events.MouseEvent], x: int) -> None:
    """What the terminal reports of the mouse over the overview."""
    overview = user.screen.query_one(Overview)
    button = 0 if kind is events.MouseMove else 1
    overview.post_message(kind(overview, x, 0, 0, 0, button, False, False, False))


async def drag(user: User, *cells: int) -> None:
    """Press on the first of ``cells``, move over the others and let go."""
    mouse(user, events.MouseDown, cells[0])
    for cell in cells[1:]:
        mouse(user, events.MouseMove, cell)
    mouse(user, events.MouseUp, cells[-1])
    await user.settle()


async def test_pressing_moves_the_zoomed_part_there(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "enter")
        assert user.zoomed == "model.layers.1"
        view = user.screen.view
        before = view.viewport.zoom
        await drag(user, 2)
        assert view.viewport.zoom.span.low == view.layout.whole.low
        assert view.viewport.total == before.span.high - before.span.low
        assert "model.layers.0" in user.read("icicle")
        await user.press("z")
        assert view.viewport.zoom == before


async def test_a_drag_takes_the_zoomed_part_along_and_is_one_step_to_undo(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        view = user.screen.view
        before = view.viewport.zoom
        cell = (view.layout.whole.high - view.layout.whole.low) / view.viewport.width
        start = round((before.span.low + before.span.high) / 2 / cell)
        await drag(user, start, start + 3, start + 8, start + 5)
        assert abs((view.viewport.zoom.span.low - before.span.low) / cell - 5) < 0.01
        await user.press("z")
        assert view.viewport.zoom == before
        await user.press("z")
        assert user.zoomed == "all"


async def test_a_drag_that_ends_where_it_began_leaves_nothing_to_undo(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        view = user.screen.view
        before = view.viewport.zoom
        cell = (view.layout.whole.high - view.layout.whole.low) / view.viewport.width
        start = round((before.span.low + before.span.high) / 2 / cell)
        await drag(user, start, start + 4, start)
        assert view.viewport.zoom.span == before.span


@pytest.mark.parametrize("cell", deep_except([30], [0, 30, 78]))
async def test_where_all_is_shown_nothing_moves(cell: int, decode: Path) -> None:
    async with open_app(decode) as user:
        before = user.screen.view.viewport.zoom
        await drag(user, cell, 40)
        assert user.screen.view.viewport.zoom == before


async def test_moving_over_it_without_a_button_does_nothing(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "enter")
        before = user.screen.view.viewport.zoom
        mouse(user, events.MouseMove, 70)
        await user.settle()
        assert user.screen.view.viewport.zoom == before
