"""How much all processes of a recording have written so far."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flame.core.errors import InputError
from flame.core.readers.fdump.folder import SUFFIX
from flame.core.readers.fdump.tally import DumpCounts, Tally
from flame.core.units import format_bytes, format_count


@dataclass(frozen=True)
class Totals:
    """Sums over the dumps of a folder; ``processes`` has the pids of those still being written."""

    dumps: int = 0
    kernels: int = 0
    launches: int = 0
    ranges: int = 0
    memops: int = 0
    bytes: int = 0
    dropped: int = 0
    full: bool = False
    stopped: bool = False
    open: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing has been recorded but that there are processes."""
        return not (self.kernels or self.launches or self.ranges or self.memops)

    @property
    def text(self) -> str:
        """All of it in words, as short as it can be."""
        if not self.dumps:
            return "no CUDA or NVTX yet"
        said = [_counted(self.dumps, "process", "processes")]
        if self.kernels or not self.ranges:
            said.append(_counted(self.kernels, "kernel", "kernels"))
        if self.ranges:
            said.append(_counted(self.ranges, "range", "ranges"))
        said.append(format_bytes(self.bytes))
        if self.dropped:
            said.append(f"{format_count(self.dropped)} dropped")
        if self.full:
            said.append("no room for more")
        if self.stopped:
            said.append("stopped as told")
        return ", ".join(said)


def _counted(number: int, one: str, many: str) -> str:
    return f"{format_count(number)} {one if number == 1 else many}"


class Dumps:
    """The dumps of a folder, which come and grow while `update` looks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tallies: dict[str, Tally] = {}
        self._counts: dict[str, DumpCounts] = {}

    def update(self) -> Totals:
        """What they hold now. A dump that cannot be read (yet) is left out."""
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
        """Give all files back."""
        while self._tallies:
            self._tallies.popitem()[1].close()


def _sum(all_counts: Iterable[DumpCounts]) -> Totals:
    counts = list(all_counts)
    return Totals(
        dumps=len(counts),
        kernels=sum(one.kernels for one in counts),
        launches=sum(one.launches for one in counts),
        ranges=sum(one.ranges for one in counts),
        memops=sum(one.memops for one in counts),
        bytes=sum(one.bytes for one in counts),
        dropped=sum(one.dropped for one in counts),
        full=any(one.full for one in counts),
        stopped=any(one.stopped for one in counts),
        open=tuple(one.pid for one in counts if not one.ended),
    )
