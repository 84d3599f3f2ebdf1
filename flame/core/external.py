"""Run other programs in process groups of their own, and name the folder of kept results."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_LONGEST_REASON = 200

_LONGEST_SAID = 1 << 16

_TELLING = re.compile("error|fail|cannot|can't|could not|unable|denied|no space", re.IGNORECASE)


@contextmanager
def running(command: list[str], out: BinaryIO, said: BinaryIO) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a process group of its own: nsys is a launcher, and stopping stops all of it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=said,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def head_of(said: BinaryIO) -> str:
    """What a program said first: it may have printed without end."""
    said.seek(0)
    return said.read(_LONGEST_SAID).decode("utf-8", "replace")


def reason_of(said: str) -> str:
    """The line of what was said that tells most: the first about a failure, or the last one."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    telling = next(filter(_TELLING.search, lines), lines[-1] if lines else "")
    return telling[:_LONGEST_REASON]


def cache_folder() -> Path:
    """Where conversions are kept: ``flame`` in XDG_CACHE_HOME, which counts only if absolute."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path("~/.cache").expanduser()
    return base / "flame"
