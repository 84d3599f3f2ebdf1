"""Copy text to the terminal's clipboard, however far away the terminal is."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from threading import Thread
from typing import Any

from textual.app import App

from flame.core.external import find_program
from flame.core.units import format_count
from flame.tui.toolkit.text import cut, printable

LIMIT = 74_994
"""Bytes: with them the sequence is 100,000 characters long, where hterm gives up, the first to do
so. Terminals drop a longer text without a word."""

_SHOWN = 48
_JOINERS = "\u200c\u200d"
_TMUX = ("load-buffer", "-w", "-")
_TIMEOUT = 2.0


def copied(app: App[Any], text: str, called: str = "") -> str:
    """Copy ``text`` with all control characters made visible; returns a note.

    The note names what was copied as ``called``, or else shows how it begins.

    Pasted into a shell it is one line, which nothing runs before the user does.
    """
    safe = visible(text)
    size = len(safe.encode())
    if size > LIMIT:
        return f"not copied: {format_count(size)} bytes, terminals take {format_count(LIMIT)}"
    app.copy_to_clipboard(safe)
    if "TMUX" in os.environ:
        Thread(target=_to_tmux, args=(safe,), daemon=True).start()
    return f"copied {called or cut(text, _SHOWN)}"


def visible(text: str) -> str:
    """``text`` in full, with pictures for what a terminal would obey, reorder or refuse."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else printable(c) for c in text)


def _to_tmux(text: str) -> None:
    """Hand ``text`` to tmux, which by default (``set-clipboard external``) ignores OSC 52."""
    tmux = find_program("tmux")
    if tmux is None:
        return
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [tmux, *_TMUX], input=text.encode(), capture_output=True, timeout=_TIMEOUT, check=False
        )
