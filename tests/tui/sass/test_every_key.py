"""Every key of the view of instructions, and what it changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from flame.core.model.profile import Profile
from flame.tui.main.screen import MainScreen
from flame.tui.sass.screen import SassScreen
from flame.tui.shell.command import SUSPEND
from flame.tui.shell.command_palette import AllCommands
from flame.tui.shell.sass_commands import SASS_COMMANDS
from flame.tui.widgets.help_page import HelpPage
from tests.support.tiers import deep_except
from tests.tui.conftest import User
from tests.tui.sampled import HOTTEST, SECOND, open_made


class Seen(NamedTuple):
    """What a key may change, as far as a user can see it."""

    row: str
    version: int
    listing: tuple[bool, bool]
    unit: str
    search: str
    typing: bool
    reasons: bool
    over: type
    clipboard: str
    theme: str
    files: frozenset[str]
    note: str


def look(user: User) -> Seen:
    """What the view shows now; the screen below it where that was left."""
    view = next(one for one in user.app._seen if isinstance(one, SassScreen))  # type: ignore[attr-defined]
    listing = view._listing
    return Seen(
        listing.text(listing[view._cursor]),
        view._version,
        (view._source, view._folded),
        view._unit.value,
        view._finder.query.text if view._finder.query else "",
        view.focused is not None,
        not view.has_class("-no-details"),
        type(user.app.screen),
        user.app.clipboard,
        user.app.theme,
        frozenset(path.name for path in Path.cwd().iterdir()),
        "".join(piece.text for piece in view._note).strip(),
    )


Test = Callable[[Seen, Seen], object]


class Check(NamedTuple):
    """``first`` is pressed before; ``holds`` compares what was seen before and after the key."""

    holds: Test
    first: tuple[str, ...] = ()


def at(row: str) -> Test:
    """On the row that says so."""
    return lambda before, after: after.row.startswith(row) and before.row != after.row


def left(before: Seen, after: Seen) -> bool:
    return after.over is MainScreen


def noted(text: str) -> Test:
    return lambda before, after: text in after.note


CHECKS: dict[str, Check] = {
    "up": Check(at("gemm.cu:5")),
    "k": Check(at("gemm.cu:5")),
    "down": Check(at("gemm.cu:6")),
    "j": Check(at("gemm.cu:6")),
    "pageup": Check(at("gemm.cu:1")),
    "pagedown": Check(at("NOP")),
    "home": Check(at("gemm.cu:1")),
    "g": Check(at("gemm.cu:1")),
    "end": Check(at("NOP")),
    "G": Check(at("NOP")),
    "h": Check(at(SECOND)),
    "H": Check(at(HOTTEST), ("h",)),
    "slash": Check(lambda before, after: after.typing),
    "n": Check(at("gemm.cu:7"), ("slash", *"gemm.cu", "enter")),
    "N": Check(at("gemm.cu:5"), ("slash", *"gemm.cu", "enter")),
    "s": Check(lambda before, after: before.listing[0] and not after.listing[0]),
    "f": Check(lambda before, after: after.listing[1] and not before.listing[1]),
    "m": Check(lambda before, after: after.unit == "value"),
    "v": Check(lambda before, after: after.unit == "value"),
    "M": Check(lambda before, after: after.unit == "share"),
    "left_square_bracket": Check(noted("only one code")),
    "right_square_bracket": Check(noted("only one code")),
    "D": Check(noted("only a comparison has two sides")),
    "d": Check(lambda before, after: before.reasons and not after.reasons),
    "t": Check(lambda before, after: after.theme != before.theme),
    "y": Check(lambda before, after: after.clipboard.split()[1:3] == ["69", "66.3"]),
    "Y": Check(lambda before, after: after.clipboard.count("R8, R9") == 1),
    "o": Check(noted("not on this machine, only where the trace was made: /home/user/gemm.cu")),
    "S": Check(lambda before, after: len(after.files) == len(before.files) + 1),
    "ctrl+p": Check(lambda before, after: after.over is AllCommands),
    "question_mark": Check(lambda before, after: after.over is HelpPage),
    "f1": Check(lambda before, after: after.over is HelpPage),
    "escape": Check(left),
    "q": Check(left),
    "a": Check(left),
}


def test_every_key_is_checked() -> None:
    keys = {key for command in SASS_COMMANDS for key in command.keys.split(",") if key}
    assert keys - {SUSPEND.keys} == set(CHECKS)  # see test_suspend


@pytest.mark.parametrize("key", deep_except(list(CHECKS)[::4], CHECKS))
async def test_key(
    profile: Profile, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_made(profile) as user:
        await user.press("a")
        user.app._seen = list(user.app.screen_stack)  # type: ignore[attr-defined]
        await user.press(*CHECKS[key].first)
        before = look(user)
        await user.press(key)
        assert CHECKS[key].holds(before, look(user)), (before, look(user))
