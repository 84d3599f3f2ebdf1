"""Do on the workers of a cluster what it takes to read ranks and merge them.

A file is read in a process of its own, as on one machine: a worker outlives what ends its reader,
and reads several files at a time if it has several threads.
"""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from flame._version import __version__
from flame.core.errors import InputError
from flame.core.loading.processes import LoadProcesses
from flame.core.loading.worker import EndedError
from flame.core.memory import VARIABLE, MemoryShortError
from flame.core.options import LoadOptions, silent
from flame.core.rank_summary.merge import merge_summaries
from flame.core.ranks.job import lost_part, read_part, reason_of
from flame.core.ranks.summarise import RankPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flame.core.rank_summary.collective_table import CollectiveTable
    from flame.core.rank_summary.summary import RankSummary
    from flame.core.ranks.arrivals import Arrivals

T = TypeVar("T")

_lock = Lock()
_processes: dict[str, LoadProcesses] = {}


def version() -> str:
    """Return the version of flame here."""
    return __version__


def begin(run: str, memory: int) -> None:
    """Prepare a run, whose readers may take ``memory`` bytes each; 0: unknown."""
    with _lock:
        told = {VARIABLE: f"{max(memory // 1_000_000, 1)}MB"} if memory else None
        _processes[run] = LoadProcesses(told)


def read(run: str, name: str, place: str, options: LoadOptions) -> RankPart:
    """Read the file at ``place``, which the user calls ``name``, for ``run``.

    Raises EndedError, MemoryShortError.
    """
    path = Path(place)
    if not path.exists():
        return lost_part(name, f"no such file on {socket.gethostname()}, where it was to be read")
    try:
        with _processes_of(run).lend(path) as process:
            return process.run(partial(read_part, name=name), path, options, silent)
    except (EndedError, MemoryShortError):
        raise
    except InputError as error:  # No process can be started.
        return lost_part(name, reason_of(error, path))


def _processes_of(run: str) -> LoadProcesses:
    with _lock:
        return _processes.setdefault(run, LoadProcesses())


def end(run: str) -> None:
    """End the processes of a run."""
    with _lock:
        processes = _processes.pop(run, None)
    if processes is not None:
        processes.stop()


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
