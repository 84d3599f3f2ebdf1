"""Make text safe to show on one line: without control characters, cut to its width in cells."""

from __future__ import annotations

from collections.abc import Callable
from unicodedata import category, east_asian_width


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


def printable_lines(text: str, escape: Callable[[str], str] = escape_character) -> str:
    """Write the lines of ``text`` without anything else in them that a terminal would obey.

    ``escape`` writes a character that it would.
    """
    if text.isprintable():
        return text
    return "\n".join(_escaped(line, escape) for line in text.split("\n"))


def _escaped(line: str, escape: Callable[[str], str]) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else escape(char) for char in line)


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
