"""The sockets of processes that have ended without a word: nobody listens at them any more."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OURS = re.compile(r"\d+-[0-9a-f]+\.sock")


def remove_stale(folder: Path) -> None:
    """Remove from ``folder`` what was left by processes that were killed, or called ``_exit``.

    Those of processes that go on after the command has ended stay. Nothing is raised.
    """
    for path in _sockets(folder):
        with suppress(OSError):
            if _is_refused(path):
                path.unlink()


def _sockets(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from [path for path in folder.iterdir() if _OURS.fullmatch(path.name)]


def _is_refused(path: Path) -> bool:
    """Whether ``path`` is a socket that nobody listens at."""
    import socket

    # By descriptor: a path may be longer than an address, and a link is not followed.
    found = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(found).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as connection:
            connection.setblocking(False)
            return connection.connect_ex(f"/proc/self/fd/{found}") == errno.ECONNREFUSED
    finally:
        os.close(found)
