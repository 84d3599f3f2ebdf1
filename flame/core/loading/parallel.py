"""Load several files at once, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.loading.file import load_file
from flame.core.loading.processes import LoadProcesses, available_cores
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
        with ThreadPoolExecutor(min(len(files), available_cores())) as pool:
            futures = [pool.submit(reading.load_file, place) for place in range(len(files))]
            try:
                return _wait_for_profiles(futures, reading, progress)
            finally:
                reading.stop()
    finally:
        reading.close()


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
        self._processes = LoadProcesses()

    def load_file(self, place: int) -> Profile:
        """Load the profile of one of the files."""
        file = self._files[place]
        profile = self._cache.find(file, self._options, load_file) if self._cache else None
        profile = profile or self._load_in_process(file, place)
        self._part[place], self._stage[place] = 1.0, ""
        return profile

    def _load_in_process(self, file: Path, place: int) -> Profile:
        progress = partial(self._note_progress, place)
        with self._processes.lend(file) as process:
            return process.load(file, self._options, progress, self._cache)

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
        self._processes.stop()

    def close(self) -> None:
        """Close the processes, once nobody reads from them any more."""
        self._processes.close()
