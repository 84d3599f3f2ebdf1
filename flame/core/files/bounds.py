"""Bound the cache by size and age: what was not used for longest goes first."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.files.cache_folder import cache_path, refuse_untrusted
from flame.core.files.temporary import remove_left
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.units import parse_size

SIZE_VARIABLE, DAYS_VARIABLE = "FLAME_CACHE_SIZE", "FLAME_CACHE_DAYS"
_SIZE, _DAYS = 10_000_000_000, 30
_PART = 10
_FREE = 5_000_000_000
_SECONDS = 86_400
_RESULT = lazy_regex(r"[0-9a-f]{16,}-[^/]*\.(profile|sqlite|csv|sass|fetched)\Z")


@dataclass(frozen=True)
class CacheBounds:
    """How much the cache keeps, bytes, and for how many days without use."""

    size: int = _SIZE
    days: int = _DAYS


def read_bounds() -> CacheBounds:
    """Read FLAME_CACHE_SIZE and FLAME_CACHE_DAYS; UsageError where they are no bounds.

    Where nothing else is said the cache keeps 10 GB, or a tenth of the disk if that is less.
    """
    size, days = os.environ.get(SIZE_VARIABLE), os.environ.get(DAYS_VARIABLE)
    return CacheBounds(
        _parse_size(size) if size else _usual_size(), _parse_days(days) if days else _DAYS
    )


def _usual_size() -> int:
    disk = _disk()
    return min(_SIZE, disk.total // _PART) if disk else _SIZE


def has_room(size: int) -> bool:
    """Tell whether ``size`` bytes leave 5 GB of the disk free, or a tenth if that is less."""
    disk = _disk()
    return disk is not None and disk.free - size >= min(_FREE, disk.total // _PART)


def _disk() -> _Disk | None:
    """The disk on which the cache lies, or would."""
    from shutil import disk_usage

    path = cache_path()
    for folder in (path, *path.parents):
        with suppress(OSError):
            total, _, free = disk_usage(folder)
            return _Disk(total, free)
    return None


class _Disk(NamedTuple):
    total: int
    free: int


def _parse_size(text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"{SIZE_VARIABLE}: {error}") from None


def _parse_days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise UsageError(f"{DAYS_VARIABLE}: '{text}' is not a number of days: use forms like 30")
    return int(text)


class CacheEntry(NamedTuple):
    """A file in the cache: when it was used last (seconds since 1970), and its bytes."""

    used: float
    size: int
    path: Path


def cache_entries() -> list[CacheEntry]:
    """List what the cache holds now, what was used last first; nothing where there is no cache."""
    return sorted(_entries(), key=lambda entry: -entry.used)


def cache_size() -> int:
    """Add up what the cache holds now, bytes."""
    return sum(entry.size for entry in _entries())


def clear_cache() -> list[CacheEntry]:
    """Remove all results, and return what they were. Raises OSError, NoCacheError.

    What killed processes have left goes, too; files of other names stay, whoever has put them
    there.
    """
    refuse_untrusted()
    _remove_left()
    entries = [entry for entry in cache_entries() if _RESULT.match(entry.path.name)]
    for entry in entries:
        entry.path.unlink(missing_ok=True)
    return entries


def trim(bounds: CacheBounds, kept: Path) -> None:
    """Remove from the cache what is beyond its bounds, and what killed processes have left in it.

    ``kept`` stays, whatever its size. Nothing is raised for what cannot be removed.
    """
    oldest = time.time() - bounds.days * _SECONDS
    entries = sorted(_entries(), key=lambda entry: entry.used)
    _remove_left()
    total = sum(entry.size for entry in entries)
    for entry in entries:
        if entry.path == kept or (total <= bounds.size and entry.used >= oldest):
            continue
        with suppress(OSError):
            entry.path.unlink()
            total -= entry.size


def _remove_left() -> None:
    for folder in _folders():
        remove_left(folder)


def _entries() -> Iterator[CacheEntry]:
    """Files in the folder of the cache and the folders in that; hidden ones are no results."""
    for folder in _folders():
        yield from _files(folder)


def _folders() -> list[Path]:
    """The folder of the cache and those of its kinds; in hidden ones results are being made."""
    top = cache_path()
    folders = [top]
    with suppress(OSError), os.scandir(top) as found:
        visible = (one for one in found if not one.name.startswith("."))
        folders += [Path(one.path) for one in visible if one.is_dir(follow_symlinks=False)]
    return folders


def _files(folder: Path) -> Iterator[CacheEntry]:
    with suppress(OSError), os.scandir(folder) as found:
        for one in [one for one in found if not one.name.startswith(".")]:
            known = one.stat(follow_symlinks=False)
            if stat.S_ISREG(known.st_mode):
                yield CacheEntry(known.st_mtime, known.st_size, Path(one.path))
