"""Write to a terminal, and escape what it would obey."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from flame.core.shown_text import printable


def say(text: str) -> None:
    """Print ``text`` as one line on stderr, whatever it holds."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"flame: {printable(text)}", file=sys.stderr)


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
