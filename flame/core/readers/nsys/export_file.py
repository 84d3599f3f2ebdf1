"""Open an Nsight Systems export as a file, and report damage in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.memory import within_memory
from flame.core.model.launches import LaunchDetails
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.nsys import reader
from flame.core.readers.nsys.side_tables import Later, Read, RowBytes
from flame.core.readers.shared.heads import read_head
from flame.core.readers.sqlite.pages import PageSource

if TYPE_CHECKING:
    from flame.core.readers.shared.conversion import Converted, Reading

T = TypeVar("T")

_LONGEST_REASON = 200
_MOST = 4
"""Times its size that a file may need of memory, whatever the numbers of its rows say."""

_SHORTEST = 8
"""Bytes that a row takes in a file at least, whatever the numbers of rows say."""


def read_export(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode the SQLite export at ``path``; InputError where it is damaged or something else."""
    return _read(path, options, progress, partial(partial, _read_again, path, _state(path)))


def _read(path: Path, options: LoadOptions, progress: Progress, later: Later) -> RawTrace:
    with _open_tables(path) as source:
        if not reader.is_export(source):
            raise InputError(f"{path}: an SQLite file, but not an Nsight Systems export")
        need = min(reader.memory_needed(source), _MOST * path.stat().st_size)
        within = within_memory(path, need, progress)
        raw = reader.read_tables(source, str(path), options, within, later)
    if raw.launches_builder is not None:
        return raw
    return replace(raw, launches_builder=partial(read_launches_again, path, raw.activities.start))


def read_report(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode the report (``.nsys-rep``) at ``path`` by way of an export that nsys makes of it."""
    from flame.core.readers.nsys.report import read_by_export

    return _read_made(path, options, progress, _Making(read_by_export, options.cache))


def read_packed_export(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode the packed export at ``path``, which is unpacked first."""
    from flame.core.readers.nsys.report import read_by_unpacking

    return _read_made(path, options, progress, _Making(read_by_unpacking, options.cache))


class _By(Protocol):
    """Makes an export of the file at a path, and reads it."""

    def __call__(
        self, path: Path, progress: Progress, read: Reading[T], *, cache: bool
    ) -> Converted[T]: ...


class _Making(NamedTuple):
    """How an export is made of a file, and whether the cache keeps it."""

    by: _By
    cache: bool

    def read(self, path: Path, progress: Progress, read: Reading[T]) -> Converted[T]:
        """Make an export of the file at ``path`` and ``read`` that."""
        return self.by(path, progress, read, cache=self.cache)


def _read_made(path: Path, options: LoadOptions, progress: Progress, by: _Making) -> RawTrace:
    state = _state(path)

    def read(export: Path, stays: bool) -> RawTrace:
        raw = _read(export, options, progress, partial(partial, _read_made_again, path, state, by))
        starts = raw.activities.start
        later = partial(_read_launches_of_made, path, starts, by) if stays else None
        builder = later or read_launches_again(export, starts).builder()
        return replace(raw, launches_builder=builder, meta=replace(raw.meta, path=str(path)))

    converted = by.read(path, progress, read)
    raw = converted.value
    return replace(raw, warnings=[*raw.warnings, *converted.notes])


def _read_made_again(
    path: Path,
    state: tuple[int, int],
    by: _Making,
    read: Read[T | None],
    rows: RowBytes | None = None,
) -> T:
    """Read tables of the export in the cache; of a new one if it has gone meanwhile."""
    _refuse_changed(path, state)
    return by.read(path, silent, lambda export, _: _read_tables(export, read, rows)).value


def _read_again(
    path: Path, state: tuple[int, int], read: Read[T | None], rows: RowBytes | None = None
) -> T:
    """Read tables of the export at ``path``."""
    _refuse_changed(path, state)
    return _read_tables(path, read, rows)


def _read_tables(path: Path, read: Read[T | None], rows: RowBytes | None = None) -> T:
    """Read more of the file at ``path``; InputError where it has changed, or makes no sense.

    Refused before it is read where its ``rows`` cannot fit the memory.
    """
    with _open_tables(path) as source:
        if rows is not None:
            number = min(source.size(rows.table), path.stat().st_size // _SHORTEST)
            within_memory(path, rows.each * number, silent)
        try:
            found = read(source)
        except InputError as error:
            raise InputError(f"{path}: {error}; export the report again") from None
    if found is None:
        raise InputError(f"{path}: has changed since it was opened: open it again")
    return found


def _refuse_changed(path: Path, state: tuple[int, int]) -> None:
    """Raise InputError where the file at ``path`` is not what it was, or has gone."""
    read_head(path)  # knows best what to say of a file that has gone
    if _state(path) != state:
        raise InputError(f"{path}: has changed since it was opened: open it again")


def _state(path: Path) -> tuple[int, int]:
    """What tells whether a file has changed: (bytes, when it was written); zeros without one."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _read_launches_of_made(path: Path, starts: I8, by: _Making) -> LaunchDetails:
    """Read launches from the export in the cache; from a new one if it has gone meanwhile."""
    read_head(path)
    return by.read(path, silent, lambda export, _: read_launches_again(export, starts)).value


def read_launches_again(path: Path, starts: I8) -> LaunchDetails:
    """Read how the activities with these starts were launched; InputError if the file changed."""
    from flame.core.readers.nsys.geometry import read_launches

    read_head(path)  # knows best what to say of a file that has gone
    return _read_tables(path, lambda source: read_launches(source, starts))


@contextmanager
def _open_tables(path: Path) -> Iterator[PageSource]:
    """Open the tables of the file at ``path``; what its damage raises becomes an InputError."""
    try:
        with closing(PageSource(path)) as source:
            yield source
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite quotes the damaged place, which may be long and no UTF-8.
        reason = str(error)[:_LONGEST_REASON] if isinstance(error, sqlite3.Error) else "its schema"
        raise InputError(f"{path}: damaged: {reason}; export the report again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
