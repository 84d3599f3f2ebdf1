"""What the icicle draws, either way up, and what the mouse does to it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events, on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from flame.core.model.frames import Frame, Kind
from flame.core.model.tree import StackTree
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from flame.tui.views.icicle import Icicle
from tests.tui import traces
from tests.tui.conftest import User, open_app
from tests.tui.trees import node, stack_tree

TREE = stack_tree({("a", "b", "c"): 60, ("a", "d"): 30, ("e",): 10})


class Alone(App[None]):
    """An icicle and nothing else; keeps what it says."""

    def __init__(self, tree: StackTree, upwards: bool, rootless: bool) -> None:
        super().__init__()
        self.view = TreeView(tree)
        self.icicle = Icicle(self.view, upwards=upwards, rootless=rootless)
        self.said: list[Icicle.Event] = []
        self.pilot: Pilot[None]

    def compose(self) -> ComposeResult:
        yield self.icicle

    def on_mount(self) -> None:
        self.icicle.show(self.view)

    @on(Icicle.Chosen)
    @on(Icicle.Hovered)
    @on(Icicle.Panned)
    def _keep(self, message: Icicle.Event) -> None:
        self.said.append(message)

    def lines(self) -> list[str]:
        height = self.icicle.size.height
        return [self.icicle.render_line(y).text.rstrip() for y in range(height)]

    def labels(self) -> list[str]:
        """The names on each line."""
        return [" ".join(re.findall(r"▏(\w+)", line)) for line in self.lines()]


@asynccontextmanager
async def alone(
    tree: StackTree = TREE, upwards: bool = False, rootless: bool = False, height: int = 6
) -> AsyncIterator[Alone]:
    app = Alone(tree, upwards, rootless)
    async with app.run_test(size=(60, height)) as pilot:
        app.pilot = pilot
        await pilot.pause()
        yield app


@pytest.mark.parametrize(
    ("upwards", "rootless", "labels"),
    [
        (False, False, ["all", "a e", "b d", "c", "", ""]),
        (False, True, ["a e", "b d", "c", "", "", ""]),
        (True, False, ["", "", "c", "b d", "a e", "all"]),
        (True, True, ["", "", "", "c", "b d", "a e"]),
    ],
)
async def test_it_grows_from_the_root_either_way(
    upwards: bool, rootless: bool, labels: list[str]
) -> None:
    async with alone(upwards=upwards, rootless=rootless) as app:
        assert app.labels() == labels


async def test_a_zoomed_frame_is_drawn_where_the_root_was() -> None:
    async with alone(upwards=True, rootless=True) as app:
        app.view.zoom_to(app.view.viewport.zoom_of(node(TREE, "a", "b")))
        app.icicle.show(app.view)
        assert app.labels()[-2:] == ["c", "b"]


async def test_growing_upwards_it_stands_on_the_bottom_and_scrolls_up() -> None:
    deep = stack_tree({tuple(f"level{n}" for n in range(20)): 1})
    async with alone(deep, upwards=True) as app:
        assert app.labels() == [f"level{n}" for n in range(4, -1, -1)] + ["all"]
        app.view.cursor.select(15)
        app.icicle.show(app.view)
        await app.pilot.pause()
        assert app.labels()[1] == "level14"
        app.view.cursor.select(0)
        app.icicle.show(app.view)
        await app.pilot.pause()
        assert app.labels()[-1] == "all"


async def test_only_the_half_that_is_moved_in_shows_what_is_selected() -> None:
    async with alone() as app:
        cursor = app.icicle.look.palette.cursor

        def selected() -> bool:
            segments = (segment for y in range(3) for segment in app.icicle.render_line(y))
            return any(segment.style == cursor for segment in segments)

        assert selected()
        app.icicle.show(app.view, selecting=False)
        assert not selected()


async def test_runs_say_how_many_frames_they_are_and_which_part() -> None:
    many = stack_tree({("wide",): 600, **{(f"n{n}",): 1 for n in range(400)}})
    async with alone(many) as app:
        assert "░ 400 narrow · 40.0 % ░" in app.lines()[1]
    fewer = stack_tree({("wide",): 600, **{(f"n{n}",): 1 for n in range(200)}})
    async with alone(fewer) as app:
        assert "200 narrow" in app.lines()[1]
        assert "25.0 %" not in app.lines()[1]


async def test_where_an_instruction_has_little_room_it_says_what_it_does() -> None:
    load = Frame(Kind.SASS, "+0x0260 LDG.E R4, desc[UR4][R4.64]")
    unknown = Frame(Kind.SASS, "gemm+0x0260")
    async with alone(stack_tree({(load,): 4, (unknown,): 1})) as app:
        assert app.lines()[1].startswith(f"▏{load.name} ")
        assert app.lines()[1].endswith("▏gemm+0x0260")
    async with alone(stack_tree({(load,): 1, (unknown,): 4})) as app:
        assert app.lines()[1].endswith("▏LDG.E R4, …")


async def test_the_part_of_a_run_is_that_of_what_is_zoomed() -> None:
    many = stack_tree({("p", "w"): 100, **{("p", f"n{n}"): 1 for n in range(100)}, ("q",): 800})
    async with alone(many) as app:
        app.view.zoom_to(app.view.viewport.zoom_of(node(many, "p")))
        app.icicle.show(app.view)
        assert "░ 100 narrow · 50.0 % ░" in app.lines()[1]


async def test_the_mouse_says_what_it_comes_to_once() -> None:
    async with alone() as app:
        for offset in ((1, 1), (5, 1), (58, 1), (58, 4), (59, 4), (3, 2)):
            await app.pilot.hover(Icicle, offset)
        app.icicle.post_message(events.Leave(app.icicle))
        await app.pilot.pause()
        hovered = [one.node for one in app.said if isinstance(one, Icicle.Hovered)]
        expected = [node(TREE, "a"), node(TREE, "e"), -1, node(TREE, "a", "b"), -1]
        assert hovered == expected


async def test_hovering_shows_the_frame_until_the_mouse_leaves(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.hover("#icicle", offset=cell(user, "model.layers.1"))
        await user.settle()
        assert "model.layers.1  200 µs" in user.read("status")
        assert user.selected == "all"
        await user.pilot.hover("#keys")
        await user.settle()
        assert "model.layers.1" not in user.read("status")


def cell(user: User, name: str) -> tuple[int, int]:
    lines = user.read("icicle").splitlines()
    y = next(place for place, line in enumerate(lines) if f"▏{name} " in line)
    return lines[y].index(f"▏{name} ") + 1, y


@pytest.mark.parametrize(
    ("kind", "shift", "step"),
    [
        (events.MouseScrollDown, True, 1),
        (events.MouseScrollUp, True, -1),
        (events.MouseScrollRight, False, 1),
        (events.MouseScrollLeft, False, -1),
    ],
)
async def test_the_wheel_sideways_pans(
    kind: type[events.MouseEvent], shift: bool, step: int, decode: Path
) -> None:
    async with open_app(decode) as user:
        await user.press("down", "down", "down", "right", "down", "enter")
        assert user.zoomed == "model.layers.1.mlp"
        view = user.screen.view
        low = view.viewport.zoom.span.low
        icicle = user.screen.query_one("#icicle", Icicle)
        icicle.post_message(kind(icicle, 5, 1, 0, 0, 0, shift, False, False))
        await user.settle()
        assert (view.viewport.zoom.span.low - low) * step > 0


async def test_only_what_lies_in_the_zoomed_part_is_a_share_of_it() -> None:
    async with alone() as app:
        app.view.zoom_to(Zoom(0, Span(30, 100)))  # cuts b, of 60, in half
        app.icicle.show(app.view)
        row = next(line for line in app.lines() if "▏b" in line)
        assert "42.9 %" in row.partition("▏d")[2]
        assert "%" not in row.partition("▏d")[0]


async def test_panning_at_the_edge_says_so(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("comma")
        assert "nothing beyond" in user.read("status")


async def test_closer_and_farther_keep_the_selected_frame_in_sight(decode: Path) -> None:
    async with open_app(decode) as user:
        view = user.screen.view
        await user.press("down", "down", "down")
        whole = view.viewport.total
        await user.press("plus")
        assert view.viewport.total == whole // 2
        assert user.selected == "model.layers.0"
        await user.press("minus")
        assert view.viewport.total == whole


async def test_a_page_scrolls_and_stays(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (80, 24)) as user:
        icicle = user.screen.query_one("#icicle", Icicle)
        user.open_chains()
        await user.settle()
        await user.press("pagedown")
        assert icicle.scroll_offset.y == icicle.size.height
        assert user.selected == "all"
