"""Find the command of every key by its name, in a palette."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.keys import format_key
from textual.widgets import LoadingIndicator

from flame.tui.shell.command import Command, Offer, has_commands, id_of
from flame.tui.shell.palette_titles import TITLES


class AllCommands(CommandPalette):
    """Show Textual's palette, in which one may type and turn pages before the list is there."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)

    def _watch__list_visible(self) -> None:
        if self.query(CommandList):
            super()._watch__list_visible()
        else:
            self.call_later(self._watch__list_visible)

    async def _watch__show_busy(self) -> None:
        if self.query(LoadingIndicator):
            await super()._watch__show_busy()
        else:
            self.call_later(self._watch__show_busy)


class Commands(Provider):
    """Provide the commands that mean something on the screen as it is."""

    async def discover(self) -> Hits:
        for title, about, action in self._here():
            run = partial(self.screen.run_action, action)
            yield DiscoveryHit(title, run, help=about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, about, action in self._here():
            score = max(matcher.match(title), 0.9 * matcher.match(about))
            if score > 0:
                run = partial(self.screen.run_action, action)
                yield Hit(score, matcher.highlight(title), run, help=about)

    def _here(self) -> Iterator[Offer]:
        """What means something in the view that is shown, and with this trace."""
        screen: object = self.screen
        if not has_commands(screen):
            return
        about, here = "", dict[str, Offer]()
        for command in screen.commands:
            about = command.help or about
            name = id_of(command).removeprefix("flame.")
            if (
                (command.keys or command.help)
                and name in TITLES
                and _fits(command, screen.pane_name)
            ):
                title = f"{screen.said(TITLES[name])}  ({_key(command)})"
                here[name] = Offer(title, screen.said(about), command.action)
        offered = screen.offered
        for name in filter(here.__contains__, TITLES):
            yield from (here[name], *offered.get(name, ()))


def _fits(command: Command, view: str) -> bool:
    return not command.views or view in command.views


def _key(command: Command) -> str:
    return format_key(command.keys.split(",")[0]) if command.keys else command.shown
