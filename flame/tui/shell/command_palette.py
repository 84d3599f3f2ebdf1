"""Find the command of every key by its name, in a palette."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.keys import format_key
from textual.widgets import LoadingIndicator

from flame.core.projection.levels import LEVELS
from flame.tui.shell.actions import Action
from flame.tui.shell.commands import Command, id_of

_ABOUT = {Action.VIEW(-1): "previous view"} | {
    Action.LEVEL(level): f"the {level} level on or off" for level in LEVELS
}
"""What is said of one command where the help has a line for several of them."""


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
        for title, about, command in self._here():
            run = partial(self.screen.run_action, command.action)
            yield DiscoveryHit(title, run, help=about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, about, command in self._here():
            score = max(matcher.match(title), 0.9 * matcher.match(about))
            if score > 0:
                run = partial(self.screen.run_action, command.action)
                yield Hit(score, matcher.highlight(title), run, help=about)

    def _here(self) -> Iterator[tuple[str, str, Command]]:
        """(title, help, command) of what means something in the view that is shown."""
        about = ""
        for command in self._commands:
            about = command.help or about
            if (command.keys or command.help) and self._fits(command):
                yield _title(command), _ABOUT.get(command.action, about), command

    @property
    def _commands(self) -> Sequence[Command]:
        found: Sequence[Command] = getattr(self.screen, "commands", ())
        return found

    def _fits(self, command: Command) -> bool:
        view = getattr(self.screen, "pane_name", None)
        return view is not None and (not command.views or view in command.views)


def _title(command: Command) -> str:
    """``metric next  (m)`` of the command on key m."""
    words = id_of(command).removeprefix("flame.").replace("_", " ")
    key = format_key(command.keys.split(",")[0]) if command.keys else command.shown
    return f"{words}  ({key})"
