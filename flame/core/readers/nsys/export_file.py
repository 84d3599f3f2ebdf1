"""Open an Nsight Systems export as a file, and report damage in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.memory import within_memory
from flame.core.model.launches import LaunchDetails
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.nsys import reader
from flame.core.readers.nsys.reader import LaterReads
from flame.core.readers.shared.heads import read_head
from flame.core.readers.sqlite.pages import PageSource
from flame.core.readers.sqlite.source import TableSource

_LONGEST_REASON = 200
_MOST = 4
"""Times its size that a file may need of memory, whatever the numbers of its rows say."""


_T = TypeVar("_T")
_Read = Callable[[TableSource], _T | None]
"""Reads more of the tables; None where they are not the same any more."""


class _MakeBuilder(Protocol):
    def __call__(self, read: _Read[_T]) -> Callable[[], _T]:
        """Make what reads more when it is called."""


def read_export(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode the SQLite export at ``path``; InputError where it is damaged or something else."""
    raw, later = _read(path, options, progress)
    raw = _with_later_reads(raw, later, lambda read: partial(_read_again, path, read))
    return replace(raw, launches_builder=partial(read_launches_again, path, raw.activities.start))


def _read(path: Path, options: LoadOptions, progress: Progress) -> tuple[RawTrace, LaterReads]:
    with _open_tables(path) as source:
        if not reader.is_export(source):
            raise InputError(f"{path}: an SQLite file, but not an Nsight Systems export")
        need = min(reader.memory_needed(source), _MOST * path.stat().st_size)
        within = within_memory(path, need, progress)
        return reader.read_tables(source, str(path), options, within)


def read_report(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode the report (``.nsys-rep``) at ``path`` by way of an export that nsys makes of it."""
    from flame.core.readers.nsys.report import read_by_export

    def read(export: Path, stays: bool) -> RawTrace:
        raw, later = _read(export, options, progress)
        starts = raw.activities.start
        raw = _with_later_reads(
            raw,
            later,
            (lambda read: partial(_read_again_of_report, path, read))
            if stays
            else (lambda read: partial(_same, _read_again(export, read))),
        )
        launches = partial(_read_launches_of_report, path, starts) if stays else None
        builder = launches or read_launches_again(export, starts).builder()
        return replace(raw, launches_builder=builder, meta=replace(raw.meta, path=str(path)))

    converted = read_by_export(path, progress, read)
    raw = converted.value
    return replace(raw, warnings=[*raw.warnings, *converted.notes])


def _with_later_reads(raw: RawTrace, later: LaterReads, builder: _MakeBuilder) -> RawTrace:
    """Have ``raw`` read ``later`` what it has not; ``builder`` makes builders of these reads."""
    return replace(
        raw,
        failures_builder=None if later.failures is None else builder(later.failures),
        events_builder=None if later.events is None else builder(later.events),
    )


def _same(value: _T) -> _T:
    return value


def _read_launches_of_report(path: Path, starts: I8) -> LaunchDetails:
    """Read launches from the export in the cache; from a new one if it has gone meanwhile."""
    return _of_report(path, lambda export: read_launches_again(export, starts))


def _read_again_of_report(path: Path, read: _Read[_T]) -> _T:
    return _of_report(path, lambda export: _read_again(export, read))


def _of_report(path: Path, read: Callable[[Path], _T]) -> _T:
    from flame.core.readers.nsys.report import read_by_export

    read_head(path)
    return read_by_export(path, silent, lambda export, _: read(export)).value


def read_launches_again(path: Path, starts: I8) -> LaunchDetails:
    """Read how the activities with these starts were launched; InputError if the file changed."""
    from flame.core.readers.nsys.geometry import read_launches

    return _read_again(path, lambda source: read_launches(source, starts))


def _read_again(path: Path, read: _Read[_T]) -> _T:
    """Read more of the file at ``path``; InputError where it has changed, or makes no sense."""
    read_head(path)  # knows best what to say of a file that has gone
    with _open_tables(path) as source:
        try:
            found = read(source)
        except InputError as error:
            raise InputError(f"{path}: {error}; export the report again") from None
    if found is None:
        raise InputError(f"{path}: has changed since it was opened: open it again")
    return found


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
