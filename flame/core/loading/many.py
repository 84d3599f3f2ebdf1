"""Open traces: one in this process, several each in a process of its own, and merge them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

from flame.core.errors import CancelledError, InputError, UsageError
from flame.core.loading.file import load_file
from flame.core.loading.merge import merge_profiles
from flame.core.loading.ncu import read_ncu_files, refuse_ncu_files
from flame.core.loading.source_labels import label_sources, order_sources
from flame.core.loading.worker import GRACE, LoadProcess
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.fdump.folder import Recording, is_folder, read_folder
from flame.core.sampling.ncu_join import join_samples

_POLL = 0.05
_PATTERN = frozenset("*?[")


def load(
    path: str | Path, options: LoadOptions | None = None, progress: Progress = silent
) -> Profile:
    """Read the trace at ``path`` and attribute its GPU time; of a folder the dumps in it.

    The format is told by content; a wrong suffix is no obstacle. Nothing is ever written to or
    beside the file. Raises InputError (one line: what, where, what to do) when it cannot be read,
    CancelledError when ``progress`` does.
    """
    return load_all([path], options, progress)


def load_all(
    paths: Sequence[str | Path], options: LoadOptions | None = None, progress: Progress = silent
) -> Profile:
    """Read the traces at ``paths``, several at a time, as one profile; one as `load` does.

    A folder stands for the dumps in it. Raises what `load` raises for the first that cannot be
    read, UsageError for a file named twice, CancelledError when ``progress`` does, which is always
    called from here.
    """
    recordings = [_list_files(Path(path)) for path in paths]
    files = [file for recording in recordings for file in recording.dumps]
    notes = [note for recording in recordings for note in recording.notes]
    profile = _load_files(files, options or LoadOptions(), progress)
    return replace(profile, warnings=(*notes, *profile.warnings)) if notes else profile


def _list_files(path: Path) -> Recording:
    """List the dumps of a folder; a file stands for itself."""
    return read_folder(path) if is_folder(path) else Recording((path,), ())


def _load_files(files: Sequence[Path], options: LoadOptions, progress: Progress) -> Profile:
    if len(files) == 1:
        _refuse_pattern(files[0])
    else:
        _check_files(files)
        refuse_ncu_files(files)
    samples = read_ncu_files(options.ncu, progress)
    options = replace(options, ncu=())
    if len(files) == 1:
        return join_samples(load_file(files[0], options, progress), samples)
    profiles = _load_in_processes(files, options, progress)
    progress("merging", 0, 0)
    return join_samples(_merge(profiles), samples)


def _merge(profiles: Sequence[Profile]) -> Profile:
    """Merge profiles, ordered by rank where their labels are ranks."""
    metas = [profile.meta for profile in profiles]
    labels, order = label_sources(metas), order_sources(metas)
    return merge_profiles([profiles[at] for at in order], [labels[at] for at in order])


def _refuse_pattern(file: Path) -> None:
    """Raise InputError for a pattern that the shell has left as it was."""
    if _PATTERN & set(str(file)) and not file.exists():
        raise InputError(f"{file}: no file here matches that pattern")


def _check_files(files: Sequence[Path]) -> None:
    """Check, before anything is read, that all files are there, and each once."""
    first: dict[tuple[int, int], Path] = {}
    for file in files:
        try:
            state = file.stat()
        except FileNotFoundError:
            _refuse_pattern(file)
            raise InputError(f"{file}: no such file") from None
        except (OSError, ValueError):
            continue  # Its reader says why.
        known = first.setdefault((state.st_dev, state.st_ino), file)
        if known is not file:
            same = "is named twice" if str(known) == str(file) else f"is the same file as {known}"
            raise UsageError(f"{file}: {same}")


def _size_or_one(file: Path) -> int:
    try:
        return max(file.stat().st_size, 1)
    except (OSError, ValueError):
        return 1


def _load_in_processes(
    files: Sequence[Path], options: LoadOptions, progress: Progress
) -> list[Profile]:
    reading = _ParallelLoad(files, options)
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

    Files are weighed by size: what formats count (rows, bytes, events) does not compare.
    """

    def __init__(self, files: Sequence[Path], options: LoadOptions) -> None:
        self._files = files
        self._options = options
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
        process = self._take_process(file)
        profile = process.load(file, self._options, partial(self._note_progress, place))
        self._part[place], self._stage[place] = 1.0, ""
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
        """Return how far all are together: a stage, bytes read, bytes there are."""
        whole = sum(self._size)
        done = sum(size * part for size, part in zip(self._size, self._part, strict=True))
        stage = next(filter(None, self._stage), "")
        text = f"reading {len(self._files)} traces"
        return f"{text}: {stage}" if stage else text, int(done), whole

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
