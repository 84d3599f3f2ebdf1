"""Run py-spy once, which samples the Python stacks of another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from flame.core.errors import UsageError
from flame.core.external import ResourceLimits, find_program, limit_resources
from flame.core.lazy_regex import lazy_regex
from flame.record.environment import INJECTIONS

RATE = 100
"""Samples per second and thread."""

_LONGEST = 60
"""Seconds after which a run ends by itself: nobody else would end it if flame were killed."""
_TIMEOUT = 10.0
_INSTALL = "CPU samples need py-spy: pip install py-spy"
_BEGUN = b"Sampling process"
_UNREAD = lazy_regex(rb"Samples: \d+ Errors: (\d+)")
_ERROR = "Error: "
_NO_PYTHON = "No python processes found"
_PAUSE = 0.005
_LARGEST = 1 << 28
"""Bytes of a speedscope file: of 2 s of a thousand threads, with a hundred frames each."""
_MOST_SAID = 1 << 16
"""Bytes of the beginning, and of the end, of what it prints."""


def program() -> str:
    """Find py-spy beside this Python, else on PATH. UsageError if it is not installed."""
    beside = Path(sys.executable).with_name("py-spy")
    path = str(beside) if os.access(beside, os.X_OK) else find_program("py-spy")
    if not path:
        raise UsageError(_INSTALL)
    return path


class PySpyRun:
    """Let py-spy sample ``pid`` and what that has started, until `stop`, with files in ``folder``.

    It reads the program's memory and never stops it (``--nonblocking``): what it reads while that
    changes is of no use and counted as an error. Threads that wait are left out. It is told apart
    from flame's terminal, and from injections.
    """

    def __init__(self, path: str, pid: int, folder: Path, number: int) -> None:
        """Start py-spy; OSError where it cannot be run."""
        self._stacks = folder / f"{number}.json"
        self._log = folder / f"{number}.log"
        words = ["record", "--format", "speedscope", "--output", str(self._stacks), "--nonblocking"]
        words += ["--subprocesses", "--threads", "--full-filenames", "--rate", str(RATE)]
        words += ["--duration", str(_LONGEST), "--pid", str(pid)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [path, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={key: value for key, value in os.environ.items() if key not in INJECTIONS},
                start_new_session=True,
            )
        limit_resources(self._process.pid, ResourceLimits(_LARGEST))
        self.begin = 0
        self.end = 0

    def begins(self) -> bool:
        """Wait until it samples; False if it has failed, see `error`."""
        until = time.monotonic() + _TIMEOUT
        while self.running and time.monotonic() < until:
            if _BEGUN in self._said():
                self.begin = time.monotonic_ns()
                return True
            time.sleep(_PAUSE)
        return False

    @property
    def running(self) -> bool:
        """Tell whether it has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Have it write what it has sampled, if it has not done so, and wait for that."""
        self.end = time.monotonic_ns()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def take(self) -> bytes:
        """Read the speedscope file that it has written, empty if it has not, or without end."""
        with suppress(OSError), self._stacks.open("rb") as file:
            data = file.read(_LARGEST)
            return data if len(data) < _LARGEST else b""
        return b""

    def remove(self) -> None:
        """Remove its files."""
        for path in (self._stacks, self._log):
            path.unlink(missing_ok=True)

    @property
    def unread(self) -> int:
        """Count the samples that it could make no sense of."""
        match = _UNREAD.search(self._said())
        return int(match[1]) if match else 0

    @property
    def error(self) -> str:
        """Return why it has failed, as it says; empty if it has not."""
        code = self._process.poll()
        if not code:
            return ""
        lines = self._said().decode("utf-8", "replace").splitlines()
        reason = next((line for line in lines if line.startswith(_ERROR)), "").removeprefix(_ERROR)
        if reason.startswith(_NO_PYTHON):
            return "it is no Python program, or its Python is none that py-spy knows"
        return f"py-spy has failed ({reason or _ending(code)})"

    def _said(self) -> bytes:
        """Read the beginning and the end of what it has printed, which may be without end."""
        with self._log.open("rb") as log:
            head = log.read(_MOST_SAID)
            log.seek(max(log.seek(0, os.SEEK_END) - _MOST_SAID, len(head)))
            return head + log.read(_MOST_SAID)


def _ending(code: int) -> str:
    if code < 0:
        return signal.strsignal(-code) or f"signal {-code}"
    return f"exit code {code}"
