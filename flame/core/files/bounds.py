"""Bound the cache by size and age: what was not used for longest goes first."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flame.core.errors import UsageError
from flame.core.files.cache_folder import cache_path
from flame.core.files.temporary import remove_left
from flame.core.units import parse_size

SIZE_VARIABLE, DAYS_VARIABLE = "FLAME_CACHE_SIZE", "FLAME_CACHE_DAYS"
_SIZE, _DAYS = 5_000_000_000, 30
_SECONDS = 86_400


@dataclass(frozen=True)
class CacheBounds:
    """How much the cache keeps, bytes, and for how many days without use."""

    size: int = _SIZE
    days: int = _DAYS


def read_bounds() -> CacheBounds:
    """Read FLAME_CACHE_SIZE and FLAME_CACHE_DAYS; UsageError where they are no bounds."""
    size, days = os.environ.get(SIZE_VARIABLE), os.environ.get(DAYS_VARIABLE)
    return CacheBounds(_parse_size(size) if size else _SIZE, _parse_days(days) if days else _DAYS)


def _parse_size(text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"{SIZE_VARIABLE}: {error}") from None


def _parse_days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise UsageError(f"{DAYS_VARIABLE}: '{text}' is not a number of days: use forms like 30")
    return int(text)


@dataclass(frozen=True)
class _Entry:
    used: float
    size: int
    path: Path


def cache_size() -> int:
    """Add up what the cache holds now, bytes."""
    return sum(entry.size for entry in _entries())


def trim(bounds: CacheBounds, kept: Path) -> None:
    """Remove from the cache what is beyond its bounds, and what killed processes have left in it.

    ``kept`` stays, whatever its size. Nothing is raised for what cannot be removed.
    """
    oldest = time.time() - bounds.days * _SECONDS
    entries = sorted(_entries(), key=lambda entry: entry.used)
    for folder in {entry.path.parent for entry in entries}:
        remove_left(folder)
    total = sum(entry.size for entry in entries)
    for entry in entries:
        if entry.path == kept or (total <= bounds.size and entry.used >= oldest):
            continue
        with suppress(OSError):
            entry.path.unlink()
            total -= entry.size


def _entries() -> Iterator[_Entry]:
    """Files in the folder of the cache and the folders in that; hidden ones are no results."""
    top = cache_path()
    yield from _files(top)
    with suppress(OSError), os.scandir(top) as found:
        for folder in [one for one in found if one.is_dir(follow_symlinks=False)]:
            yield from _files(Path(folder.path))


def _files(folder: Path) -> Iterator[_Entry]:
    with suppress(OSError), os.scandir(folder) as found:
        for one in [one for one in found if not one.name.startswith(".")]:
            known = one.stat(follow_symlinks=False)
            if stat.S_ISREG(known.st_mode):
                yield _Entry(known.st_mtime, known.st_size, Path(one.path))
