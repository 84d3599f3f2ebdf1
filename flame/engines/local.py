"""Read ranks on this machine: each in a process, as many at a time as cores and memory allow."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import TYPE_CHECKING, TypeVar

from flame.console.terminal import say
from flame.core.errors import InputError
from flame.core.loading.processes import LoadProcesses
from flame.core.loading.worker import EndedError
from flame.core.memory import MemoryShortError
from flame.core.options import LoadOptions
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.job import (
    Meter,
    RankFile,
    lost_part,
    read_part,
    reason_of,
)

if TYPE_CHECKING:
    from flame.core.rank_summary.collective_table import CollectiveTable
    from flame.core.ranks.communication.arrivals import Arrivals
    from flame.core.ranks.summarise import RankOptions, RankPart

_POLL = 0.1
_IN_MEMORY = 1 << 28
"""Bytes of collectives, beyond which they are kept on disk."""

T = TypeVar("T")


class LocalEngine:
    """Reads up to ``workers`` files at a time that need no more than ``memory`` bytes together.

    One that needs more is read when no other is. A file whose process dies, or finds too little
    memory, is read once more when all others have been, alone.
    """

    def __init__(self, workers: int, memory: int | None) -> None:
        self._workers = workers
        self._memory = memory
        self._processes = LoadProcesses()
        self._pool = ThreadPoolExecutor(workers, "rank")
        self._kept = _KeptArrivals()
        self._running: dict[Future[RankPart], RankFile] = {}

    def read(
        self, files: Sequence[RankFile], options: RankOptions, meter: Meter
    ) -> Iterator[Sequence[RankSummary]]:
        """Yield the summary of each file as soon as it is there."""
        suspects: list[RankFile] = []
        yield from self._read_beside(deque(files), options, meter, suspects)
        for file in suspects:
            yield from self._read_beside(deque([file]), options, meter, None)

    def _read_beside(
        self,
        waiting: deque[RankFile],
        options: RankOptions,
        meter: Meter,
        suspects: list[RankFile] | None,
    ) -> Iterator[Sequence[RankSummary]]:
        """Read what is ``waiting``, largest first; without ``suspects`` every failure is final."""
        while waiting or self._running:
            self._start(waiting, options, meter)
            done, _ = wait(self._running, _POLL, FIRST_COMPLETED)
            yield ()
            for future in done:
                file = self._running.pop(future)
                try:
                    part = future.result()
                except (EndedError, MemoryShortError) as error:
                    if suspects is not None:
                        suspects.append(file)
                        continue
                    part = lost_part(file.path, reason_of(error, Path(file.path)))
                except InputError as error:  # No process can be started.
                    part = lost_part(file.path, reason_of(error, Path(file.path)))
                meter.end(file)
                self._kept.add(part.arrivals)
                yield (part.summary,)

    def _start(self, waiting: deque[RankFile], options: RankOptions, meter: Meter) -> None:
        """Start reading what fits beside the files that are being read; a smaller one may pass."""
        for file in list(waiting):
            if len(self._running) >= self._workers:
                return
            if self._fits(file):
                waiting.remove(file)
                self._running[self._pool.submit(self._read_one, file, options, meter)] = file

    def _fits(self, file: RankFile) -> bool:
        if not self._running or self._memory is None:
            return True
        return file.memory + sum(each.memory for each in self._running.values()) <= self._memory

    def _read_one(self, file: RankFile, options: RankOptions, meter: Meter) -> RankPart:
        def note(stage: str, done: int, expected: int) -> None:
            if expected > 0:
                meter.note(file, min(done / expected, 1.0))

        path = Path(file.path)
        with self._processes.lend(path) as process:
            return process.run(
                partial(read_part, name=file.path, how=options),
                path,
                LoadOptions(cache=options.cache),
                note,
            )

    def unfinished(self) -> Sequence[RankSummary]:
        """Return nothing: what has been read is yielded at once."""
        return ()

    def second_pass(
        self, work: Callable[[Arrivals, CollectiveTable], T], table: CollectiveTable
    ) -> Sequence[T]:
        """Call ``work`` with the collectives of each rank."""
        return [work(arrivals, table) for arrivals in self._kept.all()]

    def close(self) -> None:
        """End the processes."""
        self._processes.stop()
        self._pool.shutdown(cancel_futures=True)
        self._processes.close()
        self._kept.close()


class _KeptArrivals:
    """Keeps the collectives of ranks for the second pass, on disk where they are many.

    Where there is no room for them none is kept: the sums of ranks still tell of most.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by `close`)
        self._is_full = False

    def add(self, arrivals: Sequence[Arrivals]) -> None:
        if self._is_full:
            return
        try:
            for one in arrivals:
                pickle.dump(one, self._file, protocol=5)
            self._file.flush()
        except OSError as error:
            self._is_full = True
            what = "waiting is told by sums alone, and clocks are not"
            say(f"{gettempdir()}: no room for collectives: {error.strerror or error}: {what}")

    def all(self) -> Iterator[Arrivals]:
        if self._is_full:
            return
        self._file.seek(0)
        while True:
            try:
                yield pickle.load(self._file)
            except EOFError:
                return

    def close(self) -> None:
        with suppress(OSError):  # What is still to be written is for nobody.
            self._file.close()
