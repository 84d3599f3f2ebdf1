"""Write to a terminal, and escape what it would obey."""

from __future__ import annotations

import sys
from contextlib import suppress

from flame.core.shown_text import printable, printable_lines


def say(text: str) -> None:
    """Print ``text`` as one line on stderr, whatever it holds."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"flame: {printable(text)}", file=sys.stderr)


def print_traceback(error: BaseException) -> None:
    """Print the traceback of ``error`` on stderr, whatever its message holds."""
    from traceback import format_exception

    if sys.stderr is not None:
        text = "".join(format_exception(error))
        with suppress(OSError):
            sys.stderr.write(printable_lines(text) if sys.stderr.isatty() else text)


def json_escape(character: str) -> str:
    """Escape a character of a JSON string: the text means the same."""
    from json import dumps

    return dumps(character)[1:-1]
