"""Sum up the ranks of a recording when its command has ended: a summary beside each rank's dump.

What a dump holds may end who reads it, or take long: processes of their own read, which give way to
all others.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError
from flame.core.files.atomic import written_whole
from flame.core.files.publish import open_folder
from flame.core.loading.processes import LoadProcesses, available_cores
from flame.core.memory import PER_BYTE, bytes_to_use
from flame.core.options import LoadOptions, Progress, silent

LONGEST = 30.0
"""Seconds in which summaries are made; GPUs of a job may be waiting for its end."""

_POLL = 0.1
_NICE = 10
_LEAST_MEMORY = 1 << 28
"""Bytes that a process takes to read anything."""


class RankSummaries(NamedTuple):
    """Say how many ranks were summed up, and of the others why not."""

    written: int
    failed: dict[Path, str]

    @property
    def lines(self) -> Iterator[str]:
        """Say why some were not summed up, a line for each reason."""
        by_reason: dict[str, list[str]] = {}
        for dump, reason in self.failed.items():
            by_reason.setdefault(reason, []).append(dump.name)
        for reason, names in by_reason.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"{names[0]}{more}: not summed up: {reason}"


def dumps_of_ranks(folder: Path, writing: Collection[int]) -> list[Path]:
    """List the dumps in ``folder`` of ranks of a job, but for processes that are still ``writing``.

    A rank is a process whose environment said so, unless it said that it is the only one.
    """
    from flame.core.readers.fdump.folder import list_dumps

    return [dump for dump in list_dumps(folder) if _is_of_rank(dump, writing)]


def _is_of_rank(dump: Path, writing: Collection[int]) -> bool:
    from flame.core.readers.fdump.metadata import read_job_place
    from flame.core.readers.fdump.tally import is_empty_dump

    if any(dump.name.startswith(f"{pid}-") for pid in writing):
        return False
    try:
        place = read_job_place(dump)
        return place.rank is not None and place.ranks != 1 and not is_empty_dump(dump)
    except InputError:
        return False  # Whoever opens it is told.


def write_summaries(
    dumps: Sequence[Path], progress: Progress = silent, longest: float | None = None
) -> RankSummaries:
    """Write the summary of each of ``dumps`` beside it, where nothing has its name.

    It takes ``longest`` seconds at most, or else `LONGEST`. What ``progress`` raises ends it; then
    nothing is half written.
    """
    longest = LONGEST if longest is None else longest
    due, failed = time.monotonic() + longest, dict[Path, str]()
    with _reading(dumps) as running:
        left = dict(running)
        while left and time.monotonic() < due:
            progress("summing up ranks", len(dumps) - len(left), len(dumps))
            for future in wait(left, _POLL, FIRST_COMPLETED).done:
                if reason := _reason(future, dump := left.pop(future)):
                    failed[dump] = reason
    for dump in left.values():
        failed[dump] = f"not done within {longest:.0f} s"
    return RankSummaries(len(dumps) - len(failed), failed)


@contextmanager
def _reading(dumps: Sequence[Path]) -> Iterator[dict[Future[None], Path]]:
    """Have ``dumps`` read, the smallest first, as many at a time as cores and memory allow."""
    processes = LoadProcesses()
    order, memory = sorted(dumps, key=_size), bytes_to_use()
    workers = _workers(order, memory)
    most = None if memory is None else max(memory // workers, _LEAST_MEMORY)
    pool = ThreadPoolExecutor(workers, "rank")
    try:
        yield {pool.submit(_read, processes, dump, most): dump for dump in order}
    finally:
        processes.stop()
        pool.shutdown(cancel_futures=True)
        processes.close()


def _workers(order: Sequence[Path], memory: int | None) -> int:
    need = PER_BYTE * max(_size(order[-1]), 1)
    fitting = len(order) if memory is None else max(memory // need, 1)
    return min(available_cores(), len(order), fitting)


def _size(dump: Path) -> int:
    try:
        return dump.stat().st_size
    except OSError:
        return 0  # Its reader says why.


def _read(processes: LoadProcesses, dump: Path, memory: int | None) -> None:
    with processes.lend(dump) as process:
        process.run(partial(_write_summary, memory=memory), dump, LoadOptions(), silent)


def _reason(future: Future[None], dump: Path) -> str:
    """Say why a dump was not summed up; '' where it was."""
    error = future.exception()
    return "" if error is None else str(error).removeprefix(f"{dump}: ")


# In a process of its own


def _give_way(memory: int | None) -> None:
    """Let others have the processors first, and all but so much of the memory."""
    with suppress(OSError, ValueError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        if memory is not None:
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))


def _write_summary(
    dump: Path, options: LoadOptions, progress: Progress, *, memory: int | None
) -> None:
    """Write the summary of ``dump`` with so many bytes of ``memory`` at most; raises InputError."""
    from flame.core.loading.file import load_file
    from flame.core.ranks.rank_file import identify_dump, pack_part, summary_beside
    from flame.core.ranks.summarise import summarise

    _give_way(memory)
    try:
        sign = identify_dump(dump)
        data = pack_part(summarise(load_file(dump, options, progress), dump), sign)
        # In this folder, whatever gets its name meanwhile; and never in place of anything.
        with (
            open_folder(dump.parent) as folder,
            written_whole(summary_beside(dump).name, folder, replace=False) as file,
        ):
            file.write(data)
    except MemoryError:
        raise InputError(f"{dump}: there is not enough memory to read it") from None
    except OSError as error:
        raise InputError(f"{dump}: {error.strerror or error}") from None
