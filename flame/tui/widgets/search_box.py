"""Type a search, or recall one of those entered before, in this session or an earlier one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from flame.core.files.atomic import private_output
from flame.options.config import state_path
from flame.tui.session.query import Query
from flame.tui.toolkit.text import printable

LONGEST = 100
"""Searches kept."""

_MOST_BYTES = 1 << 20


def searches_path() -> Path | None:
    """``flame/searches`` in the user's state folder; None where there is no home to have one."""
    path = state_path().with_name("searches")
    return path if path.is_absolute() else None


class SearchHistory:
    """Keep the searches entered, oldest first, and how far back the user has gone in them.

    ``path`` is a file of one text a line; without it, or where it cannot be used, texts last as
    long as the object. No failure is ever shown: a lost search is not worth a word.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._texts: list[str] = []
        with suppress(OSError):
            self._texts = self._read()
        self._back = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember ``text`` as the latest, and begin there again."""
        self._back = 0
        if text.strip():
            self._texts = _with_latest(self._texts, text)
            self._write(text)

    def go(self, step: int, typed: str) -> str:
        """Step to the text one older (+1) or newer (-1); the newest is ``typed`` at first."""
        if not self._back:
            self._draft = typed
        self._back = min(max(self._back + step, 0), len(self._texts))
        return self._texts[-self._back] if self._back else self._draft

    def _read(self) -> list[str]:
        """What the file holds; of one that has grown beyond all measure, the beginning."""
        if self._path is None or not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            lines = file.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
        return [line for line in lines if line.strip()][-LONGEST:]

    def _write(self, text: str) -> None:
        """Add ``text`` to the file, which other sessions may have added to as well."""
        if self._path is None:
            return
        with suppress(OSError):  # What cannot be read now is not lost for that.
            lines = "".join(f"{line}\n" for line in _with_latest(self._read(), text))
            if self._path.exists() and not self._path.is_file():
                return
            with private_output(self._path) as file:
                file.write(lines.encode("utf-8", "replace"))


def _with_latest(texts: list[str], text: str) -> list[str]:
    """``texts`` with ``text`` last, once, and no more than are kept."""
    return [*(known for known in texts if known != text), text][-LONGEST:]


class SearchBox(Input):
    """Take a search in a line that never moves, so that a search redraws nothing around it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "recall(1)", show=False),
        Binding("down", "recall(-1)", show=False),
        Binding("ctrl+u", "clear", show=False),
    ]

    def __init__(self, *, id: str, history: SearchHistory | None = None) -> None:
        super().__init__(placeholder="/ search", compact=True, id=id)
        self.cursor_blink = False
        self._history = history or SearchHistory()

    def validate_value(self, value: str) -> str:
        """Make what is pasted printable."""
        return printable(value)

    def show(self, query: Query | None) -> None:
        """Show ``query`` as if it had been typed."""
        with self.prevent(Input.Changed):
            self.value = query.text if query else ""

    @on(Input.Submitted)
    def _remember(self) -> None:
        self._history.add(self.value)

    def action_recall(self, step: int) -> None:
        """Search again for what was entered before (+1), or after that (-1)."""
        self.value = self._history.go(step, self.value)
        self.action_end()

    def action_clear(self) -> None:
        """Empty the box."""
        self.clear()
