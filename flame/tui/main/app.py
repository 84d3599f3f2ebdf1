"""Run the app on a trace: it appears at once, loads in a thread, then shows the trace."""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cached_property, partial
from threading import Event, Thread
from typing import TYPE_CHECKING

from textual.binding import Keymap
from textual.message import Message
from textual.screen import Screen

from flame.core.errors import CancelledError, FlameError
from flame.core.starting import release_memory
from flame.options.config import DEFAULTS, Config
from flame.tui.shell.base_app import BaseApp, check_terminal
from flame.tui.shell.loading_screen import LoadingScreen
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import hand_in, in_background

if TYPE_CHECKING:
    from collections.abc import Callable

    from flame.core.loading.inputs import Inputs
    from flame.core.options import LoadOptions, Progress
    from flame.core.projection.selection import Selection
    from flame.core.reopening.profile_cache import ProfileCache
    from flame.options.state import AppState
    from flame.tui.session.session import Projection, Session

    Wanted = Selection | Callable[[], Selection]

GRACE = 1.0
"""Seconds that a cancelled load has to clean up after itself before the process ends."""


def run(
    inputs: Inputs,
    options: LoadOptions,
    selection: Wanted,
    state: AppState | None = None,
    config: Config = DEFAULTS,
    start: Start | None = None,
) -> int:
    """Show the traces ``inputs``, at the place of ``state``, until the user quits.

    Returns the exit code. What ``selection`` is, is asked once the app has appeared.

    A trace that cannot be shown is explained in the app and, after it has closed, in one line on
    stderr. Raises UsageError where the terminal cannot draw, and for wrong keys in ``config``.
    """
    check_terminal("use --print for the static view")
    return FlameApp(inputs, options, selection, state, config, start).run_to_end()


def cache_of(config: Config) -> ProfileCache | None:
    """Return the cache of loaded traces, unless ``config`` wants none."""
    if not config.cache:
        return None
    from flame.core.reopening.profile_cache import ProfileCache

    return ProfileCache()


class FlameApp(BaseApp):
    """Load traces that are complete, and show them."""

    class Progressed(Message):
        """Say how far the load is."""

        def __init__(self, stage: str, done: int, expected: int) -> None:
            super().__init__()
            self.stage = stage
            self.done = done
            self.expected = expected

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, FlameApp.Progressed)

    class Loaded(Message):
        """Bring the trace."""

        def __init__(self, session: Session, shown: Projection) -> None:
            super().__init__()
            self.session = session
            self.shown = shown

    class Failed(Message):
        """Say why the trace cannot be shown."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(
        self,
        inputs: Inputs,
        options: LoadOptions,
        selection: Wanted,
        state: AppState | None = None,
        config: Config = DEFAULTS,
        start: Start | None = None,
    ) -> None:
        super().__init__(config, self._keymap_of(config) if config.keys else {}, start)
        self.options = options
        self._wanted = selection
        self.state = state
        self.prepare(inputs)

    def _keymap_of(self, config: Config) -> Keymap:
        from flame.tui.shell.keymap import keymap_of

        return keymap_of(config.keys)

    def prepare(self, inputs: Inputs) -> None:
        """Make ready to load ``inputs``."""
        self.inputs = inputs
        self._loading = LoadingScreen(inputs.title)
        self._cancelled = Event()
        self._cache: ProfileCache | None = None
        self._keeper: Thread | None = None
        self._loader = Thread(target=self._load, args=(inputs, self._cancelled), daemon=True)

    @cached_property
    def selection(self) -> Selection:
        """Return what is to be shown of the traces, which may take to import numpy."""
        return self._wanted() if callable(self._wanted) else self._wanted

    def get_default_screen(self) -> Screen[None]:
        return self._loading

    def on_mount(self) -> None:
        self.call_after_refresh(self.begin)  # The screen is drawn before numpy is imported.

    def begin(self) -> None:
        """Do what is to be done at once: load."""
        self._loader.start()

    # The loader: the only code here that runs beside the event loop; it posts messages

    def _load(self, inputs: Inputs, cancelled: Event) -> None:
        def progress(stage: str, done: int, expected: int) -> None:
            if cancelled.is_set():
                raise CancelledError("stopped")
            hand_in(self.Progressed(stage, done, expected), self.post_message)

        try:
            opened = self._open(inputs, progress)
        except CancelledError:
            return
        except Exception as error:
            if not cancelled.is_set():
                hand_in(self.Failed(error), self.post_message)
        else:
            if not cancelled.is_set():
                hand_in(self.Loaded(*opened), self.post_message)
                self._remember(inputs)

    def _open(self, inputs: Inputs, progress: Progress) -> tuple[Session, Projection]:
        """Load ``inputs``, and work out what is shown first of them."""
        selection = self.selection
        from flame.tui.ranks.session import session_of
        from flame.tui.session.recall import with_preferences
        from flame.tui.session.session import open_session

        recall = partial(with_preferences, self.start.recalled, self.config.framework)
        self._cache = cache_of(self.config)
        given = (inputs, self.options, selection, progress, recall, self._cache)
        return open_session(*given, session_of)

    def _remember(self, inputs: Inputs) -> None:
        """Have the picker list ``inputs`` the next time, where there is room for that."""
        if self.config.recent and inputs.is_local:
            from flame.options.recent import remember

            with suppress(OSError):
                remember(inputs.paths)

    def run_to_end(self) -> int:
        """Run until the user quits, and stop what may still load; returns the exit code."""
        self.run()
        self.stop_loading()
        return self.exit_code()

    def stop_loading(self) -> None:
        """Make the loader stop, and give it a moment to do so; and the keeper one to end."""
        self._cancelled.set()
        for thread in (self._loader, self._keeper):
            if thread is not None and thread.is_alive():
                thread.join(GRACE)

    # What the loader says

    def on_flame_app_progressed(self, message: Progressed) -> None:
        self._loading.report(message.stage, message.done, message.expected)

    async def on_flame_app_loaded(self, message: Loaded) -> None:
        if not self.is_headless:
            # Frames of a large trace are a million objects: to look at all of them for what can be
            # let go would hold up a key for a tenth of a second.
            gc.freeze()
        await self.present(self._screen_of(message.session, message.shown))

    def _screen_of(self, session: Session, shown: Projection) -> Screen[None]:
        """Make the screen that shows what has been loaded."""
        from flame.tui.main.screen import MainScreen
        from flame.tui.ranks.session import RanksProjection, RanksSession

        place = (self.state, self.config, self.keymap, self.start)
        if isinstance(session, RanksSession) and isinstance(shown, RanksProjection):
            from flame.tui.main.ranks_screen import RanksScreen

            return RanksScreen(session, shown, *place)
        return MainScreen(session, shown, *place)

    def on_main_screen_settled(self) -> None:
        """Keep what has been loaded: whatever the user waits for is there."""
        self._keeper = in_background(self._keep, 0, self.post_message)

    def _keep(self) -> None:
        if self._cache is not None:
            self._cache.write()
        release_memory()

    def on_flame_app_failed(self, message: Failed) -> None:
        if not isinstance(message.error, FlameError):
            raise message.error
        self.show_failure(message.error)

    def show_failure(self, error: FlameError) -> None:
        """Say why there is nothing to be shown."""
        self.failure = error
        self._loading.fail(str(error))

    def on_loading_screen_left(self) -> None:
        self.leave_loading()

    def leave_loading(self) -> None:
        """Do what is left where nothing will be shown: end."""
        self.failure = self.failure or CancelledError("stopped")
        self.exit()
