"""Waiting for what must happen, as long as it takes, up to a limit that only failures meet."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil

PATIENCE = float(os.environ.get("FLAME_TEST_PATIENCE", "60"))
"""Seconds after which something that must happen counts as missing, on a machine of any load."""

_PAUSES = (0.01, 0.1)
"""Seconds between two looks: three times as long as one takes, so that looking hinders nobody."""


def wait_until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until that is true; fail where it does not become so."""
    begin = time.monotonic()
    end = begin + seconds
    while not true():
        now = time.monotonic()
        assert now < end, "waited in vain"
        time.sleep(min(max(3 * (now - begin), _PAUSES[0]), _PAUSES[1]))
        begin = time.monotonic()


def runs(process: psutil.Process) -> bool:
    """Whether it has not ended; nobody may have asked for its exit code."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until_sleeping(pid: int) -> None:
    """Wait until the main thread of a process is in a call that waits.

    A signal just before such a call is seen by Python only after it, which may be never.
    """
    process = psutil.Process(pid)
    wait_until(lambda: process.status() == psutil.STATUS_SLEEPING)


def pid_runs(pid: int) -> bool:
    """Whether there is a process of that number that has not ended."""
    try:
        return runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def wait_for_exec(process: subprocess.Popen[Any]) -> None:
    """Wait until ``process`` has the words of its program, or has ended.

    Popen returns while the kernel has yet to give them, and the name, to the new program.
    """
    words = Path(f"/proc/{process.pid}/cmdline")
    # Without reaping it: some tests are about what is left then.
    ended = partial(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    wait_until(lambda: ended() or words.read_bytes())
