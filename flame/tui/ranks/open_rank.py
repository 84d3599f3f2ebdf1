"""Open the trace of a rank in the same terminal, at the same frame, while the app waits."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from typing import Any

import msgspec
from textual.app import App, SuspendNotSupported

from flame.core.errors import CancelledError
from flame.core.external import flame_command
from flame.core.frame import IMBALANCE
from flame.core.projection.selection import Selection
from flame.options.command_line import command_line
from flame.options.state import AppState
from flame.tui.ranks.rank_file import file_of, view_words
from flame.tui.ranks.session import RanksSession, without_ranks


def open_rank(
    app: App[Any], session: RanksSession, place: int, selection: Selection, state: AppState
) -> str:
    """Show the trace of the rank at ``place`` as ``selection`` and ``state`` say; returns a note.

    Where it is not on this machine the note is the command that opens it where it is.
    """
    given = session.summary.info[place].path
    file = file_of(given, session.inputs.paths)
    if file is None:
        return f"not on this machine: {view_words(given)}"
    chosen = replace(selection, where=without_ranks(selection.where))
    if chosen.colours == IMBALANCE:
        chosen = replace(chosen, colours="level")
    view = "icicle" if state.view == "ranks" else state.view
    there = msgspec.structs.replace(state, view=view)
    _, *words = shlex.split(command_line([file.absolute()], session.options, chosen, there))
    return _run(app, flame_command(*words), view_words(given))


def _run(app: App[Any], command: list[str], shown: str) -> str:
    """Run ``command`` on the app's terminal; what to say of it, which is called as ``shown``."""
    try:
        with app.suspend():
            code = subprocess.run(command, check=False).returncode
    except SuspendNotSupported:
        return f"another trace needs a terminal: {shown}"
    except OSError as error:
        return f"{shown}: cannot be started: {error.strerror}"
    if code not in (0, CancelledError.exit_code):
        return f"{shown}: ended with code {code}"
    return "back from the trace of the rank"
