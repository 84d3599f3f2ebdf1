"""Copy what can be read only once, as a pipe, to a file: readers look at a trace several times."""

from __future__ import annotations

import os
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.fetching.disk_space import refuse_too_large
from flame.core.options import Progress
from flame.core.units import format_bytes

_PIECE = 1 << 20
_CHECKED = 64 << 20
"""Bytes between two looks at the room on the disk."""


def spool_standard_input(target: Path, progress: Progress) -> None:
    """Copy standard input to the file ``target``, which is made. Raises as `spool_pipe` does.

    UsageError where somebody would have to type it.
    """
    try:
        if os.isatty(0):
            raise UsageError("-: standard input is the terminal: pipe a trace into flame")
        _spool(0, target, "standard input", progress)
    except OSError as error:
        raise InputError(f"standard input: cannot be read: {error.strerror or error}") from None


def spool_pipe(path: Path, target: Path, progress: Progress) -> None:
    """Copy what comes through the pipe at ``path`` to the file ``target``, which is made.

    Raises InputError where it cannot be read, or gets larger than the disk has room for, and what
    ``progress`` does.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _spool(descriptor, target, str(path), progress)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _spool(descriptor: int, target: Path, what: str, progress: Progress) -> None:
    remedy = "set TMPDIR to a folder on another, or write it to a file first"
    size, due = 0, 0
    with target.open("xb", 0) as file:
        while piece := os.read(descriptor, _PIECE):
            if size >= due:
                refuse_too_large(what, _CHECKED, target.parent, remedy)
                due += _CHECKED
            _write(file.fileno(), piece)
            size += len(piece)
            progress(f"reading {what}: {format_bytes(size)}", 0, 0)


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
