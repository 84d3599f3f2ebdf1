"""Print to standard output, and tell whether a person reads it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from flame.core.errors import InputError

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

WIDEST_TEXT = 100
"""Cells of a line that people like to read."""

_JSON = ("speedscope", "json", "chrome")


def print_text(text: str) -> None:
    """Print ``text``, to a terminal without anything that it would obey.

    Raises InputError where standard output takes nothing.
    """
    if sys.stdout is None:
        raise InputError("standard output is closed")
    try:
        sys.stdout.write(_escaped(text) if is_terminal(sys.stdout) else text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write to standard output: {error.strerror}") from None


def _escaped(text: str) -> str:
    from flame.core.shown_text import printable_lines

    return printable_lines(text)


def is_on_terminal() -> bool:
    """Tell whether a person types on standard input and reads standard output."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether ``stream`` is open, and a terminal."""
    return stream is not None and stream.isatty()


def terminal_width(default: int) -> int:
    """Return the columns of the terminal, ``default`` where there is none."""
    # As shutil does, whose import takes 2 ms.
    with suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with suppress(ValueError, OSError):  # closed, or no terminal
        if sys.__stdout__ is not None:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or default
    return default


def escaped_for_format(file: BinaryIO, format_name: str) -> BinaryIO:
    """Return what to write to: names are escaped on a terminal, in JSON as JSON has it."""
    if format_name not in _JSON:
        return file
    from flame.console.terminal import json_escape
    from flame.core.files.terminal_output import escaped_on_terminal

    return escaped_on_terminal(file, json_escape)
