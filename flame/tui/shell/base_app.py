"""Share the look, the keys and the way to end of every app of flame."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual._compositor import CompositorUpdate
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType, Keymap
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.screen import Screen

from flame.console.erasing import erases_in_background
from flame.console.terminal import say
from flame.core.errors import CancelledError, FlameError, UsageError
from flame.options.config import Config, is_in_browser
from flame.tui.shell.command import SUSPEND, has_commands, id_of, stops_no_more
from flame.tui.shell.hangup import has_hung_up, reads_terminal
from flame.tui.shell.start import Start
from flame.tui.shell.terminal_cells import ChangedCells, TerminalCells
from flame.tui.toolkit.background import call_once
from flame.tui.toolkit.escaping import Escaping
from flame.tui.toolkit.late_answers import BackgroundTold, driver_for
from flame.tui.toolkit.text import printable
from flame.tui.toolkit.themes import AUTO, filters_of, set_up, theme_for

if TYPE_CHECKING:
    from textual.command import Provider

DUMB = ("dumb", "unknown")

_LONGEST_HOLD = 0.25
"""Seconds that a picture is held back at most."""

_SOON = 0.001
"""Seconds from one look at what waits to be drawn to the next."""

_BEHIND_PERIOD = 0.02
"""Seconds from one look to the next whether the terminal has taken what was sent."""

_TERMINAL_PERIOD = 2.0
"""Seconds from one look for the terminal to the next."""


def is_behind(driver: Driver | None) -> bool:
    """Tell whether the terminal has not taken yet what it was sent, as over a slow link."""
    writer = driver._writer_thread if isinstance(driver, LinuxDriver) else None
    return writer is not None and not writer._queue.empty()


def check_terminal(instead: str) -> None:
    """UsageError, with what to do ``instead``, where no app can be drawn; a browser can always."""
    if is_in_browser():
        return
    terminal = os.environ.get("TERM", "")
    if terminal in DUMB:
        raise UsageError(f"TERM={terminal} cannot show the app: {instead}")
    if sys.__stderr__ is None or not sys.__stderr__.isatty():
        raise UsageError(f"stderr is no terminal, but the app draws there: {instead}")


def _commands() -> type[Provider]:
    from flame.tui.shell.command_palette import Commands

    return Commands


class BaseApp(App[None]):
    """Run a screen in flame's look and keys, and say how it ended.

    ``by_category``: what ran on a GPU has the colour of its category, not of its level.
    ``failure`` is why nothing is shown, ``crash`` an error that should not have happened.
    """

    CSS_PATH = Path(__file__).with_name("app.tcss")  # apps in other packages have it, too
    TITLE = "flame"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+l", "redraw", show=False, priority=True),
        Binding(SUSPEND.keys, "suspend_process", show=False, priority=True, id=id_of(SUSPEND)),
    ]

    def __init__(self, config: Config, keymap: Keymap, start: Start | None = None) -> None:
        self.start = start or Start()
        self.start.background.wait()
        self.config = self.start.look(config)
        super().__init__(driver_class=driver_for(self.start.background))
        self._guessed = self.theme_of(AUTO)
        set_up(self, self.theme_of(self.config.theme))
        self.keymap = keymap
        self._escaping = Escaping()
        self._drawn_through = filters_of(self, config.ascii)
        self.animation_level = "none"
        self.failure: FlameError | None = None
        self.crash: Exception | None = None
        self.by_category = False
        self._masked = False
        self._held_until = 0.0
        self._catches_up = False
        self._cells = TerminalCells(erases_in_background(os.environ))

    def on_mount(self) -> None:
        self.set_keymap(self.keymap)
        for signal in (self.app_suspend_signal, self.app_resume_signal):
            signal.subscribe(self, self._forget_cells)

        if not self.is_headless and reads_terminal():
            self.set_interval(_TERMINAL_PERIOD, self._end_without_terminal)

    def _end_without_terminal(self) -> None:
        """Leave once the terminal is gone and no signal has said so, as after `docker exec`.

        Textual would look for keys for ever, and take all of a processor.
        """
        if has_hung_up():
            self.failure = CancelledError("the terminal is gone")
            self.exit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "suspend_process" or not stops_no_more(self.keymap)

    def theme_of(self, wanted: str) -> str:
        """Return the theme that is meant by ``wanted``, as the configuration has it."""
        return theme_for(self.start.background.seems_light) if wanted == AUTO else wanted

    def remember_theme(self) -> None:
        """Have the theme remembered that is shown; that for the background needs no memory."""
        shown = self.theme
        self.start.memory.remember(theme=None if shown == self.theme_of(AUTO) else shown)

    @on(BackgroundTold)
    def _background_told(self) -> None:
        """Take the theme for the background, which was not known, unless the user has chosen."""
        if self.config.theme == AUTO and self.theme == self._guessed:
            self.theme = self._guessed = self.theme_of(AUTO)

    def exit_code(self) -> int:
        """Say on stderr how it ended where it failed; raises what should not have happened.

        To be asked after `run`.
        """
        if self.crash is not None:
            raise self.crash
        if self.failure is None:
            return 0
        if not isinstance(self.failure, CancelledError):
            say(str(self.failure))
        return self.failure.exit_code

    @property
    def has_colours(self) -> bool:
        """Whether what is drawn can be told apart by its colours alone, and is not in ASCII."""
        return not (self.no_color or self.native_ansi_color or self._drawn_through)

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Textual's own turn the terminal's colours into others, and into greys without colours.
        own = self.no_color or self.native_ansi_color
        theirs = [] if own else super().get_line_filters()
        return [self._escaping, *theirs, *self._drawn_through]

    async def present(self, screen: Screen[None]) -> None:
        """Show ``screen``, sent to the terminal once: Textual draws it several times over."""
        self._masked = True
        await self.push_screen(screen)
        later = screen.call_after_refresh
        later(later, later, self._unmask)

    def _unmask(self) -> None:
        self._masked = False
        self.screen.refresh()

    def hold(self) -> None:
        """Draw nothing until `release`, so that what changes in several goes is one picture.

        But not for long, whatever happens: the screen would stand still.
        """
        self._held_until = monotonic() + _LONGEST_HOLD
        call_once(self, _LONGEST_HOLD, self._release_late)

    def _release_late(self) -> None:
        """Draw what has been held for too long, but not what is held since."""
        if monotonic() >= self._held_until:
            self.release()

    @property
    def holds(self) -> bool:
        """Whether nothing is to be drawn at the moment."""
        return monotonic() < self._held_until

    def await_terminal(self) -> bool:
        """Return whether the terminal is behind; what changes is drawn when it no longer is.

        Else pictures of keys that are long past would queue up: Textual's thread that writes has
        room for 30 of them, and stops the app when these are there.
        """
        if not self._catches_up and is_behind(self._driver):
            self._catches_up = True
            call_once(self, _BEHIND_PERIOD, self._catch_up)
        return self._catches_up

    def _catch_up(self) -> None:
        if is_behind(self._driver):
            call_once(self, _BEHIND_PERIOD, self._catch_up)
        else:
            self._catches_up = False
            self._draw_changes()

    def release_when_ready(self, complete: Callable[[], bool] = lambda: True) -> None:
        """Draw as soon as all is ``complete`` and nothing waits to be laid out or updated."""
        if not self._held_until:
            return
        if not self.screen_stack or (self._is_ready() and complete()):
            self.release()
        else:
            call_once(self, _SOON, partial(self.release_when_ready, complete))

    def _is_ready(self) -> bool:
        """Whether nothing waits; what waits for Textual's clock alone is done now, not in 16 ms."""
        screen = self.screen
        seen = (screen, *screen._compositor.visible_widgets)
        if any(one.message_queue_size for one in seen):
            return False
        waits = any(one._repaint_required or one._layout_required for one in seen)
        if waits or screen._dirty_widgets:
            screen.call_next(screen._on_timer_update)
            return False
        return True

    def release(self) -> None:
        """Draw what has changed meanwhile."""
        if self._held_until:
            self._held_until = 0.0
            self._draw_changes()

    def _draw_changes(self) -> None:
        for screen in self.screen_stack:
            screen._compositor_refresh()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if self._masked:
            return
        if isinstance(renderable, CompositorUpdate):
            renderable = self._changed(renderable)
        super()._display(screen, renderable)

    def _changed(self, update: CompositorUpdate) -> ChangedCells | None:
        """What ``update`` changes on the terminal; None where that is nothing.

        Textual would move the cursor all the same, in a frame of its own.
        """
        changed = ChangedCells(update, self._cells, self.size)
        draws = self._running and not (self._closed or self.is_headless or self._batch_count)
        stays = self.cursor_position == self._previous_cursor_position
        return None if draws and stays and not changed.render_segments(self.console) else changed

    def _forget_cells(self, _: object) -> None:
        self._cells.forget()

    def action_redraw(self) -> None:
        """Draw every cell anew: another program has written over them."""
        self._cells.forget()
        self.screen.refresh()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Paste):  # Textual's palette would draw it as it is
            event.text = printable(event.text)
        elif isinstance(event, events.Resize):  # which may have cut off what is as wide again now
            self._cells.forget()
        await super().on_event(event)

    def action_command_palette(self) -> None:
        """Open the palette, but not over what has no commands: a dialog, a page, a palette."""
        if has_commands(self.screen):
            from flame.tui.shell.command_palette import AllCommands

            self.push_screen(AllCommands(id="--command-palette"))

    def pop_screen(self) -> AwaitComplete:
        """Close the page or dialog on top; the second of two quick clicks beside it closes none."""
        return super().pop_screen() if self.screen.is_modal else AwaitComplete()

    def _fatal_error(self) -> None:
        """Close instead of printing a traceback: `exit_code` hands the error to its caller."""
        if not self._exit:  # else a screen that was still being put together has been left
            self.crash = self._exception
        self._close_messages_no_wait()
