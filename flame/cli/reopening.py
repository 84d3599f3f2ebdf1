"""Open the traces of a command from the cache, and keep those that are not in it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.errors import FlameError
from flame.options.config import allows_cache
from flame.options.parser import group_called
from flame.options.selection import READING

if TYPE_CHECKING:
    from flame.core.projection.selection import Selection
    from flame.core.reopening.profile_cache import ProfileCache

_SMALLEST = 2_000_000
"""Bytes of a file, packed or not, below which the cache keeps nothing of it."""


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Add the option that leaves the cache alone."""
    text = "read the whole trace again, and keep nothing of it for the next time: see flame cache"
    group_called(READING, parser).add_argument("--no-cache", action="store_true", help=text)


@contextmanager
def profile_cache(
    args: argparse.Namespace, selection: Selection | None = None
) -> Iterator[ProfileCache | None]:
    """Yield the cache to load by; None where it is not to be used.

    What has been loaded is kept at the end, also where nothing matched: the next try is quick.
    Where ``selection`` shows what only the trace has, that is loaded at once, with its progress.
    """
    if not wants_cache(args):
        yield None
        return
    from flame.core.reopening.profile_cache import ProfileCache

    cache = ProfileCache(finds=selection is None or not _needs_trace(selection))
    try:
        yield cache
    except FlameError:
        cache.write()
        raise
    cache.write()


def _needs_trace(selection: Selection) -> bool:
    return selection.metric in ("host", "waiting") or "nested" in (selection.levels or ())


def _may_be_large(path: Path) -> bool:
    """Tell whether a trace at ``path``, if there is one, may be one that the cache keeps."""
    try:
        sizes = [entry.stat().st_size for entry in _files_at(path)]
    except OSError:
        return False
    return max(sizes, default=0) >= _SMALLEST


def _files_at(path: Path) -> Iterable[Path]:
    return path.iterdir() if path.is_dir() else (path,)


def wants_cache(args: argparse.Namespace) -> bool:
    """Tell whether a trace is large, and nothing turns the cache off."""
    return any(_may_be_large(Path(path)) for path in args.paths) and allows_cache(args)
