"""Run other programs in process groups of their own, and find out why they fail."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from flame.core.lazy_regex import lazy_regex

_LONGEST_REASON = 200

_LONGEST_OUTPUT = 1 << 16
_NO_GROUP = 65534

_TELLING = lazy_regex("error|fail|cannot|can't|could not|unable|denied|no space", re.IGNORECASE)


@contextmanager
def start_group(
    command: list[str], out: BinaryIO, errors: BinaryIO, uid: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``command``, all of whose paths are absolute, in a process group of its own.

    nsys is a launcher: stopping the group stops it all. ncu reads a configuration from the current
    folder, which is none of the user's where that holds a stranger's files. ``uid``: root runs it
    as that user, who may then do with it what he likes: it gets nothing of root's environment,
    groups or terminal.
    """
    with _hold_signals() as held:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            cwd="/",
            start_new_session=True,
            **({} if uid is None else _run_as(uid)),
        )
    try:
        for number in held:
            signal.raise_signal(number)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _run_as(uid: int) -> dict[str, Any]:
    try:
        group = pwd.getpwuid(uid).pw_gid
    except KeyError:
        group = _NO_GROUP
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    return {"user": uid, "group": group, "extra_groups": [], "env": environment}


@contextmanager
def _hold_signals() -> Iterator[list[int]]:
    """Collect the signals that would end this process, until the block is left.

    A program whose start they interrupt would go on without anybody who knows of it.
    """
    held: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield held  # Only the main thread runs handlers.
        return
    before = {
        number: signal.signal(number, lambda number, _: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def read_head(output: BinaryIO) -> str:
    """Read the beginning of a program's ``output``: it may have printed without end."""
    output.seek(0)
    return output.read(_LONGEST_OUTPUT).decode("utf-8", "replace")


def find_reason(output: str) -> str:
    """Find the line of ``output`` that tells most: the first about a failure, or the last."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", output) if line.strip()]
    telling = next(filter(_TELLING.search, lines), lines[-1] if lines else "")
    return telling[:_LONGEST_REASON]
