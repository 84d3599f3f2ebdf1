"""Run commands of flame for an answer: bounded in time and length."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from signal import SIGKILL
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import BoundedSemaphore, Event
from typing import IO

from flame.core.errors import InputError
from flame.core.external import flame_command, start_group

MOST = 30_000
"""Characters of an answer."""

SECONDS = 300
_LONGEST_COMPLAINT = 2_000

_AT_ONCE = 2
_running = BoundedSemaphore(_AT_ONCE)
"""Commands that run at the same time: each may take as much memory as its trace needs."""


_started: set[Popen[bytes]] = set()
_stopped = Event()


def run_flame(words: Sequence[str]) -> str:
    """Run the command ``words`` of this flame, and return what it printed, cut to `MOST`.

    Each command is a process of its own: a trace that takes too much memory ends no server. Raises
    InputError with what it complained of where it fails, or takes longer than `SECONDS`.
    """
    command = flame_command(*words)
    try:
        with _running, TemporaryFile() as out, TemporaryFile() as errors:
            with start_group(command, out, errors) as process, _noted(process):
                code = process.wait(SECONDS)
            if not code:
                return _read(out, MOST)
            complaint = _read(errors, _LONGEST_COMPLAINT)
    except TimeoutExpired:
        raise InputError(f"not done after {SECONDS} s: choose a part of the trace") from None
    except OSError as error:
        raise InputError(f"cannot be worked out: {error.strerror or error}") from None
    raise InputError(complaint or f"failed with exit code {code}")


@contextmanager
def _noted(process: Popen[bytes]) -> Iterator[None]:
    """Have `stop_commands` know ``process``; InputError where it has been called before."""
    _started.add(process)
    try:
        if _stopped.is_set():
            raise InputError("the server has ended")
        yield
    finally:
        _started.discard(process)


def stop_commands() -> None:
    """End the commands that run, and let none begin any more: nobody waits for what they say."""
    _stopped.set()
    for process in tuple(_started):
        with suppress(OSError):
            os.killpg(process.pid, SIGKILL)


def _read(file: IO[bytes], most: int) -> str:
    file.seek(0)
    text = file.read(4 * most + 4).decode("utf-8", "replace")
    if len(text) <= most:
        return text.strip()
    line_end = text.rfind("\n", most // 2, most)  # A line may be longer than all that is answered.
    return (
        f"{text[: line_end if line_end > 0 else most]}\n… cut: ask for fewer rows, or a part of it"
    )
