"""Load several files at once, each in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from flame.core.errors import CancelledError, InputError
from flame.core.loading.file import load_file
from flame.core.loading.worker import GRACE, LoadProcess
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress

if TYPE_CHECKING:
    from flame.core.reopening.profile_cache import ProfileCache

_POLL = 0.05


def _size_or_one(file: Path) -> int:
    try:
        return max(file.stat().st_size, 1)
    except (OSError, ValueError):
        return 1


def load_in_processes(
    files: Sequence[Path],
    options: LoadOptions,
    progress: Progress,
    cache: ProfileCache | None = None,
) -> list[Profile]:
    """Load ``files``, as many at a time as there are processors; raise what the first raises.

    What ``cache`` has is read here; the processes keep there what they load.
    """
    reading = _ParallelLoad(files, options, cache)
    try:
        with ThreadPoolExecutor(min(len(files), _available_cores())) as pool:
            futures = [pool.submit(reading.load_file, place) for place in range(len(files))]
            try:
                return _wait_for_profiles(futures, reading, progress)
            finally:
                reading.stop()
    finally:
        reading.close()


def _available_cores() -> int:
    """Return the number of processors that this process may run on."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _wait_for_profiles(
    futures: Sequence[Future[Profile]], reading: _ParallelLoad, progress: Progress
) -> list[Profile]:
    """Wait for all profiles; raise what the first failing process raises."""
    pending = set(futures)
    while pending:
        progress(*reading.progress())
        done, pending = wait(pending, _POLL, FIRST_EXCEPTION)
        for future in done:
            future.result()
    return [future.result() for future in futures]


class _ParallelLoad:
    """Loads ``files`` in processes, and knows how far each is. Several threads call `load_file`.

    Files are weighed by size.
    """

    def __init__(
        self, files: Sequence[Path], options: LoadOptions, cache: ProfileCache | None
    ) -> None:
        self._files = files
        self._options = options
        self._cache = cache
        self._size = [_size_or_one(file) for file in files]
        self._part = [0.0] * len(files)
        self._stage = [""] * len(files)
        self._lock = Lock()
        self._processes: list[LoadProcess] = []
        self._idle: list[LoadProcess] = []
        self._stopped = False

    def load_file(self, place: int) -> Profile:
        """Load the profile of one of the files."""
        file = self._files[place]
        profile = self._cache.find(file, self._options, load_file) if self._cache else None
        profile = profile or self._load_in_process(file, place)
        self._part[place], self._stage[place] = 1.0, ""
        return profile

    def _load_in_process(self, file: Path, place: int) -> Profile:
        process, progress = self._take_process(file), partial(self._note_progress, place)
        profile = process.load(file, self._options, progress, self._cache)
        self._idle.append(process)
        return profile

    def _take_process(self, file: Path) -> LoadProcess:
        """Return a process with nothing to do: starting one takes longer than a small trace."""
        with self._lock:
            if self._stopped:
                raise CancelledError("stopped")
            if self._idle:
                return self._idle.pop()
            try:
                self._processes.append(LoadProcess())
            except OSError as error:
                reason = error.strerror or error
                raise InputError(f"{file}: no process can be started for it: {reason}") from None
            return self._processes[-1]

    def _note_progress(self, place: int, stage: str, done: int, expected: int) -> None:
        self._stage[place] = stage
        if expected > 0:
            self._part[place] = min(done / expected, 1.0)

    def progress(self) -> tuple[str, int, int]:
        """Return how far all are together: a stage, bytes loaded, bytes there are; 0 if unknown."""
        whole = sum(self._size)
        done = sum(size * part for size, part in zip(self._size, self._part, strict=True))
        stage = next(filter(None, self._stage), "")
        text = f"reading {len(self._files)} traces"
        known = any(self._part) or not stage
        return f"{text}: {stage}" if stage else text, int(done), whole if known else 0

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
