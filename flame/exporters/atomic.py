"""Write output that is there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from flame.core.errors import InputError

STDOUT = "-"

# What the shell has opened: to replace the file behind such a name would lose what is in it.
_DESCRIPTORS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


@contextmanager
def atomic_output(path: str) -> Iterator[BinaryIO]:
    """Open a binary file that takes its place at ``path`` when the block has succeeded.

    Until then, and if the block fails, what is at ``path`` stays as it is. ``-`` is stdout; pipes,
    devices and descriptors are written to directly. Raises InputError, in one line, where ``path``
    cannot be written; BrokenPipeError passes.
    """
    try:
        with _opened(path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == STDOUT:
        return _stdout()
    target = Path(os.path.realpath(path))
    if target.is_dir() or path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    special = target.exists() and not target.is_file()
    if special or path.startswith(_DESCRIPTORS):
        # Appending, since the shell may have opened the same file with ">>".
        return Path(path).open("ab")
    return _replaced(target)


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


@contextmanager
def _replaced(target: Path) -> Iterator[BinaryIO]:
    """A new file beside ``target`` that takes its name, and its permissions if there are any."""
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # Not derived from the name, which may be as long as the file system allows.
    beside = target.with_name(f".flame-{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
