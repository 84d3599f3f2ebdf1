"""Run commands of flame for an answer: bounded in time and length."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import IO

from flame.core.errors import InputError
from flame.core.external import start_group

MOST = 30_000
"""Characters of an answer."""

SECONDS = 300
_LONGEST_COMPLAINT = 2_000

_AT_ONCE = 2
_running = BoundedSemaphore(_AT_ONCE)
"""Commands that run at the same time: each may take as much memory as its trace needs."""


def run_flame(words: Sequence[str]) -> str:
    """Run the command ``words`` of this flame, and return what it printed, cut to `MOST`.

    Each command is a process of its own: a trace that takes too much memory ends no server. Raises
    InputError with what it complained of where it fails, or takes longer than `SECONDS`.
    """
    command = [sys.executable, "-P", "-m", "flame", *words]
    try:
        with _running, TemporaryFile() as out, TemporaryFile() as errors:
            with start_group(command, out, errors) as process:
                code = process.wait(SECONDS)
            if not code:
                return _read(out, MOST)
            complaint = _read(errors, _LONGEST_COMPLAINT)
    except subprocess.TimeoutExpired:
        raise InputError(f"not done after {SECONDS} s: choose a part of the trace") from None
    except OSError as error:
        raise InputError(f"cannot be worked out: {error.strerror or error}") from None
    raise InputError(complaint or f"failed with exit code {code}")


def _read(file: IO[bytes], most: int) -> str:
    file.seek(0)
    text = file.read(4 * most + 4).decode("utf-8", "replace")
    if len(text) <= most:
        return text.strip()
    line_end = text.rfind("\n", most // 2, most)  # A line may be longer than all that is answered.
    return (
        f"{text[: line_end if line_end > 0 else most]}\n… cut: ask for fewer rows, or a part of it"
    )
