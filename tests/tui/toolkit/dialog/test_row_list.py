"""Lists of rows: what is composed, selected, marked and in sight."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from flame.tui.toolkit.dialog.row_list import CheckList, LazyLines, RowList
from flame.tui.toolkit.lines import Line, Piece, SomeLines

MANY = 10_000
HEIGHT = 20


class Numbers(App[None]):
    """Lists numbers, the selected one marked; counts the lines that it composes."""

    def __init__(self, number: int = MANY, checks: bool = False) -> None:
        super().__init__()
        self.number = number
        self.composed = 0
        self.rows: RowList = (CheckList if checks else RowList)(self._lines)

    def _lines(self, width: int, height: int) -> SomeLines:
        return LazyLines(self.number, self._line)

    def _line(self, row: int) -> Line:
        self.composed += 1
        return [Piece(f"{'>' if row == self.rows.cursor else ' '}{row}")]

    def compose(self) -> ComposeResult:
        yield self.rows

    @property
    def shown(self) -> list[str]:
        """What is on the screen."""
        lines = (self.rows.render_line(y).text.strip() for y in range(self.rows.size.height))
        return [line for line in lines if line]


@asynccontextmanager
async def running(app: Numbers) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        await pilot.pause()
        yield pilot


async def test_of_many_rows_only_those_in_sight_are_composed() -> None:
    app = Numbers()
    async with running(app) as pilot:
        assert app.shown[:2] == [">0", "1"] and len(app.shown) == HEIGHT
        assert app.composed < 20 * HEIGHT
        for move in (1, 1, MANY, -1):
            app.composed = 0
            app.rows.move(move)
            await pilot.pause()
            assert app.composed <= 3 * HEIGHT
        assert app.shown[-2:] == [f">{MANY - 2}", f"{MANY - 1}"]


async def test_no_move_leaves_the_rows() -> None:
    app = Numbers()
    async with running(app) as pilot:
        app.rows.move(HEIGHT)
        await pilot.pause()
        assert app.shown[-1] == f">{HEIGHT}"
        app.rows.action_last()
        await pilot.pause()
        assert app.shown[-1] == f">{MANY - 1}"
        app.rows.move(5)
        assert app.rows.cursor == MANY - 1
        app.rows.move(-MANY)
        assert app.rows.cursor == 0


async def test_a_click_selects_its_row_also_when_scrolled() -> None:
    app = Numbers()
    async with running(app) as pilot:
        app.rows.action_last()
        await pilot.pause()
        await pilot.click(app.rows, offset=(1, 3))
        assert app.rows.cursor == MANY - HEIGHT + 3


async def test_what_is_selected_and_in_sight_stays_where_rows_come_and_go() -> None:
    app = Numbers(100)
    async with running(app) as pilot:
        app.rows.cursor = 50
        app.rows.move(-5)
        await pilot.pause()
        before = app.shown
        for number in (120, 90):
            app.number = number
            app.rows.update()
            await pilot.pause()
            assert app.shown == before
        app.number = 10
        app.rows.update()
        await pilot.pause()
        assert app.shown == [*map(str, range(9)), ">9"]


async def test_a_row_may_be_selected_before_there_are_any() -> None:
    app = Numbers(30)
    app.rows.cursor = 25
    async with running(app):
        assert ">25" in app.shown


async def test_rows_that_there_are_not_cannot_be_selected() -> None:
    app = Numbers(30)
    app.rows.cursor = 40
    async with running(app) as pilot:
        assert app.shown[-1] == ">29"
        app.rows.cursor = 40
        app.rows.update()
        assert app.rows.cursor == 29
        for number, shown in ((0, []), (3, ["0", "1", ">2"])):
            app.number = number
            app.rows.update()
            await pilot.pause()
            assert app.shown == shown


async def test_marks_belong_to_values() -> None:
    app = Numbers(4, checks=True)
    rows = app.rows
    assert isinstance(rows, CheckList)
    async with running(app) as pilot:
        rows.offer([7, 5, 3, 1], [3, 9])
        rows.flip()
        rows.cursor = 2
        rows.flip()
        await pilot.pause()
        assert rows.selected == [7]
        await pilot.click(rows, offset=(0, 3))
        await pilot.pause()
        assert rows.selected == [7, 1] and rows.cursor == 3
        rows.offer([7, 5], [])
        assert rows.selected == [] and rows.cursor == 0


async def test_two_quick_clicks_mark_a_row_each() -> None:
    app = Numbers(4, checks=True)
    rows = app.rows
    assert isinstance(rows, CheckList)
    async with running(app) as pilot:
        rows.offer([7, 5, 3, 1], [])
        await pilot.pause()
        driver = app._driver
        assert driver is not None
        for y in (1, 3):
            for kind in (events.MouseDown, events.MouseUp):
                driver.process_message(kind(None, 2, y, 0, 0, 1, False, False, False, 2, y))
        await pilot.pause()
        assert rows.selected == [5, 1]


async def test_an_empty_list_can_be_moved_in_and_marks_nothing() -> None:
    app = Numbers(0, checks=True)
    rows = app.rows
    assert isinstance(rows, CheckList)
    async with running(app):
        rows.offer([], [])
        for way in (1, -1):
            rows.move(way)
        rows.flip()
        assert rows.selected == []
