"""Move, copy, export and open what the main screen shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from textual.app import App

from flame.core.analysis.chains import frames_word
from flame.core.errors import FlameError
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.options.preferences import Memory
from flame.options.state import AppState
from flame.tui.report.pane import ReportPane
from flame.tui.session.projector import Projector
from flame.tui.session.session import Projection, Session
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.actions import Move
from flame.tui.shell.base_app import BaseApp
from flame.tui.toolkit.clipboard import copied
from flame.tui.toolkit.text import printable
from flame.tui.views.pane import MOVES, Pane


class ShownScreen(Protocol):
    """Declare what actions read from the main screen."""

    config: Config
    keymap: Mapping[str, str]
    memory: Memory

    @property
    def app(self) -> App[Any]:
        """The app that the screen belongs to."""

    @property
    def projector(self) -> Projector:
        """What brings projections."""

    @property
    def pane(self) -> Pane:
        """The view that is shown."""

    @property
    def wanted(self) -> Selection:
        """What was last asked for."""

    @property
    def session(self) -> Session:
        """The trace."""

    @property
    def shown(self) -> Projection:
        """The projection on screen."""

    @property
    def view(self) -> TreeView:
        """The view whose selected frame is meant."""

    def state(self) -> AppState:
        """Return the zoom, the selected frame and the search."""


def move(screen: ShownScreen, way: str, step: int = 1) -> str:
    """Have the view that is shown make the `Move` called ``way``."""
    return MOVES[Move(way)](screen.pane, step)


def copy(screen: ShownScreen, what: str) -> str:
    """Copy the selected frame's ``name`` or ``stack``, or the ``command`` line of the view.

    Returns a note. The command line is also kept for ``flame view --state``: many terminals
    refuse to have their clipboard written.
    """
    own = screen.pane.copied(what)
    if own is not None:
        return copied(screen.app, *own)
    view = screen.view
    names = view.stack(view.cursor.node)
    if what == "name":
        return copied(screen.app, names[-1])
    if what == "stack":
        stack = names[1:] or names
        return copied(screen.app, ";".join(stack), f"the stack, {frames_word(len(stack))}")
    return _command(screen)


def _command(screen: ShownScreen) -> str:
    from flame.options.command_line import command_line, options_of, report_line
    from flame.options.state import save

    session, selection, names = screen.session, screen.shown.selection, screen.config.kernel_names
    state, remembers = screen.state(), screen.memory.is_kept
    given = (session.inputs.spelled_in_full, session.options, selection)
    if state.section:
        line, about = report_line(*given, state.section), "the command line of this section"
    else:
        line = command_line(*given, state, names, remembers)
        about = "the command line of this view"
    note = copied(screen.app, line, about)
    state.paths = _absolute(session.inputs)
    state.options = options_of(_with_absolute_paths(session.options), selection, names)
    try:
        save(state)
    except (FlameError, OSError) as error:
        return f"{note}; not kept for --state: {getattr(error, 'strerror', None) or error}"
    return f"{note}; flame view --state shows it too"


def _absolute(inputs: Inputs) -> list[str]:
    """Name the traces from anywhere: files by absolute paths, others as they were given."""
    given = dict(inputs.given)
    return [given.get(path) or str(path.absolute()) for path in inputs.paths]


def _with_absolute_paths(options: LoadOptions) -> LoadOptions:
    ncu = tuple(str(Path(path).absolute()) for path in options.ncu)
    phases = options.phases and str(Path(options.phases).absolute())
    return replace(options, ncu=ncu, phases=phases)


def show_instructions(screen: ShownScreen) -> str:
    """Show the instructions of the selected frame's kernel over the screen; a note if it cannot."""
    from flame.tui.sampling.subject import spot_of, subject_of

    shown, tree, node = screen.shown, screen.view.tree, screen.view.cursor.node
    subject = subject_of(shown, tree, node)
    if isinstance(subject, str):
        return subject
    from flame.tui.sass.screen import SassScreen
    from flame.tui.sass.sides import ListedSide

    spot = spot_of(shown, subject, tree, node)
    app, inputs = screen.app, screen.session.inputs
    side = ListedSide(subject, spot, _reports(screen))
    over = SassScreen(screen.keymap, screen.config.editor, inputs, side)
    assert isinstance(app, BaseApp)
    app.call_later(app.present, over)
    return ""


def _reports(screen: ShownScreen) -> str:
    """The reports of Nsight Compute that the samples may be of."""
    session = screen.session
    paths = [*session.options.ncu]
    paths += [source.meta.path for source in session.profile.sources if source.meta.format == "ncu"]
    return printable(", ".join(Path(path).name for path in paths))


def open_source(screen: ShownScreen) -> str:
    """Show the selected frame's source line in the user's editor."""
    from flame.tui.toolkit.editor import open_in_editor

    view = screen.view
    return open_in_editor(screen.app, view.tree, view.cursor.node, screen.config.editor)


def export(screen: ShownScreen, say: Callable[[str], None]) -> None:
    """Ask what to export and where, and do it."""
    pane, session = screen.pane, screen.session
    if isinstance(pane, ReportPane):
        over = pane.export_dialog(session)
        if over is None:
            say("nothing to export yet")
        else:
            screen.app.push_screen(over, lambda note: say(note or ""))
        return
    from flame.tui.dialogs.export import ExportDialog

    dialog = ExportDialog(session.inputs, session.profile, screen.shown)
    screen.app.push_screen(dialog, lambda note: say(note or ""))


def screenshot(screen: ShownScreen) -> str:
    """Save the screen as SVG beside where flame was started, under a name that is free."""
    from flame.tui.dialogs.write_files import save_screenshot

    try:
        return f"saved {printable(save_screenshot(screen.app, screen.session.inputs))}"
    except (FlameError, OSError) as error:
        return f"not saved: {error}"
