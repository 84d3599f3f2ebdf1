"""Show a recording on the main screen while it goes on: follow, pause, mark and save it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from flame.core.live.status import LiveStatus
from flame.core.live.window import SINCE_MARK, WINDOWS, LiveWindow
from flame.core.model.tree import Order
from flame.core.units import format_bytes
from flame.exporters.dumps import DumpSource
from flame.options.config import Config
from flame.tui.live.session import LiveSession
from flame.tui.live.status_line import LATE, LiveStatusLine, news
from flame.tui.live.worker import Renewed
from flame.tui.main.screen import MainScreen
from flame.tui.shell.actions import check_actions
from flame.tui.shell.command import Command
from flame.tui.shell.commands import LIVE_COMMANDS, bindings
from flame.tui.shell.start import Start
from flame.tui.toolkit.lines import Line, Lines, Piece, palette_of
from flame.tui.toolkit.text import printable
from flame.tui.widgets.pages import warning_lines


class Follower(Protocol):
    """Declare what the screen may ask of the thread that follows the recording."""

    @property
    def sources(self) -> Sequence[DumpSource]:
        """The dumps, to be saved."""

    def turn(self, window: LiveWindow) -> None:
        """Show ``window`` from now on."""

    def pause(self, paused: bool) -> None:
        """Stand still, or go on."""

    def mark(self) -> None:
        """Begin the window "since the mark"."""

    def taken(self, shown: bool) -> None:
        """Note that what was handed in last has been dealt with."""


class LiveScreen(MainScreen, inherit_bindings=False):
    """Show a recording, and what ``follower`` brings of it."""

    KEYS: ClassVar[Sequence[Command]] = LIVE_COMMANDS
    USUAL_ORDER: ClassVar[Order] = "name"
    ADAPTS = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(LIVE_COMMANDS)]

    def __init__(
        self,
        first: Renewed,
        follower: Follower,
        config: Config,
        keymap: Mapping[str, str],
        start: Start | None = None,
    ) -> None:
        super().__init__(first.session, first.latest, None, config, keymap, start)
        self._follower = follower
        self._marked = False
        self._pending: Renewed | None = None
        self._recording = LiveStatusLine(first.status, first.session.window)
        self._recording_line = Lines(self._recording_lines, id="recording")

    @property
    def _kind(self) -> str:
        return ""  # what a recording will have is not known when it is first shown

    def compose(self) -> ComposeResult:
        for place, widget in enumerate(self._composed()):
            yield widget
            if not place:
                yield self._recording_line

    def _composed(self) -> Iterator[Widget]:
        yield from super().compose()

    def _recording_lines(self, width: int, height: int) -> list[Line]:
        self._recording.gpus = self.session.profile.default_metric != "host"
        return [self._recording.line(palette_of(self), width)]

    def _empty(self, width: int, height: int) -> list[Line]:
        session, status = self.session, self._recording.status
        assert isinstance(session, LiveSession)
        if status.behind and status.lag >= LATE:
            return _catching_up(status)
        where = "" if session.window.key == "all" else f" ({session.window.title})"
        what = f"the {self.shown.metric.title} of what passes is zero"
        text = f"Nothing to show at the moment{where}: {'nothing ran' if session.bare else what}."
        ways: Line = [Piece("W", "key"), Piece(" another window  "), Piece("m", "key")]
        ways += [Piece(" another metric  "), Piece("f", "key"), Piece(" filters")]
        warnings = session.profile.warnings
        notes: list[Line] = [[], *warning_lines(session.profile, width)] if warnings else []
        return [[Piece(text, "strong")], ways, *notes]

    # What the follower brings

    def tell(self, status: LiveStatus) -> None:
        """Say how the recording is doing."""
        note, self._recording.status = news(self._recording.status, status), status
        self._recording_line.update()
        self.parts.empty.update()
        if note:
            self._say(printable(note))

    def renew(self, message: Renewed) -> None:
        """Show a later state of what is shown; under a dialog, once that is closed."""
        self.tell(message.status)
        if self.app.screen is not self:
            self._pending = message
        else:
            self._follower.taken(self._renew(message))

    def on_screen_resume(self) -> None:
        message, self._pending = self._pending, None
        if message is not None:
            self._follower.taken(self._renew(message))

    def _renew(self, message: Renewed) -> bool:
        """Show it, unless the picture stands still or something else is wanted by now."""
        session = message.session
        turned = session.window != self._window
        if (
            self._recording.paused is not None and not turned
        ) or session.window != self._recording.window:
            return True
        names = self.view.tree.names(self._hover) if self._hover >= 0 else None
        if not self.projector.renew(session, message.latest, message.found):
            return False
        if turned:
            self.parts.details.collector.hurry()
        self._follow_on(names)
        return True

    def _follow_on(self, hovered: tuple[str, ...] | None) -> None:
        """Bring the screen up to date: nothing moves, and what the status line says stays."""
        self.set_class(self.shown.empty, "-empty")
        self.parts.show_cursor(self.projector, self.pane)
        self.parts.show_projection(self.projector)
        self._hover = self.view.tree.find(hovered) if hovered is not None else -1
        self.status_line.update()
        self.key_line.update()
        result = self.shown.view.matches.result
        if (result.query if result else None) != self.finder.query:
            self._search(self.finder.query)

    @property
    def _window(self) -> LiveWindow:
        """The window that is on screen."""
        session = self.session
        assert isinstance(session, LiveSession)
        return session.window

    def _say(self, note: str) -> None:
        self._note = [Piece(f" {note}")]
        self.status_line.update()

    # Keys

    def action_pause(self) -> None:
        """Let the picture stand still, or go on with what there is now."""
        if self._recording.paused is None and not self._recording.status.running:
            self._show("the recording has ended: nothing moves any more")
            return
        if self._recording.paused is None:
            self._recording.paused = monotonic()
            note = "paused: nothing is lost, p goes on"
        else:
            self._recording.paused = None
            note = "live again" if self._recording.status.running else ""
        self._follower.pause(self._recording.paused is not None)
        self._recording_line.update()
        self._show(note)

    def action_window(self, step: int) -> None:
        """Show another window; there is one since the mark only after a mark."""
        windows = [window for window in WINDOWS if self._marked or not window.marked]
        self._turn(windows[(windows.index(self._recording.window) + step) % len(windows)])
        self._show(self._recording.window.title)

    def _turn(self, window: LiveWindow) -> None:
        self._recording.window = window
        self._follower.turn(window)
        self._recording_line.update()

    def action_set_mark(self) -> None:
        """Mark this moment; while the picture stands still, it is shown when it goes on."""
        if not self._recording.status.running:
            self._show("the recording has ended: nothing comes after a mark")
            return
        self._marked = True
        self._follower.mark()
        if self._recording.paused is None:
            self._turn(SINCE_MARK)
            self._show("marked: this is what runs from now on, W another window")
        else:
            self._show("marked: W shows what is since then, when p goes on")

    def action_save(self) -> None:
        """Ask what to save and where, and do it."""
        from flame.tui.dialogs.save_recording import SaveDialog

        session = self.session
        dialog = SaveDialog(
            self._follower.sources, session.inputs.title, session.profile, self.shown
        )
        self.app.push_screen(dialog, lambda note: self._show(note or ""))


def _catching_up(status: LiveStatus) -> list[Line]:
    """What stands in place of a picture while what was recorded before is being read."""
    text = f"Reading what was recorded before: {format_bytes(status.behind)} to go."
    ways: Line = [Piece("W", "key"), Piece(" another window: all shows what has been read so far")]
    return [[Piece(text, "strong")], ways]


check_actions(LiveScreen, (command.action for command in LIVE_COMMANDS))
