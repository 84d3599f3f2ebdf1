"""Make text safe to print: show control characters, count widths in terminal cells."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO
from unicodedata import category, east_asian_width


def say(text: str) -> None:
    """Print ``text`` as one line on stderr, whatever it holds."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"flame: {printable(text)}", file=sys.stderr)


def printable(text: str) -> str:
    r"""Write ``text`` on one line, without anything a terminal would obey.

    Escape sequences, line breaks, marks that turn the writing direction and lone surrogates become
    their escapes (``\x1b``, ``\n``, ``\u202e``); spaces of any width become a space.
    """
    return text if text.isprintable() else "".join(map(escape_character, text))


def escape_character(character: str) -> str:
    r"""Write ``character`` as a terminal shows it: as it is, as a space, or as ``\x1b``."""
    if character.isprintable():
        return character
    if category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


class TerminalOutput:
    """Write UTF-8 to the terminal behind ``file``, escaping within lines what it would obey.

    ``escape`` writes a character of a name in another way. A character may come in two writes.
    """

    def __init__(self, file: BinaryIO, escape: Callable[[str], str]) -> None:
        self._file = file
        self._escape = escape
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def write(self, data: bytes) -> int:
        """Write the characters that are complete with ``data``; returns the bytes taken."""
        text = self._decode(data)
        shown = "".join(c if c.isprintable() or c == "\n" else self._escape(c) for c in text)
        self._file.write(shown.encode("utf-8"))
        return len(data)


def json_escape(character: str) -> str:
    """Escape a character of a JSON string: the text means the same."""
    from json import dumps

    return dumps(character)[1:-1]


def cells(text: str) -> int:
    """Count the columns that printable ``text`` takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if category(character) in ("Mn", "Me"):  # marks, drawn upon the character before
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Cut printable ``text`` to ``width`` cells: two thirds head, one third tail.

    Both ends of a name tell: kernels differ early, module paths late.
    """
    if cells(text) <= width:
        return text
    tail = (width - 1) // 3
    return _head(text, width - 1 - tail) + "…" + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    for place, character in enumerate(text):
        width -= _width(character)
        if width < 0:
            return text[:place]
    return text
