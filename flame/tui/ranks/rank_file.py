"""Find the trace of a rank, which its summary names as it was given, and say how to open it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from flame.core.readers.fdump.folder import is_folder, is_recording
from flame.tui.toolkit.text import printable


def view_words(path: str) -> str:
    """Write the command that opens the trace at ``path``, on one printable line."""
    return f"flame view {printable(shlex.quote(_argument(path)))}"


def file_of(path: str, summaries: tuple[Path, ...]) -> Path | None:
    """Find the trace that a summary calls ``path``: there, or beside one of the ``summaries``.

    None where it is not on this machine.
    """
    return next(filter(_is_file, _candidates(path, summaries)), None)


def _candidates(path: str, summaries: tuple[Path, ...]) -> Iterator[Path]:
    given = Path(path)
    yield given
    for summary in summaries:
        yield summary.parent / given
        yield summary.parent / given.name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file() or (is_folder(path) and is_recording(path))
    except (OSError, ValueError):  # a name that cannot be one
        return False


def _argument(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path
