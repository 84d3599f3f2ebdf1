"""Write bytes to a terminal without anything in them that it would obey."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import BinaryIO, cast

from flame.core.shown_text import escape_character, printable_lines


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
        shown = printable_lines(self._decode(data), self._escape)
        self._file.write(shown.encode("utf-8", "replace"))
        return len(data)

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self._file.flush()


def escaped_on_terminal(
    file: BinaryIO, escape: Callable[[str], str] = escape_character
) -> BinaryIO:
    """Return what to write to instead of ``file``: itself where that is no terminal."""
    return cast("BinaryIO", TerminalOutput(file, escape)) if file.isatty() else file
