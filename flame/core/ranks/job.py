"""Say what an engine does with files of ranks: read each, merge as they arrive, read on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from flame.core.errors import CancelledError, FlameError
from flame.core.loading.file import load_file
from flame.core.memory import PER_BYTE, MemoryShortError
from flame.core.options import LoadOptions, Progress
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import LostRank, RankSummary, empty_summary
from flame.core.ranks.communication.matching import Matching, match_table
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import RankWaits, waits_of
from flame.core.ranks.rank_file import part_kept
from flame.core.ranks.summarise import USUAL, RankOptions, RankPart, summarise

if TYPE_CHECKING:
    from flame.core.rank_summary.collective_table import CollectiveTable
    from flame.core.ranks.communication.arrivals import Arrivals

FAN_IN = 8
"""Summaries of one height that become one of the next."""

KEEP_EVERY = 60.0
"""Seconds from one partial result to the next."""

T = TypeVar("T")


class RankFile(NamedTuple):
    """Name a file, as it was given, and its size in bytes."""

    path: str
    size: int

    @property
    def memory(self) -> int:
        """Bytes of memory that reading it may take."""
        return PER_BYTE * self.size


class Meter(Protocol):
    """Is told how far an engine is; any thread may call it."""

    def note(self, file: RankFile, share: float) -> None:
        """Note that ``share`` of a file, 0 to 1, has been read."""

    def end(self, file: RankFile) -> None:
        """Note that a file has been read, or will never be."""

    def say(self, text: str) -> None:
        """Note what all wait for, '' for nothing."""

    def tell(self) -> None:
        """Report how far all are; raises CancelledError where that is to be the end."""


class Engine(Protocol):
    """Reads files of ranks: in processes here, or on a cluster."""

    def read(
        self, files: Sequence[RankFile], options: RankOptions, meter: Meter
    ) -> Iterator[Sequence[RankSummary]]:
        """Yield summaries that have each file once, read or lost; many times a second, or none.

        Raises InputError where nothing at all can be read.
        """

    def unfinished(self) -> Sequence[RankSummary]:
        """Return what has been read and not been yielded, as far as it is here in half a second."""

    def second_pass(
        self, work: Callable[[Arrivals, CollectiveTable], T], table: CollectiveTable
    ) -> Sequence[T]:
        """Call ``work`` with the collectives of each rank that was read, unless they are gone."""

    def close(self) -> None:
        """End what was begun; at once."""


def read_part(
    path: Path,
    options: LoadOptions,
    progress: Progress,
    *,
    name: str,
    how: RankOptions = USUAL,
) -> RankPart:
    """Read the file at ``path``, which the user calls ``name``; of one that cannot be read, why.

    What is kept of a dump takes its place. Raises MemoryShortError: alone it may be read.
    """
    try:
        kept = part_kept(path, name, how)
        return kept or summarise(load_file(path, options, progress), name, options=how)
    except (CancelledError, MemoryShortError, BrokenPipeError):
        raise
    except MemoryError:
        raise MemoryShortError(f"{path}: there is not enough memory to read it") from None
    except FlameError as error:
        return lost_part(name, reason_of(error, path))
    except OSError as error:
        return lost_part(name, error.strerror or str(error))
    except Exception as error:  # One of thousands must not end the others.
        return lost_part(name, f"internal error: {type(error).__name__}: {error}")


def lost_part(name: str, reason: str) -> RankPart:
    """Make the part of a file that cannot be read."""
    return RankPart(lost_summary(name, reason), ())


def lost_summary(name: str, reason: str) -> RankSummary:
    """Make the summary of a file that cannot be read."""
    return empty_summary((LostRank(name, reason),))


def reason_of(error: Exception, path: Path) -> str:
    """Return what ``error`` says of the file at ``path``, without its name."""
    return str(error).removeprefix(f"{path}: ")


class PartsByHeight(Generic[T]):
    """Holds parts by height until there are `FAN_IN` of one."""

    def __init__(self) -> None:
        self._levels: dict[int, list[T]] = {}

    def put(self, part: T, height: int) -> list[T]:
        """Take a part in; return those of its height, and let go of them, where they are enough."""
        level = self._levels.setdefault(height, [])
        level.append(part)
        return self._levels.pop(height) if len(level) == FAN_IN else []

    def parts(self) -> list[T]:
        """List what it holds."""
        return [part for level in self._levels.values() for part in level]

    def take(self) -> list[T]:
        """Return what it holds, and let go of it."""
        parts = self.parts()
        self._levels.clear()
        return parts


class Reduction:
    """Merges summaries as they arrive, and holds a few however many these are."""

    def __init__(self) -> None:
        self._parts = PartsByHeight[RankSummary]()

    def add(self, part: RankSummary) -> None:
        """Take a summary in; InputError where a rank of it is there."""
        while batch := self._parts.put(part, height_of(len(part) + len(part.lost))):
            part = merge_summaries(batch)

    def whole(self, others: Sequence[RankSummary] = ()) -> RankSummary:
        """Merge all there is, and ``others``."""
        return without_found(merge_summaries([*self._parts.parts(), *others]))


def height_of(ranks: int) -> int:
    """Return the height of a summary of so many ranks in a tree: 0 up to 7, 1 up to 63."""
    height = 0
    while ranks >= FAN_IN:
        ranks //= FAN_IN
        height += 1
    return height


def without_found(summary: RankSummary) -> RankSummary:
    """Leave out as lost what was read another time."""
    found = {place_of(info.path) for info in summary.info}
    lost = tuple(one for one in summary.lost if place_of(one.path) not in found)
    return summary if len(lost) == len(summary.lost) else replace(summary, lost=lost)


def place_of(path: str) -> str:
    """Return where a file is, by which it is known however it was named."""
    return os.path.abspath(path)  # noqa: PTH100 (Path.resolve asks the disk)


class RankJob:
    """Reads files, merges ``summaries`` and what these tell, and keeps what there is by and by."""

    def __init__(
        self,
        engine: Engine,
        summaries: Sequence[RankSummary],
        keep: Callable[[RankSummary], None],
        every: float = KEEP_EVERY,
    ) -> None:
        self._engine = engine
        self._keep = keep
        self._every = every
        self._reduction = Reduction()
        for one in summaries:
            self._reduction.add(one)

    def run(
        self, files: Sequence[RankFile], meter: Meter, options: RankOptions = USUAL
    ) -> RankSummary:
        """Read ``files``, the largest first; return the summary of all.

        Raises InputError where a rank is there twice; CancelledError where ``meter`` does, with
        what there is kept.
        """
        order = sorted(files, key=lambda file: (-file.size, file.path))
        due = time.monotonic() + self._every
        for parts in self._engine.read(order, options, meter):
            for part in parts:
                self._reduction.add(part)
            try:
                meter.tell()
            except CancelledError:
                self._keep_so_far()
                raise
            if time.monotonic() >= due:
                self._keep_so_far()
                due = time.monotonic() + self._every
        whole = self._reduction.whole()
        return with_waits(whole, self._measure(whole)) if files else whole

    def _measure(self, whole: RankSummary) -> Sequence[RankWaits]:
        """Measure how each rank that was read waited, by the collectives of the ``whole``."""
        matching = match_table(whole.collectives, len(whole))
        if not matching.matched.any():
            return ()
        work = partial(_waits_of, matching=matching)
        return self._engine.second_pass(work, whole.collectives)

    def _keep_so_far(self) -> None:
        self._keep(self._reduction.whole(self._engine.unfinished()))


def _waits_of(arrivals: Arrivals, table: CollectiveTable, matching: Matching) -> RankWaits:
    return waits_of(arrivals, table, matching)
