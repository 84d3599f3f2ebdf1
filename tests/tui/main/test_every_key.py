"""Every key of the main screen, in every view: each does what the help says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.actions import parse
from textual.screen import ModalScreen

from flame.tui.session.tree_view import TreeView
from flame.tui.shell.command import Command
from flame.tui.shell.commands import COMMANDS, means_something
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.lines import Lines
from flame.tui.toolkit.themes import NAMES
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.search_box import SearchBox
from tests.tui.conftest import USUAL, User, open_app
from tests.tui.main.key_checks import (
    ELSEWHERE,
    NOTHING,
    START,
    VIEWS,
    Check,
    Seen,
    check_of,
    look,
    name_of,
)

SIZE = (110, 15)


async def begin(user: User, view: str) -> None:
    """As on opening, in ``view``, with `START` selected.

    Not a new app, which would take ten times as long.
    """
    screen, top = user.screen, user.screen.query_one(TopPane)
    while isinstance(user.app.screen, ModalScreen):
        await user.press("escape")
    screen.set_focus(None)
    screen.query_one(SearchBox).show(None)
    screen._search(None)
    screen._project(USUAL)
    await user.settle()
    user.app.theme, user.app._clipboard = NAMES[0], ""
    screen.set_class(False, "-no-details")
    top._wanted, top._kind = ("own", False), None
    timeline = screen.query_one(TimelinePane)
    if timeline._time is None:
        await turn(user, "timeline")
    if screen.pane is timeline:  # it looks for what is selected only when it is turned to
        await turn(user, "icicle")
    timeline._followed, time = (None, ()), timeline._time
    assert time is not None
    time.viewport.brush = None
    time.gaps.clear()
    timeline.escape()
    screen.shown.view.reset()
    screen.shown.view.cursor.select(node_of(screen.shown.view))
    await turn(user, view)
    if view == "report":
        screen.parts.report.choose("kernels")
        content = screen.parts.report._content
        assert content is not None
        content._sorted.clear()
        screen._show()
    if view == "sandwich":
        screen.action_move("home")
    screen.query_one("#details", Lines).scroll_to(y=0, animate=False)
    await user.settle()


async def turn(user: User, view: str) -> None:
    """Show ``view``, and wait for it."""
    user.screen.action_show_view(view)
    await user.settle()


def node_of(view: TreeView) -> int:
    """Where `START` is."""
    return next(node for node in range(len(view.tree)) if view.tree.name(node) == START)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TMUX", raising=False)


def test_every_command_has_a_check() -> None:
    for command in COMMANDS:
        for view in command.views or VIEWS:
            assert name_of(command) in ELSEWHERE or check_of(command, view), (command, view)


@pytest.mark.deep
@pytest.mark.parametrize("view", VIEWS)
async def test_every_key_does_what_it_says(decode: Path, view: str) -> None:
    wrong = {}
    async with open_app(decode, SIZE) as user:
        for command in COMMANDS:
            for key in keys_in(command, view):
                if meant_by(key, view) not in (command, None):
                    continue
                await begin(user, view)
                if differs := await wrongly(user, key, expected(command, view)):
                    wrong[f"{key} ({name_of(command)})"] = differs
    assert not wrong


def meant_by(key: str, view: str) -> Command | None:
    """The first command of ``key`` that means something in ``view``."""
    of_key = (command for command in COMMANDS if key in command.keys.split(","))
    return next((command for command in of_key if _means(command, view)), None)


def _means(command: Command, view: str) -> bool:
    action, parameters = parse(command.action)[1:]
    return means_something(action, parameters, view)


def keys_in(command: Command, view: str) -> list[str]:
    """The keys to press in ``view``: all that mean the same in one view, the first in others."""
    keys = command.keys.split(",") if command.keys else []
    return keys if view == (command.views or VIEWS)[0] else keys[:1]


def expected(command: Command, view: str) -> Check | None:
    """What to see of ``command``; None of those that other tests are about."""
    if name_of(command) in ELSEWHERE:
        return None
    if not _means(command, view):
        return NOTHING
    check = check_of(command, view)
    assert check is not None
    return check


async def wrongly(user: User, key: str, check: Check | None) -> str:
    """What ``key`` has changed, if that is not what ``check`` is for."""
    if check is None:
        return ""
    await user.press(*check.first)
    before = look(user)
    await user.press(key)
    after = look(user)
    return "" if check.holds(before, after) else f"changed {differing(before, after)}"


def differing(before: Seen, after: Seen) -> dict[str, tuple[object, object]]:
    """The fields that are not the same."""
    pairs = zip(Seen._fields, before, after, strict=True)
    return {name: (one, other) for name, one, other in pairs if one != other}
