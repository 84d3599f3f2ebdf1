"""Do on the workers of a cluster what it takes to read ranks and merge them.

A file is read in a process of its own, as on one machine: a worker outlives what ends its reader,
and reads several files at a time if it has several threads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING, TypeVar

from flame._version import __version__
from flame.core.errors import InputError
from flame.core.loading.processes import LoadProcesses
from flame.core.loading.worker import EndedError
from flame.core.memory import VARIABLE, MemoryShortError
from flame.core.options import LoadOptions, silent
from flame.core.rank_summary.merge import merge_summaries
from flame.core.ranks.job import RankFile, lost_part, read_part, reason_of
from flame.core.ranks.summarise import RankOptions, RankPart

if TYPE_CHECKING:
    from flame.core.rank_summary.collective_table import CollectiveTable
    from flame.core.rank_summary.summary import RankSummary
    from flame.core.ranks.communication.arrivals import Arrivals

T = TypeVar("T")


class _Readers:
    """The processes of a run, which may take ``memory`` bytes together; 0: unknown.

    One that needs more has to be alone.
    """

    def __init__(self, memory: int) -> None:
        told = {VARIABLE: f"{max(memory // 1_000_000, 1)}MB"} if memory else None
        self.processes = LoadProcesses(told)
        self._memory = memory
        self._taken: list[int] = []
        self._changed = Condition()

    @contextmanager
    def room(self, need: int) -> Iterator[None]:
        """Wait until there are ``need`` bytes, and have them until the end of the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._fits(need))
            self._taken.append(need)
        try:
            yield
        finally:
            with self._changed:
                self._taken.remove(need)
                self._changed.notify_all()

    def _fits(self, need: int) -> bool:
        return not self._memory or not self._taken or sum(self._taken) + need <= self._memory


_lock = Lock()
_runs: dict[str, _Readers] = {}


def version() -> str:
    """Return the version of flame here."""
    return __version__


def begin(run: str, memory: int) -> None:
    """Prepare a run, whose readers may take ``memory`` bytes together; 0: unknown."""
    with _lock:
        _runs.setdefault(run, _Readers(memory))


def end(run: str) -> None:
    """End the processes of a run."""
    with _lock:
        readers = _runs.pop(run, None)
    if readers is not None:
        readers.processes.stop()


def read(run: str, name: str, place: str, size: int, options: RankOptions) -> RankPart:
    """Read the file at ``place``, which the user calls ``name``, for ``run``.

    Raises EndedError, MemoryShortError.
    """
    path, file = Path(place), RankFile(name, size)
    if not path.exists():
        return lost_part(name, f"no such file on {socket.gethostname()}, where it was to be read")
    readers = _runs.get(run)
    if readers is None:
        raise EndedError(f"{path}: the run has ended")
    try:
        with readers.room(file.memory), readers.processes.lend(path) as process:
            return process.run(
                partial(read_part, name=name, how=options),
                path,
                LoadOptions(cache=options.cache),
                silent,
            )
    except (EndedError, MemoryShortError):
        raise
    except InputError as error:  # No process can be started.
        return lost_part(name, reason_of(error, path))


def merge(*parts: RankPart | RankSummary) -> RankSummary:
    """Merge parts of ranks, or what has been merged of them."""
    return merge_summaries(list(map(summary_of, parts)))


def summary_of(part: RankPart | RankSummary) -> RankSummary:
    """Return the summary of a part."""
    return part.summary if isinstance(part, RankPart) else part


def arrivals_of(part: RankPart) -> tuple[Arrivals, ...]:
    """Return the collectives of a part, which stay here."""
    return part.arrivals


def same(table: CollectiveTable) -> CollectiveTable:
    """Return ``table``: so it is sent once, and is there again when a worker is lost."""
    return table


def apply(
    work: Callable[[Arrivals, CollectiveTable], T],
    arrivals: Sequence[Arrivals],
    table: CollectiveTable,
) -> list[T]:
    """Call ``work`` with the collectives of each rank of a file."""
    return [work(one, table) for one in arrivals]
