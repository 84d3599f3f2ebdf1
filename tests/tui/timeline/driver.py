"""Drive the timeline by its keys' moves and by the mouse, in an app of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from rich.style import Style
from textual import events, on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions, silent
from flame.core.projection.selection import Selection
from flame.tui.session.carry import carry
from flame.tui.session.session import Projection, open_session
from flame.tui.timeline.pane import TimelinePane
from flame.tui.timeline.rows import TimelineRows
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.lines import RowView
from flame.tui.views.pane import Pane
from tests.support.waiting import PATIENCE


class TimelineApp(App[None]):
    """Nothing but the pane; filters are applied as the main screen does."""

    CSS = "Rows { scrollbar-size-vertical: 1; scrollbar-gutter: stable; }"

    def __init__(self, path: Path, selection: Selection) -> None:
        super().__init__()
        self.session, self.shown = open_session(Inputs((path,)), LoadOptions(), selection, silent)
        self.pane = TimelinePane(self.shown)
        self.note = ""

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.show(self.shown)

    @on(Pane.Changed)
    def _changed(self, message: Pane.Changed) -> None:
        if message.note is not None:
            self.note = message.note
        self.pane.show(self.shown)

    @on(Pane.Filtered)
    def _filtered(self, message: Pane.Filtered) -> None:
        self.take(replace(self.shown.selection, where=(message.filter,)))

    def take(self, selection: Selection) -> None:
        before, self.shown = self.shown, self.session.project([selection])
        carry(before.view, self.shown.view)
        self.pane.show(self.shown)


class User:
    """Asks for moves and reads the screen."""

    def __init__(self, app: TimelineApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.pane = app.pane

    @property
    def time(self) -> TimeView:
        found = self.pane._time
        assert found is not None
        return found

    @property
    def shown(self) -> Projection:
        return self.app.shown

    async def settle(self) -> None:
        await self.pilot.pause(0)
        await self.until(lambda: not self.pane.busy)
        await self.pilot.pause(0)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for ``condition``."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def does(self, *moves: Callable[[], object]) -> object:
        """Run ``moves``, each followed by what the main screen does after a key."""
        result: object = None
        for move in moves:
            result = move()
            self.pane.show(self.app.shown)
            await self.settle()
        return result

    def lines(self, name: str = "timeline-rows") -> list[str]:
        widget = self.app.screen.query_one(f"#{name}", RowView)
        return [widget.render_line(y).text for y in range(widget.size.height)]

    def cell(self, ms: float) -> int:
        """The cell of a time since the beginning of the trace."""
        return int(self.time.viewport.grid.cell(ms * 1_000_000))

    def row(self, label: str) -> int:
        return next(y for y, line in enumerate(self.lines()) if label in line)

    def style(self, row: int, cell: int) -> Style:
        """The style of ``cell`` (the labels not counted) of ``row``."""
        strip = self.pane.rows.render_line(row)
        at = self.pane.rows.labels + cell
        [segment, *_] = strip.crop(at, at + 1)
        assert segment.style is not None
        return segment.style

    @property
    def selected(self) -> str:
        """Name of the interval selected here; a frame is selected in the tree as well."""
        item = self.time.cursor.item
        return self.time.timeline.name(item, self.shown.view.tree.text) if item >= 0 else ""

    @property
    def in_tree(self) -> str:
        view = self.shown.view
        return view.tree.name(view.cursor.node)

    async def click(self, row: int, cell: int, times: int = 1) -> None:
        offset = (self.pane.rows.labels + cell, row)
        await self.pilot.click(TimelineRows, offset=offset, times=times)
        await self.settle()

    async def wheel(self, kind: type[events.MouseEvent], cell: int, held: str) -> None:
        rows = self.pane.rows
        x, shift, ctrl = rows.labels + cell, held == "shift", held == "ctrl"
        rows.post_message(kind(rows, x, 0, 0, 0, 0, shift, False, ctrl, x, 2))
        await self.settle()


@asynccontextmanager
async def open_timeline(
    path: Path,
    size: tuple[int, int] = (120, 20),
    selection: Selection | None = None,
    settled: bool = True,
) -> AsyncIterator[User]:
    app = TimelineApp(path, selection or Selection())
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot)
        if settled:
            await user.settle()
        yield user
