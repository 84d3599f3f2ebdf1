"""Run the app on two sides: it appears at once, loads both in a thread, then compares them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Keymap
from textual.screen import Screen

from flame.options.config import DEFAULTS, Config
from flame.tui.main.app import FlameApp
from flame.tui.shell.base_app import check_terminal
from flame.tui.shell.start import Start
from flame.tui.toolkit.background import in_background

if TYPE_CHECKING:
    from flame.core.loading.inputs import Inputs
    from flame.core.options import LoadOptions, Progress
    from flame.options.state import AppState
    from flame.tui.diff.loading import Loader, SideInputs
    from flame.tui.diff.selection import DiffSelection
    from flame.tui.session.session import Projection, Session


def run_diff_app(
    sides: SideInputs,
    options: LoadOptions,
    selection: DiffSelection,
    words: Sequence[str],
    state: AppState | None = None,
    config: Config = DEFAULTS,
    start: Start | None = None,
) -> int:
    """Compare ``sides`` under ``selection``, at the place of ``state``, until the user quits.

    ``words`` are those of the command line that name what is compared. Returns the exit code.
    Raises UsageError where the terminal cannot draw, and for wrong keys in ``config``.
    """
    check_terminal("use --print for text")
    return DiffApp(sides, options, selection, words, state, config, start).run_to_end()


class DiffApp(FlameApp):
    """Load both sides, and show what has changed."""

    def __init__(
        self,
        sides: SideInputs,
        options: LoadOptions,
        selection: DiffSelection,
        words: Sequence[str],
        state: AppState | None = None,
        config: Config = DEFAULTS,
        start: Start | None = None,
    ) -> None:
        from flame.tui.diff.loading import Loader

        super().__init__(sides.both, options, selection, state, config, start)
        self._sides = sides
        self._compared = selection
        self._words = words
        self._sides_loader: Loader = Loader(options, config.cache)

    def _keymap_of(self, config: Config) -> Keymap:
        from flame.tui.shell.commands import DIFF_COMMANDS
        from flame.tui.shell.keymap import keymap_of

        return keymap_of(config.keys, DIFF_COMMANDS)

    def _open(self, inputs: Inputs, progress: Progress) -> tuple[Session, Projection]:
        from flame.tui.diff.selection import DiffSelection
        from flame.tui.session.recall import with_preferences

        recall = partial(with_preferences, self.start.recalled, self.config.framework)
        selection = recall(self._compared)
        assert isinstance(selection, DiffSelection)
        return self._sides_loader.open(self._sides, selection, progress)

    def _remember(self, inputs: Inputs) -> None:
        """Remember nothing: what the picker lists is opened by itself."""

    def _screen_of(self, session: Session, shown: Projection) -> Screen[None]:
        from flame.tui.diff.screen import DiffScreen
        from flame.tui.diff.session import DiffProjection, DiffSession

        assert isinstance(session, DiffSession) and isinstance(shown, DiffProjection)
        place = (self._words, self.state, self.config, self.keymap, self.start)
        return DiffScreen(session, shown, *place)

    def on_main_screen_settled(self) -> None:
        self._keeper = in_background(self._sides_loader.keep, 0, self.post_message)
