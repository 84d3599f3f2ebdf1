"""Open traces from the cache where they are in it, and put into it those that were not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from flame._version import __version__
from flame.core.errors import InputError, UsageError
from flame.core.files.bounds import has_room
from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress
from flame.core.readers.formats import FileHead, Reopening, find_format
from flame.core.reopening.column_file import ColumnFile, DamagedError, read_about, write_columns
from flame.core.reopening.decode import decode, frames_of, read_head
from flame.core.reopening.encode import can_be_kept, encode
from flame.core.reopening.profile_head import About
from flame.core.reopening.trace_again import Load, TraceAgain
from flame.core.reopening.trace_identity import SETTLED, TraceIdentity, identify

KIND = "profiles"
LEAST = 50_000_000
"""Bytes of a trace that is worth keeping: smaller ones are loaded in less than a second."""

_CONTENTS = 10
"""To be counted up whenever a reader, or attribution, makes something else of a trace.

In a checkout its sources are looked at besides."""

_NOT_WRITTEN = (OSError, NoCacheError, UsageError, ValueError, OverflowError, MemoryError)
"""What keeps a profile from being written: no room, wrong bounds, names that are no UTF-8."""

_SUFFIX = ".profile"
_CACHE = Cache(KIND)


class _Place(NamedTuple):
    """Where the profile of a trace is kept: names of its path, its options and its state."""

    path: str
    options: str
    state: str

    @property
    def name(self) -> str:
        return f"{self.path}-{self.options}-{self.state}{_SUFFIX}"

    def makes_stale(self, name: str) -> bool:
        """Whether the file ``name`` is of the same trace, and no more of use beside this one."""
        path, _, rest = name.removesuffix(_SUFFIX).partition("-")
        options, _, state = rest.partition("-")
        return path == self.path and (options == self.options or state != self.state)


@dataclass(frozen=True, eq=False)
class _Trace:
    """A trace that may be kept, and how it is read."""

    path: Path
    options: LoadOptions
    reopening: Reopening
    identity: TraceIdentity

    @property
    def about(self) -> About:
        names = self.reopening.options
        options = tuple((name, str(getattr(self.options, name))) for name in names)
        return About(self.identity, options, f"{__version__} {_CONTENTS} {_sources()}".rstrip())

    @property
    def place(self) -> _Place:
        about = self.about
        return _Place(
            _digest(self.identity.path),
            _digest(about.options),
            _digest((about.trace, about.flame)),
        )


@cache
def _sources() -> str:
    """Tell states of a checkout apart, which all have one version; empty for what is installed."""
    core = Path(__file__).parents[1]
    checkout = core.parents[1]
    if not (checkout / ".git").exists():
        return ""
    return f"{checkout} {max(_times(str(core)))}"


def _times(folder: str) -> Iterator[int]:
    """When sources below ``folder`` were written; `Path.rglob` takes five times as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _times(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.stat().st_mtime_ns


def _digest(value: object) -> str:
    return sha256(msgspec.msgpack.encode(value)).hexdigest()[:16]


@dataclass(eq=False)
class ProfileCache:
    """Open traces of at least so many bytes from the cache, and keep those that are not in it.

    Only those are kept that nobody has changed for ``settled`` seconds: a later change could not be
    told by its time. Without ``finds`` all are loaded.
    """

    least: int = LEAST
    settled: float = SETTLED
    finds: bool = True
    _pending: list[tuple[_Trace, Profile]] = field(default_factory=list)

    def open(self, path: Path, options: LoadOptions, load: Load, progress: Progress) -> Profile:
        """Find the trace at ``path``, or else load it."""
        return self.find(path, options, load) or self.load(path, options, load, progress)

    def find(self, path: Path, options: LoadOptions, load: Load) -> Profile | None:
        """Open the trace at ``path`` from the cache; None where it is not there.

        What the cache does not keep of it is found by ``load``, when somebody asks for that.
        """
        trace = self._trace_to_keep(path, options) if self.finds else None
        return None if trace is None else _read(trace, load)

    def load(self, path: Path, options: LoadOptions, load: Load, progress: Progress) -> Profile:
        """Load the trace at ``path`` by ``load``, whose errors are raised, for `write` to keep."""
        trace = self._trace_to_keep(path, options)
        keeps = trace is not None and self._wants(trace)
        profile = load(path, options, progress)
        if trace and keeps and can_be_kept(profile, path) and identify(path) == trace.identity:
            self._pending.append((trace, profile))
        return profile

    def _wants(self, trace: _Trace) -> bool:
        """Whether ``trace`` is to be kept, if nothing happens to it until it is loaded."""
        is_there = not self.finds and _is_kept(trace.place.name)
        return not is_there and trace.identity.is_settled(self.settled)

    def write(self) -> None:
        """Write what has been loaded, where that can be done: nobody depends on it."""
        pending, self._pending = self._pending, []
        for trace, profile in pending:
            with suppress(*_NOT_WRITTEN):
                _write(trace, profile)

    def _trace_to_keep(self, path: Path, options: LoadOptions) -> _Trace | None:
        """What is to be known of the trace at ``path``; None where it is not one to be kept."""
        identity = identify(path)
        if identity is None or identity.amount < self.least:
            return None
        try:
            format_ = find_format(FileHead(path))
        except InputError:
            return None  # Its reader says why.
        if format_ is None or format_.reopening is None or not format_.reopening.is_complete(path):
            return None
        return _Trace(path, options, format_.reopening, identity)


def _is_kept(name: str) -> bool:
    with suppress(NoCacheError):
        if file := _CACHE.find_named(name):
            file.close()
            return True
    return False


def _read(trace: _Trace, load: Load) -> Profile | None:
    """Read the profile of ``trace``; None where there is none. One that is damaged goes."""
    name = trace.place.name
    try:
        file = _CACHE.find_named(name)
    except NoCacheError:
        return None
    if file is None:
        return None
    try:
        return _open(file, trace, load, lambda: _drop(name))
    except (DamagedError, OSError):
        file.close()
        _drop(name)
    return None


def _drop(name: str) -> None:
    with suppress(NoCacheError):
        _CACHE.drop(_CACHE.folder() / name)


def _open(file: BinaryIO, trace: _Trace, load: Load, drop: Callable[[], None]) -> Profile:
    columns = ColumnFile(file)
    if columns.about != msgspec.msgpack.encode(trace.about):
        raise DamagedError("of another trace")
    head = read_head(columns)
    columns.when_damaged = drop
    again = TraceAgain(trace.path, trace.options, trace.identity, load, frames_of(head))
    return decode(columns, head, again, trace.reopening.read_launches)


def _write(trace: _Trace, profile: Profile) -> None:
    head, columns = encode(profile)
    place, about = trace.place, msgspec.msgpack.encode(trace.about)
    if not has_room(len(head) + sum(column.nbytes for column in columns.values())):
        return
    with _CACHE.workspace() as folder:
        made = folder / "profile"
        with made.open("wb") as file:
            write_columns(file, about, head, columns)
        _CACHE.keep_named(made, place.name, place.makes_stale)


def read_kept(path: Path) -> About | None:
    """Read of which trace the file at ``path`` in the cache is; None where it does not say."""
    with suppress(OSError, DamagedError, msgspec.MsgspecError), path.open("rb", 0) as file:
        return msgspec.msgpack.decode(read_about(file), type=About)
    return None
