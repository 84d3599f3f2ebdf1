"""Open the source line of a frame in the user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App, SuspendNotSupported

from flame.core.external import find_program
from flame.core.model.tree import StackTree
from flame.tui.toolkit.text import cut, printable

_SHOWN = 40
_LONGEST = 72
_OPENED = "opened "

# How editors are told a line, by the name of their program; of others it is not known, so they
# only get the file.
_PLUS = frozenset(
    ("vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "kak", "joe", "jed", "mg")
)
_GOTO = frozenset(("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"))
_COLON = frozenset(("subl", "sublime_text", "hx", "helix", "micro", "zed", "zeditor"))
_FALLBACKS = ("vi", "nano")


class SourcePlace(NamedTuple):
    """Name a source line and the tree node whose it is; ``line`` is 0 where it is not known."""

    file: str
    line: int
    node: int


def place_of(tree: StackTree, node: int) -> SourcePlace | None:
    """Locate ``node``, or else the closest frame above it that is known, in the sources."""
    for above in reversed(tree.path(node)):
        frame = tree.frames[int(tree.frame[above])]
        if frame.file:
            return SourcePlace(frame.file, frame.line, above)
    return None


def open_in_editor(app: App[Any], tree: StackTree, node: int, editor: str = "") -> str:
    """Edit the source line of ``node`` while the app waits; returns a note.

    The editor is ``editor`` (from the configuration), ``$VISUAL``, ``$EDITOR``, vi or nano. The
    file's name is one argument of it and never seen by a shell.
    """
    place = place_of(tree, node)
    if place is None:
        return "no source line is recorded for this frame or any above it"
    note = open_line(app, place.file, place.line, editor)
    if place.node == node or not note.startswith(_OPENED):
        return note
    return f"{note} of {cut(tree.name(place.node), _SHOWN)}, the closest frame above with a source"


def open_line(app: App[Any], name: str, line: int, editor: str = "") -> str:
    """Return the same of ``line`` (0: anywhere) of the file ``name``."""
    file = os.path.abspath(name)  # noqa: PTH100 (Path would read ".." another way)
    if not os.path.isfile(file):  # noqa: PTH113 (nor does it take names that cannot be files)
        return f"not on this machine, only where the trace was made: {cut(name, _LONGEST)}"
    chosen = editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or _fallback()
    try:
        words = shlex.split(chosen)
    except ValueError as error:
        return f"the editor '{printable(chosen)}' cannot be understood: {error}"
    if not words:
        return "no editor found: set $EDITOR"
    program = words[0] if "/" in words[0] else find_program(words[0])
    if program is None:
        return f"the editor {printable(words[0])} is not on PATH"
    note = _run(app, [program, *words[1:], *arguments(program, file, line)])
    return note or _opened(name, line)


def arguments(program: str, file: str, line: int) -> list[str]:
    """Return what ``program`` is told to show ``line`` (0: anywhere) of ``file``."""
    name = Path(program).name
    if not line:
        return [file]
    if name in _PLUS:
        return [f"+{line}", file]
    if name in _GOTO:
        return ["-g", f"{file}:{line}"]
    return [f"{file}:{line}"] if name in _COLON else [file]


def _fallback() -> str:
    return next(filter(find_program, _FALLBACKS), "")


def _run(app: App[Any], command: list[str]) -> str:
    """Run ``command`` on the app's terminal; what went wrong, if anything."""
    program = printable(Path(command[0]).name)
    try:
        with app.suspend():
            code = subprocess.run(command, check=False).returncode
    except SuspendNotSupported:
        return "an editor needs a terminal: not possible here"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"the editor {program} cannot be started: {reason}"
    return f"the editor {program} ended with code {code}" if code else ""


def _opened(name: str, line: int) -> str:
    where = f"{Path(name).name}:{line}" if line else Path(name).name
    return f"{_OPENED}{cut(where, _SHOWN)}"
