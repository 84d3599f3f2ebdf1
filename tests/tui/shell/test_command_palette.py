"""The command palette: what it calls the commands, and which of them it has."""

from __future__ import annotations

from pathlib import Path

from textual.command import DiscoveryHit

from flame.tui.shell.command_palette import Commands
from tests.tui.conftest import User, open_app


async def found(user: User) -> dict[str, str]:
    """Help by title of everything the palette has before anything is typed."""
    hits = [hit async for hit in Commands(user.screen).discover()]
    return {str(hit.display): str(hit.help) for hit in hits if isinstance(hit, DiscoveryHit)}


async def test_commands_have_the_keys_that_are_on_keyboards(decode: Path) -> None:
    async with open_app(decode) as user:
        titles = set(await found(user))
        assert {"search  (/)", "help  (?)", "same name  (*)", "left  (←)"} <= titles


async def test_commands_that_share_a_line_of_help_say_what_they_do_alone(decode: Path) -> None:
    async with open_app(decode) as user:
        about = await found(user)
        assert about["view previous  (shift+tab)"] == "previous view"
        assert about["level stream  (4)"] == "the stream level on or off"
        assert about["next match  (n)"] == about["previous match  (N)"]


async def test_commands_of_other_views_are_left_out(decode: Path) -> None:
    async with open_app(decode) as user:
        assert "brush  (b)" not in await found(user)
        await user.press("shift+tab")
        assert "brush  (b)" in await found(user)
