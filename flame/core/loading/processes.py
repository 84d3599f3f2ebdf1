"""Keep processes that read traces, for one file after another."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from flame.core.errors import CancelledError, InputError
from flame.core.loading.worker import GRACE, EndedError, LoadProcess


def available_cores() -> int:
    """Return the number of processors that this process may run on."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


class LoadProcesses:
    """Lends processes to threads that load files; one that has died is not lent again.

    ``environment`` is added to this process's.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._lock = Lock()
        self._processes: list[LoadProcess] = []
        self._idle: list[LoadProcess] = []
        self._stopped = False

    @contextmanager
    def lend(self, file: Path) -> Iterator[LoadProcess]:
        """Yield a process for ``file``; InputError where none can be started."""
        process = self._take(file)
        try:
            yield process
        except EndedError:
            raise
        except InputError:
            self._idle.append(process)
            raise
        self._idle.append(process)

    def _take(self, file: Path) -> LoadProcess:
        """Return a process with nothing to do: starting one takes longer than a small trace."""
        with self._lock:
            if self._stopped:
                raise CancelledError("stopped")
            if self._idle:
                return self._idle.pop()
            try:
                self._processes.append(LoadProcess(self._environment))
            except OSError as error:
                reason = error.strerror or error
                raise InputError(f"{file}: no process can be started for it: {reason}") from None
            return self._processes[-1]

    def stop(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._stopped = True
        due = time.monotonic() + GRACE
        try:
            for process in self._processes:
                process.stop()
        finally:
            for process in self._processes:
                process.kill(due - time.monotonic())

    def close(self) -> None:
        """Close the processes, once nobody reads from them any more."""
        for process in self._processes:
            process.close()
