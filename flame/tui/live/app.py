"""Run the app on a recording that goes on: it appears at once and follows what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.screen import Screen

from flame.core.live.window import LAST_10, LiveWindow
from flame.options.config import DEFAULTS, Config
from flame.tui.live.feed import LiveFeed, NewDumps
from flame.tui.live.waiting_screen import WaitingScreen
from flame.tui.live.worker import LiveRequest, LiveWorker, Renewed, StatusChanged, WorkerFailed
from flame.tui.session.recall import with_preferences
from flame.tui.shell.base_app import BaseApp
from flame.tui.shell.start import Start

if TYPE_CHECKING:
    from flame.core.options import LoadOptions
    from flame.core.projection.selection import Selection
    from flame.tui.live.screen import LiveScreen


def run_live(
    feed: LiveFeed,
    watch: NewDumps | None,
    title: str,
    options: LoadOptions,
    selection: Selection,
    window: LiveWindow = LAST_10,
    config: Config = DEFAULTS,
    start: Start | None = None,
) -> int:
    """Follow ``feed``, and what ``watch`` finds besides, until the user leaves.

    ``title`` names the recording; ``selection`` is shown first, of ``window``. Returns the exit
    code. Raises UsageError for wrong keys in ``config``. The terminal has been checked.
    """
    app = LiveApp(feed, watch, title, options, selection, window, config, start)
    app.run()
    app.worker.stop()
    return app.exit_code()


class LiveApp(BaseApp):
    """Wait until something has been recorded, then show it while it goes on."""

    def __init__(
        self,
        feed: LiveFeed,
        watch: NewDumps | None,
        title: str,
        options: LoadOptions,
        selection: Selection,
        window: LiveWindow = LAST_10,
        config: Config = DEFAULTS,
        start: Start | None = None,
    ) -> None:
        from flame.tui.shell.commands import LIVE_COMMANDS
        from flame.tui.shell.keymap import keymap_of

        super().__init__(config, keymap_of(config.keys, LIVE_COMMANDS), start)
        self._selection = with_preferences(self.start.recalled, config.framework, selection)
        self._waiting = WaitingScreen(title)
        self._live: LiveScreen | None = None
        self.worker = LiveWorker(feed, watch, title, options, window, self._wish, self.post_message)

    def get_default_screen(self) -> Screen[None]:
        return self._waiting

    def on_mount(self) -> None:
        self.worker.start()

    def _wish(self) -> LiveRequest:
        """What is wanted at the moment; asked by the worker's thread."""
        if self._live is None:
            return LiveRequest(self._selection)
        return LiveRequest(self._live.wanted, self._live.finder.query)

    @on(Renewed)
    async def _renewed(self, message: Renewed) -> None:
        if self._live is not None:
            self._live.renew(message)
            return
        from flame.tui.live.screen import LiveScreen

        self._live = LiveScreen(message, self.worker, self.config, self.keymap, self.start)
        await self.present(self._live)
        self.worker.taken(shown=True)

    @on(StatusChanged)
    def _told(self, message: StatusChanged) -> None:
        if self._live is not None:
            self._live.tell(message.status)
        else:
            self._waiting.tell(message.status, message.over)

    @on(WorkerFailed)
    def _failed(self, message: WorkerFailed) -> None:
        raise message.error

    @on(WaitingScreen.Left)
    def _left(self) -> None:
        self.exit()
