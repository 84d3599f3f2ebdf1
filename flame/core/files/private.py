"""Read files that flame keeps for a user, and refuse those that others could have prepared."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def why_untrusted(folder: Path) -> str:
    """Say why ``folder`` is not for this user alone; empty if it is. Raises OSError."""
    known = folder.lstat()
    if not stat.S_ISDIR(known.st_mode):
        return f"{folder} is no folder, or a link to one"
    if known.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if known.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {folder}: run: chmod 700 {folder}"
    return ""


def why_parent_untrusted(parent: Path) -> str:
    """Say why what is in ``parent`` could be put there by others; empty if not. Raises OSError."""
    known = parent.stat()
    if known.st_uid not in (0, os.geteuid()):
        return f"{parent} belongs to another user"
    if known.st_mode & stat.S_IWOTH and not known.st_mode & stat.S_ISVTX:
        return f"everybody may write to {parent}"
    return ""


def refuse_untrusted_folder(folder: Path) -> None:
    """Raise PermissionError where others could change what is in ``folder``.

    What is not there yet is fine.
    """
    try:
        reason = why_parent_untrusted(folder.parent) or why_untrusted(folder)
    except FileNotFoundError:
        return
    if reason:
        raise PermissionError(errno.EACCES, reason)


def read_private(path: Path, most: int) -> bytes:
    """Read a regular file of this user, of ``most`` bytes at most, in a folder of the user's own.

    Raises OSError for what is not there and for anything else.
    """
    refuse_untrusted_folder(path.parent)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode) or known.st_uid != os.geteuid():
            raise PermissionError(errno.EACCES, f"{path} is no file of this user")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content
