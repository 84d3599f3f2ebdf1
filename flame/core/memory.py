"""Compare what a load will need with the memory that this process may still take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError, UsageError
from flame.core.options import Progress
from flame.core.units import format_bytes, parse_size

VARIABLE = "FLAME_MEMORY"

_SURE = 1.25
"""Times what there is, from which on a load does not fit, however wrong the estimate is."""
_CLOSE = 0.9
_SMALL = 100_000_000
"""Bytes that are needed, below which nobody has to be asked."""

_REMEDY = "end other programs or take a larger machine"

PER_BYTE = 3
"""Bytes of memory that a byte of a file may take: 1.9 measured, 2.9 with the host's table."""


class MemoryShortError(InputError):
    """Report that there is too little memory to read a file: later there may be enough."""


class _Bound(NamedTuple):
    """The files of a control group that say how much memory it may take, and what it takes."""

    limit: str
    usage: str
    files: tuple[str, ...]


_V1 = _Bound(
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)
_V2 = _Bound("memory.max", "memory.current", ("inactive_file", "active_file"))


class FreeMemory(NamedTuple):
    """Hold the bytes that are ``free``, pages of files included, and the ``swap`` behind them."""

    free: int
    swap: int = 0


def within_memory(
    path: Path | str, need: int, progress: Progress, remedy: str = _REMEDY
) -> Progress:
    """Refuse a load of ``path`` that cannot fit: it takes about ``need`` bytes.

    Where it is close the load goes on, and its progress, which is returned, says so. Raises
    InputError, and UsageError where FLAME_MEMORY is no amount of data.
    """
    found = _told_memory() or (free_memory() if need >= _SMALL else None)
    if found is None or need <= _CLOSE * found.free:
        return progress
    what = f"needs about {format_bytes(need)} of memory, and {format_bytes(found.free)} are free"
    if need > _SURE * (found.free + found.swap):
        force = f"{VARIABLE}={_gigabytes(need)} tries all the same"
        raise MemoryShortError(f"{path}: {what}: {remedy}; {force}")

    def report(stage: str, done: int, expected: int) -> None:
        progress(f"{stage} ({what})", done, expected)

    return report


def bytes_to_use() -> int | None:
    """Return how many bytes several loads may take together; None where that is not known.

    Raises UsageError where FLAME_MEMORY is no amount of data.
    """
    found = _told_memory() or free_memory()
    return int(_CLOSE * found.free) if found else None


def _gigabytes(size: int) -> str:
    return f"{-(-size // 1_000_000_000)}GB"


def _told_memory() -> FreeMemory | None:
    """What the user says is there; UsageError where that is no amount of data."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    try:
        return FreeMemory(parse_size(text))
    except UsageError as error:
        raise UsageError(f"{VARIABLE}: {error}") from None


def free_memory(root: Path = Path("/")) -> FreeMemory | None:
    """Find what Linux says below ``root`` that this process may take; None on other systems.

    It is what the machine has, or what a control group of this process leaves, if that is less.
    """
    with suppress(OSError, KeyError, ValueError):
        machine = _numbers(root / "proc/meminfo")
        free, swap = (1024 * machine[name] for name in ("MemAvailable", "SwapFree"))
        return FreeMemory(min([free, *_left_by_groups(root)]), swap)
    return None


def _numbers(path: Path) -> dict[str, int]:
    """Read lines of a name and a number, and perhaps a unit."""
    words = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in words}


def _left_by_groups(root: Path) -> Iterator[int]:
    """What the control groups of this process, and those around them, leave of their limits."""
    groups = root / "sys/fs/cgroup"
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            top, bound = (groups / "memory", _V1) if controllers else (groups, _V2)
            own = top / name.lstrip("/")
            # Inside a container only the topmost one may be there.
            for folder in (own, *own.parents):
                yield from _left(folder, bound)
                if folder == top:
                    break


def _left(group: Path, bound: _Bound) -> Iterator[int]:
    with suppress(OSError, ValueError):  # `max`: no limit
        limit = int((group / bound.limit).read_text())
        usage = int((group / bound.usage).read_text())
        counted = _numbers(group / "memory.stat")
        files = sum(counted.get(name, 0) for name in bound.files)
        yield max(limit - max(usage - files, 0), 0)
