"""Total how much all processes of a recording have written so far."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.fdump.folder import SUFFIX
from flame.core.readers.fdump.tally import DumpCounts, Tally
from flame.core.units import format_bytes, format_count, format_counted


@dataclass(frozen=True)
class RecordingTotals:
    """Sum over the dumps of a folder; ``open`` has the pids of those still being written."""

    dumps: int = 0
    kernels: int = 0
    launches: int = 0
    calls: int = 0
    ranges: int = 0
    memops: int = 0
    graphs: int = 0
    memory: int = 0
    bytes: int = 0
    dropped: int = 0
    full: bool = False
    stopped: bool = False
    open: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """Tell whether nothing has been recorded but that there are processes."""
        work = (self.kernels, self.memops, self.graphs, self.memory)
        return not any((*work, self.launches, self.calls, self.ranges))

    @property
    def text(self) -> str:
        """Say all of it in words, as short as possible."""
        if not self.dumps:
            return "no CUDA or NVTX yet"
        words = [format_counted(self.dumps, "process", "processes")]
        if self.kernels or not self.ranges:
            words.append(format_counted(self.kernels, "kernel", "kernels"))
        if self.graphs:
            words.append(format_counted(self.graphs, "graph launch", "graph launches"))
        if self.memory:
            words.append(format_counted(self.memory, "memory event", "memory events"))
        if self.ranges:
            words.append(format_counted(self.ranges, "range", "ranges"))
        words.append(format_bytes(self.bytes))
        if self.dropped:
            words.append(f"{format_count(self.dropped)} dropped")
        if self.full:
            words.append("no room for more")
        if self.stopped:
            words.append("stopped as told")
        return ", ".join(words)


class RecordedDumps:
    """Read the dumps of a folder, which come and grow while `update` looks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tallies: dict[str, Tally] = {}
        self._counts: dict[str, DumpCounts] = {}

    def update(self) -> RecordingTotals:
        """Total what they hold now. A dump that cannot be read (yet) is left out."""
        for name in self._names():
            # No more is written to those that have ended: give their files back.
            if name not in self._counts or not self._counts[name].ended:
                with suppress(InputError):
                    self._look(name)
        return _sum(self._counts.values())

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [name for name in os.listdir(self._folder) if name.endswith(SUFFIX)]  # noqa: PTH208
        return []

    def _look(self, name: str) -> None:
        if name not in self._tallies:
            self._tallies[name] = Tally(self._folder / name)
        counts = self._counts[name] = self._tallies[name].update()
        if counts.ended:
            self._tallies.pop(name).close()

    def close(self) -> None:
        """Close all files."""
        while self._tallies:
            self._tallies.popitem()[1].close()


def _sum(all_counts: Iterable[DumpCounts]) -> RecordingTotals:
    counts = list(all_counts)
    return RecordingTotals(
        dumps=len(counts),
        kernels=sum(count.kernels for count in counts),
        launches=sum(count.launches for count in counts),
        calls=sum(count.calls for count in counts),
        ranges=sum(count.ranges for count in counts),
        memops=sum(count.memops for count in counts),
        graphs=sum(count.graphs for count in counts),
        memory=sum(count.memory for count in counts),
        bytes=sum(count.bytes for count in counts),
        dropped=sum(count.dropped for count in counts),
        full=any(count.full for count in counts),
        stopped=any(count.stopped for count in counts),
        open=tuple(count.pid for count in counts if not count.ended),
    )
