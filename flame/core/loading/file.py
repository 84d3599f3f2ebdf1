"""Opening a trace: which format it is, by content, and the reader for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from flame.core.attribution.attribute import attribute
from flame.core.attribution.resolved import profile_of
from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.model.launches import Launches
from flame.core.model.profile import Profile
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.fdump.folder import is_folder
from flame.core.readers.nsys import reader as nsys
from flame.core.readers.nsys.geometry import read_launches
from flame.core.readers.shared.heads import head_of, unpacked_head
from flame.core.readers.sqlite.connection import MAGIC
from flame.core.readers.sqlite.pages import PageSource

_LONGEST_REASON = 200


def load(
    path: str | Path, options: LoadOptions | None = None, progress: Progress = silent
) -> Profile:
    """Read the trace at ``path`` and attribute its GPU time; of a folder the dumps in it.

    The format is recognised by content; a wrong suffix is no obstacle. Nothing is ever written to
    or beside the file. Raises InputError (one line: what, where, what to do) when it cannot be
    read, CancelledError when ``progress`` does.
    """
    path, options = Path(path), options or LoadOptions()
    try:
        if options.ncu:
            return _load_with_ncu(path, options, progress)
        return _load(path, options, progress)
    except MemoryError:
        raise InputError(f"{path}: there is not enough memory to read it") from None


def _load_with_ncu(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    from flame.core.loading.ncu import read_all
    from flame.core.sampling.ncu_join import join

    files = read_all(options.ncu, progress)
    return join(_load(path, replace(options, ncu=()), progress), files)


def _load(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    if is_folder(path):
        from flame.core.loading.many import load_all

        return load_all([path], options, progress)
    head = head_of(path)
    if head.startswith(MAGIC):
        return _load_sqlite(path, options, progress)
    from flame.core.readers.nsys.report import convert, looks_like_report

    if looks_like_report(path, head):
        converted = _load_sqlite(convert(path, progress), options, progress)
        return replace(converted, meta=replace(converted.meta, path=str(path)))
    if not head:
        raise InputError(f"{path}: the file is empty")
    from flame.core.readers.ncu import report

    if report.looks_like_report(path, head):
        return _load_ncu(path, progress)
    return _load_text(path, options, progress)


def _load_ncu(path: Path, progress: Progress) -> Profile:
    from flame.core.loading.ncu import read_ncu
    from flame.core.sampling.ncu_alone import profile_of_ncu

    return profile_of_ncu(read_ncu(path, progress))


def _load_text(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    """The profile of a file in one of `flame.core.readers.formats.FORMATS`."""
    from flame.core.readers.formats import HEAD, format_of

    head = unpacked_head(path, HEAD)
    if head.startswith(MAGIC):
        raise InputError(f"{path}: a compressed database: unpack it first (gunzip)")
    found = format_of(path, head)
    if found is None:
        from flame.core.readers.ncu.source_csv import looks_like
        from flame.core.readers.unsupported import advice

        if looks_like(head):
            return _load_ncu(path, progress)
        raise InputError(f"{path}: {advice(head, path.name)}")
    raw = found.read(path, options, progress)
    try:
        return attribute(raw, progress) if isinstance(raw, RawTrace) else profile_of(raw)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _load_sqlite(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    raw = _read_sqlite(path, options, progress)
    starts = raw.activities.start
    try:
        profile = attribute(raw, progress)
    except InputError as error:
        raise InputError(f"{path}: {error}; export the report again") from None
    return replace(profile, launches_builder=partial(_read_launches, path, starts))


def _read_sqlite(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    with _opened(path) as source:
        if not nsys.is_export(source):
            raise InputError(f"{path}: an SQLite file, but not an Nsight Systems export")
        return nsys.read(source, str(path), options, progress)


def _read_launches(path: Path, starts: I8) -> Launches:
    """How the activities with these starts were launched; InputError if the file is another."""
    head_of(path)  # knows best what to say of a file that has gone
    with _opened(path) as source:
        launches = read_launches(source, starts)
    if launches is None:
        raise InputError(f"{path}: has changed since it was opened: open it again")
    return launches


@contextmanager
def _opened(path: Path) -> Iterator[PageSource]:
    """The tables of the file at ``path``; what its damage raises becomes an InputError."""
    try:
        with closing(PageSource(path)) as source:
            yield source
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # SQLite quotes the damaged place, which may be long and no UTF-8.
        reason = str(error)[:_LONGEST_REASON] if isinstance(error, sqlite3.Error) else "its schema"
        raise InputError(f"{path}: damaged: {reason}; export the report again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
