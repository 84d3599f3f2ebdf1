"""The Textual app: appears at once, loads in a worker, then shows the trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType, Keymap
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from flame.config import DEFAULTS, Config, is_in_browser
from flame.core.errors import CancelledError, FlameError, UsageError
from flame.tui.background import hand_in
from flame.tui.loading import LoadingScreen
from flame.tui.text import printable
from flame.tui.themes import filters_of, set_up

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.command import Provider

    from flame.core.options import LoadOptions
    from flame.core.selection import Selection
    from flame.core.sources import Inputs
    from flame.state import State
    from flame.tui.session import Projection, Session

DUMB = ("dumb", "unknown")
GRACE = 1.0
"""Seconds that a cancelled load has to clean up after itself before the process ends."""


def run(
    inputs: Inputs,
    options: LoadOptions,
    selection: Selection,
    state: State | None = None,
    config: Config = DEFAULTS,
) -> int:
    """Show the traces ``inputs``, at the place of ``state``, until the user quits.

    Returns the exit code.

    A trace that cannot be shown is explained in the app and, after it has closed, in one line on
    stderr. Raises UsageError where the terminal cannot draw, and for wrong keys in ``config``.
    """
    if not is_in_browser():
        _check_terminal()
    app = FlameApp(inputs, options, selection, state, config)
    app.run()
    app.stop_loading()
    if app.crash is not None:
        raise app.crash
    if isinstance(app.failure, FlameError):
        if not isinstance(app.failure, CancelledError):
            print(f"flame: {printable(str(app.failure))}", file=sys.stderr)
        return app.failure.exit_code
    return 0


def _check_terminal() -> None:
    terminal = os.environ.get("TERM", "")
    if terminal in DUMB:
        raise UsageError(f"TERM={terminal} cannot show the app: use --print for the static view")
    if sys.__stderr__ is None or not sys.__stderr__.isatty():
        raise UsageError("stderr is no terminal, but the app draws there: use --print")


def _commands() -> type[Provider]:
    from flame.tui.commands import Commands

    return Commands


def _keymap_of(config: Config) -> Keymap:
    if not config.keys:
        return {}
    from flame.tui.keymap import keymap_of

    return keymap_of(config.keys)


class FlameApp(App[None]):
    """``failure`` is why no trace is shown, ``crash`` an error that should not have happened."""

    CSS_PATH = "app.tcss"
    TITLE = "flame"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", show=False, priority=True)]

    class Progressed(Message):
        """The load has come this far."""

        def __init__(self, stage: str, done: int, expected: int) -> None:
            super().__init__()
            self.stage = stage
            self.done = done
            self.expected = expected

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FlameApp.Progressed)

    class Loaded(Message):
        """The trace is there."""

        def __init__(self, session: Session, shown: Projection) -> None:
            super().__init__()
            self.session = session
            self.shown = shown

    class Failed(Message):
        """The trace cannot be shown."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(
        self,
        inputs: Inputs,
        options: LoadOptions,
        selection: Selection,
        state: State | None = None,
        config: Config = DEFAULTS,
    ) -> None:
        super().__init__()
        set_up(self, config.theme)
        self.config = config
        self.keymap = _keymap_of(config)
        self._drawn_through = filters_of(self, config.ascii)
        self.animation_level = "none"
        self.inputs = inputs
        self.options = options
        self.selection = selection
        self.state = state
        self.failure: FlameError | None = None
        self.crash: Exception | None = None
        self._loading = LoadingScreen(inputs.title)
        self._masked = False
        self._cancelled = Event()
        self._loader = Thread(target=self._load, daemon=True)

    def get_default_screen(self) -> Screen[None]:
        return self._loading

    def on_mount(self) -> None:
        self.set_keymap(self.keymap)
        self._loader.start()

    def get_line_filters(self) -> Sequence[LineFilter]:
        # Textual's own turn the terminal's colours into others, and into greys without colours.
        own = self.no_color or self.native_ansi_color
        return [*([] if own else super().get_line_filters()), *self._drawn_through]

    async def _present(self, screen: Screen[None]) -> None:
        """Show ``screen``, sent to the terminal once: Textual draws it several times over."""
        self._masked = True
        await self.push_screen(screen)
        later = screen.call_after_refresh
        later(later, later, self._unmask)

    def _unmask(self) -> None:
        self._masked = False
        self.screen.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if not self._masked:
            super()._display(screen, renderable)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Paste):  # Textual's palette would draw it as it is
            event.text = printable(event.text)
        await super().on_event(event)

    def action_command_palette(self) -> None:
        """Open the palette, but not over what has no commands: a dialog, a page, a palette."""
        if hasattr(self.screen, "commands"):
            from flame.tui.commands import AllCommands

            self.push_screen(AllCommands(id="--command-palette"))

    def pop_screen(self) -> AwaitComplete:
        """Close the page or dialog on top; the second of two quick clicks beside it closes none."""
        return super().pop_screen() if self.screen.is_modal else AwaitComplete()

    # The loader: the only code here that runs beside the event loop; it posts messages

    def _load(self) -> None:
        try:
            from flame.tui.session import open_session

            opened = open_session(self.inputs, self.options, self.selection, self._progress)
        except CancelledError:
            return
        except Exception as error:
            hand_in(self.Failed(error), self.post_message)
        else:
            hand_in(self.Loaded(*opened), self.post_message)

    def _progress(self, stage: str, done: int, expected: int) -> None:
        if self._cancelled.is_set():
            raise CancelledError("stopped")
        hand_in(self.Progressed(stage, done, expected), self.post_message)

    def stop_loading(self) -> None:
        """Make the loader stop, and give it a moment to do so."""
        self._cancelled.set()
        if self._loader.is_alive():
            self._loader.join(GRACE)

    # What the loader says

    def on_flame_app_progressed(self, message: Progressed) -> None:
        self._loading.report(message.stage, message.done, message.expected)

    async def on_flame_app_loaded(self, message: Loaded) -> None:
        from flame.tui.screen import MainScreen

        loaded = (message.session, message.shown)
        await self._present(MainScreen(*loaded, self.state, self.config, self.keymap))

    def on_flame_app_failed(self, message: Failed) -> None:
        if not isinstance(message.error, FlameError):
            raise message.error
        self.failure = message.error
        self._loading.fail(str(message.error))

    def on_loading_screen_left(self) -> None:
        self.failure = self.failure or CancelledError("stopped")
        self.exit()

    def _fatal_error(self) -> None:
        """Close instead of printing a traceback: `run` hands the error to its caller."""
        self.crash = self._exception
        self._close_messages_no_wait()
