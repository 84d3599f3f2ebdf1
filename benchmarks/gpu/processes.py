"""Hold on to everything that a check has started, whatever it did to get away, and end it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36
DEADLINE_S = 10.0
ROUNDS = 20
"""Of looking for processes that were started while others were ended."""


def adopt_orphans() -> None:
    """Become the parent of all below whose parent ends: they can be found, and ended.

    A kernel that does not know this leaves them to whoever takes them.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[psutil.Process]:
    """List all processes below this one that have not ended."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end_all() -> tuple[int, list[int]]:
    """Kill all processes below this one; return how many there were, and pids of the unkillable.

    A process that waits in the driver may not die before the driver lets it go.
    """
    seen: set[int] = set()
    for _ in range(ROUNDS):
        left = [one for one in descendants() if one.pid not in seen]
        seen.update(one.pid for one in left)
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=DEADLINE_S)
        reap()
        if not left:
            break
    return len(seen), [process.pid for process in descendants()]


def reap() -> None:
    """Take the exit codes of adopted processes, so that they do not stay as zombies."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
