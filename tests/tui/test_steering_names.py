"""No name steers the terminal that the app draws on, in whichever view, dialog or page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.segment import Segment
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from flame.options.config import DEFAULTS
from flame.tui.shell.base_app import BaseApp
from flame.tui.toolkit.escaping import Escaping
from flame.tui.toolkit.lines import Piece, line_width
from tests.support.hostile.steering import OBEYED, STEERING, steering_dumps, steering_traces
from tests.support.tiers import deep_except
from tests.tui.conftest import User, open_app
from tests.tui.terminals import Terminal, start

SEVERAL = """
import sys
from pathlib import Path
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.tui.main.app import run
paths = tuple(sorted(Path(sys.argv[1]).iterdir()))
sys.exit(run(Inputs(paths), LoadOptions(), Selection()))
"""

VIEWS = ("icicle", "sandwich", "top", "timeline", "report")
OVER = ("question_mark", "w", "f", "p", "L", "m", "e", "ctrl+p", "R")
"""Keys that open a page or a dialog over a view."""

SHOWN = "␛]0;PWN␇"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The pictures that go to the terminal."""
    pictures: list[str] = []

    def display(self: App[None], screen: object, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            pictures.append(renderable.render_segments(self.console))

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(App, "_display", display)
    yield pictures


def obeyed(pictures: list[str]) -> list[str]:
    """What the names hold that a terminal obeys, and pictures do not make visible."""
    return [code for code in OBEYED if code in "".join(pictures)]


@pytest.mark.deep
@pytest.mark.parametrize("view", VIEWS)
async def test_no_name_is_obeyed_in_a_view(view: str, tmp_path: Path, sent: list[str]) -> None:
    first, *more = steering_traces(tmp_path)
    async with open_app(first, (150, 40), more=more) as user:
        await show(user, view)
        for key in ("down", "down", "right", "enter", "end", "d", "right_square_bracket"):
            await user.press(key)
        await user.press("slash", *"gemm", "enter", "n", "A", "u")
        await user.rest()
    assert obeyed(sent) == []
    assert SHOWN in "".join(sent)


@pytest.mark.deep
async def test_no_name_is_obeyed_in_a_page_or_dialog(tmp_path: Path, sent: list[str]) -> None:
    first, *more = steering_traces(tmp_path)
    async with open_app(first, (150, 40), more=more) as user:
        for key in OVER:
            await user.press(key, "down", "escape", "escape")
            assert obeyed(sent) == [], key


async def show(user: User, view: str) -> None:
    await user.press(*["tab"] * VIEWS.index(view))
    await user.rest()
    await user.until(lambda: not user.screen.reports.busy)


@pytest.mark.parametrize("width", deep_except((150,), (60, 110, 150, 220)))
async def test_no_name_of_a_process_is_obeyed(width: int, tmp_path: Path, sent: list[str]) -> None:
    first, *more = steering_dumps(tmp_path)
    async with open_app(first, (width, 40), more=more) as user:
        await user.rest()
    assert obeyed(sent) == []


@pytest.mark.deep
def test_no_name_reaches_a_real_terminal_as_it_is(
    terminals: list[Terminal], tmp_path: Path
) -> None:
    steering_traces(tmp_path)
    terminal = start(terminals, tmp_path, program=SEVERAL)
    terminal.read_until("gemm")
    received = terminal.output
    for key in ("\t", "\t", "\t", "\t", "?"):
        terminal.press(key)
        terminal.answered()
        received += terminal.output
    assert [code for code in OBEYED if code.encode() in received] == []


class Forgetful(Widget):
    """Draws a name as it is."""

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(STEERING, self.rich_style)])


class ForgetfulApp(BaseApp):
    """Shows nothing else."""

    def compose(self) -> ComposeResult:
        yield Forgetful()


async def test_what_a_widget_forgets_to_escape_is_escaped(sent: list[str]) -> None:
    app = ForgetfulApp(DEFAULTS, {})
    async with app.run_test(size=(60, 2)) as pilot:
        await pilot.pause()
    assert obeyed(sent) == []
    assert SHOWN in "".join(sent)


@pytest.mark.parametrize("text", [STEERING, "\u202eabc", "カ\x1b[2Jカ", "a\xa0b", "plain ▏…"])
def test_a_line_keeps_its_cells(text: str) -> None:
    before = [Segment("kept"), Segment(text)]
    after = Escaping().apply(before, Color(0, 0, 0))
    assert [one.cell_length for one in after] == [one.cell_length for one in before]
    assert all(one.text.isprintable() for one in after)


@pytest.mark.parametrize("piece", [Piece(STEERING), Piece("x")._replace(text=STEERING)])
def test_a_piece_is_measured_as_it_is_drawn(piece: Piece) -> None:
    assert piece.text.isprintable() and piece.text.startswith(SHOWN)
    assert line_width([piece]) == Segment(piece.text).cell_length
