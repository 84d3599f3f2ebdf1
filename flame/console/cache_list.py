"""Write what the cache holds (``flame cache``): as JSON for scripts, as text for people."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flame.core.files.bounds import CacheBounds, CacheEntry
from flame.core.files.cache_folder import cache_path
from flame.core.options import LoadOptions
from flame.core.reopening.profile_cache import KIND, read_kept
from flame.core.reopening.profile_head import About
from flame.core.shown_text import cells, printable
from flame.core.units import format_age, format_bytes, format_counted

_TRACE = "trace"
_WHAT = {
    _TRACE: "a trace",
    "report": "a report or packed export of Nsight Systems",
    "page": "a report of Nsight Compute",
    "code": "instructions of kernels",
    "fetched": "a trace that was fetched",
}
_KINDS = {
    ".profile": _TRACE,
    ".sqlite": "report",
    ".csv": "page",
    ".sass": "code",
    ".fetched": "fetched",
}


def _kind(entry: CacheEntry) -> str:
    return _KINDS.get(entry.path.suffix, "other")


def _about(entry: CacheEntry) -> About | None:
    """The trace that an entry was read from; None where it is of none, or does not say."""
    return read_kept(entry.path) if entry.path.parent.name == KIND else None


def facts(entries: Sequence[CacheEntry], bounds: CacheBounds) -> dict[str, object]:
    """Return the contract of ``flame cache --json``: sizes in bytes, ``used`` in s since 1970.

    ``trace`` and ``options``, by which it was read, are null where the entry was made of no trace.
    """
    return {
        "path": str(cache_path()),
        "bytes": sum(entry.size for entry in entries),
        "most_bytes": bounds.size,
        "days": bounds.days,
        "entries": list(map(_entry, entries)),
    }


def _entry(entry: CacheEntry) -> dict[str, object]:
    about = _about(entry)
    return {
        "path": str(entry.path),
        "kind": _kind(entry),
        "trace": about and about.trace.path,
        "options": about and dict(about.options),
        "bytes": entry.size,
        "used": round(entry.used, 3),
    }


def as_json(entries: Sequence[CacheEntry], bounds: CacheBounds) -> str:
    """Write `facts` as JSON in plain ASCII."""
    return json.dumps(facts(entries, bounds), indent=2) + "\n"


def as_text(entries: Sequence[CacheEntry], bounds: CacheBounds, width: int) -> str:
    """Write the same for people, what was used last first."""
    return "".join(f"{line}\n" for line in _lines(entries, bounds, width))


def _lines(entries: Sequence[CacheEntry], bounds: CacheBounds, width: int) -> Iterator[str]:
    if entries:
        yield f"{'used':>10}{'size':>10}  what for"
    now = time.time()
    for entry in entries:
        age, size = format_age(max(now - entry.used, 0)), format_bytes(entry.size)
        start = f"{age:>10}{size:>10}  "
        yield start + _end_of(printable(_described(entry)), width - cells(start))
    held = sum(entry.size for entry in entries)
    number = format_counted(len(entries), "file", "files")
    yield f"{printable(str(cache_path()))}: {number}, {_bounded(held, bounds)}"


def _end_of(text: str, room: int) -> str:
    """The end of ``text``, which says most of a path, in ``room`` cells."""
    if cells(text) <= room:
        return text
    kept = text[-max(room - 1, 1) :]
    while cells(kept) >= room > 1:
        kept = kept[1:]
    return f"…{kept}"


def _described(entry: CacheEntry) -> str:
    about = _about(entry)
    if about is None:
        return _WHAT.get(_kind(entry), "unknown")
    words = [about.trace.path, *_options(about)]
    return " ".join(words if os.path.lexists(about.trace.path) else [*words, "(gone)"])


def _options(about: About) -> Iterator[str]:
    """The options as on the command line, those that are not the usual ones."""
    usual = LoadOptions()
    for name, value in about.options:
        if value != str(getattr(usual, name, value)):
            yield f"--{name.replace('_', '-')}" + ("" if value == "True" else f" {value}")


def _bounded(held: int, bounds: CacheBounds) -> str:
    days = format_counted(bounds.days, "day", "days")
    return f"{format_bytes(held)} of at most {format_bytes(bounds.size)}, kept for {days}"


def cleared(entries: Sequence[CacheEntry], folder: Path) -> str:
    """Say what has been removed from ``folder``."""
    number = format_counted(len(entries), "file", "files")
    held = format_bytes(sum(entry.size for entry in entries))
    return f"removed {number}, {held}, from {printable(str(folder))}\n"
