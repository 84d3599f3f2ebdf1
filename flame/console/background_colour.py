"""Ask the terminal whether its background is light, before the app owns it."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from flame.core.lazy_regex import lazy_regex

# The question for the background (OSC 11), and one that every terminal answers, and answers in its
# turn (primary device attributes): once that has come, no answer to the first is to be expected.
QUERY = b"\x1b]11;?\x07\x1b[c"

TIMEOUT = 0.1
"""Seconds from the question on that the app waits for the answer."""

_MOST = 4096
"""Characters read while waiting."""

_ANSWER = lazy_regex(
    r"\x1b\]11;([^\x07\x1b\x9c]{0,1024})(?:\x07|\x1b\\|\x9c)|\x1b\[\?[0-9;]{0,64}c"
)
_BEGUN = lazy_regex(
    r"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b\x9c]{0,1024}\x1b?)?)?)?|\[(?:\?[0-9;]{0,64})?)\Z"
)
_COLOUR = lazy_regex(
    r"rgba?:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})(?:/[0-9a-f]{1,4})?"
    r"|#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})",
    re.IGNORECASE,
)

_DRAW_IT = ("dumb", "unknown", "linux", "eterm", "vt")
"""Terminals that draw the question, or may."""


def is_light(colour: str) -> bool | None:
    """Tell whether ``colour``, as terminals write it, is light; None if it is no colour."""
    match = _COLOUR.fullmatch(colour)
    if match is None:
        return None
    parts = [part for part in match.groups() if part]
    red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in parts)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


def light_by_environment(environment: Mapping[str, str]) -> bool:
    """Tell the same by COLORFGBG, which some terminals set; where it says nothing, it is dark."""
    match = re.fullmatch(r"[^;]*;(?:[^;]*;)?(\d{1,2})", environment.get("COLORFGBG", ""))
    # Of the sixteen colours 7 and those from 9 on are light, as vim has it.
    return match is not None and int(match[1]) not in (*range(7), 8)


def may_ask(environment: Mapping[str, str]) -> bool:
    """Tell whether the terminal that ``environment`` describes can be asked without harm."""
    terminal = environment.get("TERM", "")
    if environment.get("NO_COLOR") or not terminal or terminal.startswith(_DRAW_IT):
        return False
    # GNU screen hands the question on, and the answer to whatever reads by then. tmux, which calls
    # itself screen at times, answers itself.
    is_screen = terminal.startswith("screen") or "STY" in environment
    return "TMUX" in environment or not is_screen


class TerminalBackground:
    """Hold whether the background is ``light``, None while the terminal has not said so.

    ``pending``: it has been asked, and may still answer. ``early`` is what was typed meanwhile.
    ``otherwise``: whether the background counts as light where it does not say.
    """

    def __init__(self, otherwise: bool = False) -> None:
        self.light: bool | None = None
        self._otherwise = otherwise
        self.pending = False
        self.early = ""
        self._begun = ""
        self._asked = 0.0
        self._waited = False
        self._attributes: list[Any] = []

    @property
    def seems_light(self) -> bool:
        """Whether the background is light, as far as anything says."""
        return self._otherwise if self.light is None else self.light

    def ask(self) -> None:
        """Send the question; what is typed or answered from now on is not echoed."""
        descriptor = sys.__stdin__.fileno()  # type: ignore[union-attr]
        attributes = termios.tcgetattr(descriptor)
        quiet = [*attributes]
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        quiet[6] = [*attributes[6]]
        quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
        self._attributes, self.pending, self._asked = attributes, True, monotonic()
        os.write(sys.__stderr__.fileno(), QUERY)  # type: ignore[union-attr]

    def wait(self) -> None:
        """Read the answer, once, if it comes in time from when the question was sent."""
        if not self.pending or self._waited:
            return
        self._waited = True
        descriptor = sys.__stdin__.fileno()  # type: ignore[union-attr]
        decode = getincrementaldecoder("utf-8")("ignore").decode
        end, room = self._asked + TIMEOUT, _MOST
        while self.pending and room > 0:
            if not select.select([descriptor], [], [], max(end - monotonic(), 0))[0]:
                return
            data = os.read(descriptor, room)
            if not data:
                return
            room -= len(data)
            self.early += self.take(decode(data))
        self.release()

    def take(self, text: str) -> str:
        """Take the answer, or pieces of it, out of what has been read; return the rest."""
        if not self.pending:
            return text
        text, self._begun = self._begun + text, ""
        for answer in _ANSWER.finditer(text):
            if answer[1] is None:
                self.pending = False
            else:
                self.light = is_light(answer[1])
        text = _ANSWER.sub("", text)
        begun = _BEGUN.search(text) if self.pending else None
        if begun is None:
            return text
        self._begun = begun[0]
        return text[: begun.start()]

    def release(self) -> None:
        """Have the terminal echo again what is typed, if it did before."""
        if self._attributes:
            with suppress(termios.error):
                descriptor = sys.__stdin__.fileno()  # type: ignore[union-attr]
                termios.tcsetattr(descriptor, termios.TCSANOW, self._attributes)
            self._attributes = []


@contextmanager
def asked_background(wanted: bool) -> Iterator[TerminalBackground]:
    """Ask the terminal for its background if that is ``wanted``, and possible.

    The answer comes while the block does other things, such as to import the app; `wait` takes it.
    """
    background = TerminalBackground(wanted and light_by_environment(os.environ))
    try:
        if wanted and may_ask(os.environ) and _is_foreground():
            with suppress(OSError, termios.error):
                background.ask()
        yield background
    finally:
        background.wait()  # or a shell would read the answer, where no app came to it
        background.release()


def _is_foreground() -> bool:
    """Whether both ends are terminals, and this process may use them."""
    try:
        ends = [sys.__stdin__, sys.__stderr__]
        if not all(end is not None and end.isatty() for end in ends):
            return False
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (OSError, ValueError):
        return False
