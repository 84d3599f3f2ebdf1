"""Save a place in the app as text (``--state``), and read it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import msgspec

from flame.core.errors import InputError, UsageError
from flame.core.files.atomic import private_output
from flame.options.config import state_path

ViewName = Literal["icicle", "sandwich", "top", "timeline", "report", "ranks"]


class AppState(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Describe a place in the app. What is not given is as on opening a trace.

    ``paths`` are the traces shown; ``path`` is how the only one was written before there could be
    several. ``options`` are words of the command line; ``zoom`` and ``selected`` name frames by the
    names below the root; ``exact`` says that ``search`` is one name in full and no expression.
    With ``all_open`` all chains of frames are open, else none; those that touch one of ``chains``
    are the other way round: the depth from which on frames count, and their names below the root.
    Of the report the ``section`` is chosen, and in it the ``row`` with this number, from 0 on; of
    the section ``findings`` the finding.
    """

    path: str = ""
    options: list[str] = msgspec.field(default_factory=list)
    view: ViewName = "icicle"
    zoom: list[str] = msgspec.field(default_factory=list)
    selected: list[str] = msgspec.field(default_factory=list)
    search: str = ""
    exact: bool = False
    paths: list[str] = msgspec.field(default_factory=list)
    all_open: bool = False
    chains: list[tuple[int, list[str]]] = msgspec.field(default_factory=list)
    section: str = ""
    row: int = -1

    @property
    def traces(self) -> list[str]:
        """Return the traces shown."""
        return self.paths or ([self.path] if self.path else [])


_COMPACT = json.JSONEncoder(separators=(",", ":"))


def encode(state: AppState) -> str:
    """Write ``state`` as compact JSON on one line of printable ASCII, whatever names it holds."""
    # Not msgspec's own JSON: names and paths may hold lone surrogates.
    return _COMPACT.encode(msgspec.to_builtins(state)).replace("\x7f", "\\u007f")


def decode(text: str) -> AppState:
    """Read the state that ``text`` is, or that the file it names holds; ``""``: `state_path`.

    Raises UsageError where that is no state, InputError where the file cannot be read.
    """
    inline = text.lstrip().startswith("{")
    try:
        fields = json.loads(text if inline else _read(text or str(state_path())))
        return msgspec.convert(fields, AppState)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        where = "" if inline else f" {text or state_path()}"
        raise UsageError(f"--state{where}: is no state of flame: {error}") from None


def _read(path: str) -> str:
    try:
        # A state is small; whatever is larger (a trace, /dev/zero) is none.
        with Path(path).open("rb") as file:
            return file.read(_LARGEST).decode("utf-8")
    except OSError as error:
        raise InputError(f"--state {path}: cannot be read: {error.strerror or error}") from None


_LARGEST = 16 << 20


def save(state: AppState) -> Path:
    """Keep ``state`` for ``flame view --state`` and say where; OSError if that cannot be done."""
    path = state_path()
    with private_output(path) as file:
        file.write(f"{encode(state)}\n".encode("ascii"))
    return path
