"""Run the list of traces as an app, which then shows what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App
from textual.screen import Screen

from flame.core.errors import FlameError
from flame.core.loading.inputs import Inputs
from flame.options.config import DEFAULTS, Config
from flame.tui.main.app import FlameApp
from flame.tui.picker.screen import TracesScreen
from flame.tui.shell.base_app import check_terminal
from flame.tui.shell.start import Start

if TYPE_CHECKING:
    from flame.core.options import LoadOptions
    from flame.options.state import AppState
    from flame.tui.main.app import Wanted


def run(
    folder: Path,
    with_recent: bool,
    options: LoadOptions,
    selection: Wanted,
    state: AppState | None = None,
    config: Config = DEFAULTS,
    start: Start | None = None,
) -> int:
    """Have the user choose traces of ``folder``, or of those shown last, and show them.

    Returns the exit code. Raises UsageError where the terminal cannot draw, and for wrong keys in
    ``config``.
    """
    check_terminal("flame view --print PATH is the static view")
    app = PickingApp(folder, with_recent, options, selection, state, config, start)
    return app.run_to_end()


class PickingApp(FlameApp):
    """Let the user choose traces, again where they cannot be shown, and show them."""

    def __init__(
        self,
        folder: Path,
        with_recent: bool,
        options: LoadOptions,
        selection: Wanted,
        state: AppState | None = None,
        config: Config = DEFAULTS,
        start: Start | None = None,
    ) -> None:
        super().__init__(Inputs((), "traces"), options, selection, state, config, start)
        self._traces = TracesScreen(folder, with_recent and config.recent)

    def get_default_screen(self) -> Screen[None]:
        return self._traces

    def begin(self) -> None:
        """Do nothing: the list looks for traces by itself."""

    async def on_traces_screen_chosen(self, message: TracesScreen.Chosen) -> None:
        if self.screen is not self._traces:
            return  # the second of two quick keys
        self.prepare(Inputs(message.paths))
        await self.push_screen(self._loading)
        self._loader.start()

    def on_traces_screen_left(self) -> None:
        self.exit()

    def show_failure(self, error: FlameError) -> None:
        self._return(str(error))

    def leave_loading(self) -> None:
        self._cancelled.set()
        self._return()

    def _return(self, error: str = "") -> None:
        """Go back to the list, and say there what went wrong."""
        App.pop_screen(self)  # that of `BaseApp` closes dialogs only
        self._traces.go_on(error)
