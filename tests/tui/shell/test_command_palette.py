"""The command palette: what it calls the commands, and which of them it has."""

from __future__ import annotations

from pathlib import Path

from textual.command import DiscoveryHit

from flame.tui.shell.command import id_of
from flame.tui.shell.command_palette import Commands
from flame.tui.shell.commands import COMMANDS, DIFF_COMMANDS, LIVE_COMMANDS, RANKS_COMMANDS
from flame.tui.shell.palette_titles import TITLES
from flame.tui.shell.sass_commands import SASS_COMMANDS
from tests.tui.conftest import User, open_app

MOVES = {
    *("left", "right", "up", "down", "home", "end", "fork", "page_up", "page_down"),
    *("closer", "farther", "pan_left", "pan_right", "palette"),
}


async def found(user: User) -> dict[str, str]:
    """Help by title of everything the palette has before anything is typed."""
    hits = [hit async for hit in Commands(user.screen).discover()]
    return {str(hit.display): str(hit.help) for hit in hits if isinstance(hit, DiscoveryHit)}


async def test_commands_have_the_keys_that_are_on_keyboards(decode: Path) -> None:
    async with open_app(decode) as user:
        titles = set(await found(user))
        assert {"Search names  (/)", "Help  (?)", "Undo  (z)"} <= titles


async def test_the_most_used_come_first_and_moves_not_at_all(decode: Path) -> None:
    async with open_app(decode) as user:
        titles = [*await found(user)]
        assert titles[:2] == ["Search names  (/)", "Show callers and callees  (x)"]
        assert not any("←" in title or "↑" in title for title in titles)


async def test_a_level_is_said_by_name(decode: Path) -> None:
    async with open_app(decode) as user:
        assert "Show or hide the level stream  (4)" in await found(user)


async def test_commands_of_other_views_are_left_out(decode: Path) -> None:
    async with open_app(decode) as user:
        assert "Brush a window of time  (b)" not in await found(user)
        await user.press("shift+tab", "shift+tab")
        assert "Brush a window of time  (b)" in await found(user)


def test_every_command_but_moves_has_a_title_that_begins_with_a_capital() -> None:
    commands = (
        *COMMANDS,
        *LIVE_COMMANDS,
        *DIFF_COMMANDS,
        *RANKS_COMMANDS,
        *SASS_COMMANDS,
    )
    named = (one for one in commands if one.keys or one.help)
    names = {id_of(one).removeprefix("flame.") for one in named}
    ordinals = {name for name in names if name.startswith("sort_by_") and name != "sort_by_name"}
    assert names - ordinals - set(TITLES) == MOVES
    assert set(TITLES) <= names
    assert len(set(TITLES.values())) == len(TITLES)
    assert all(title[0].isupper() for title in TITLES.values())
