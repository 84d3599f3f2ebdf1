"""Search a folder for traces: each file is told by its beginning, and none is read whole."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.mapped_files import file_at
from flame.core.rank_summary.signs import SUFFIX as SUMMARY
from flame.core.readers.fdump.folder import SUFFIX
from flame.core.readers.formats import FileHead, find_format

DEPTH = 6
"""Folders below the one that is searched; tensorboard's is the third below a job's."""

MOST = 20_000
"""Files and folders that are looked at; a look takes a tenth of a millisecond to one."""

_GLANCE = 1 << 13
"""Bytes of a file by which nearly all are told; to go through four times as many lines of text
takes four times as long."""

_JSON = lazy_regex(rb"(?:\xef\xbb\xbf)?\s*[\[{]")

RECORDING = "flame recording"
_PASSED_OVER = {"__pycache__", "node_modules", "site-packages", "dist-packages"}

_Identity = tuple[int, int]


@dataclass(frozen=True)
class FoundTrace:
    """Describe what can be opened: one trace (a file, a recording's folder), or several together.

    ``size`` is in bytes, ``modified`` in seconds since 1970, of several the latest. ``gpus`` are
    those of the machine that was recorded, by their full names, as far as cheaply known.
    """

    paths: tuple[Path, ...]
    format: str
    size: int
    modified: float
    gpus: tuple[str, ...] = ()


@dataclass
class FolderSearch:
    """Search ``folder`` and those below it, the nearest first, for as far as the bounds allow.

    Hidden files and folders are passed over, as are those of installed packages; links are
    followed where ``links`` says so, each file and folder is looked at once. ``unreadable`` counts
    folders that could not be listed, ``cut`` says that there is more than was looked at.
    """

    folder: Path
    most: int = MOST
    depth: int = DEPTH
    links: bool = True
    unreadable: int = 0
    cut: bool = False
    _seen: set[_Identity] = field(default_factory=set)
    _looked: int = 0

    def looks(self) -> Iterator[FoundTrace | None]:
        """Yield for every file the trace that it is, or None; a recording for its folder."""
        self._seen |= _system_folders()
        ahead = deque([(self.folder, 0)])
        while ahead and self._looked < self.most:
            folder, depth = ahead.popleft()
            entries = self._list(folder)
            yield None  # So that a search can be given up between folders without a file, too.
            yield from self._look_at_files(folder, entries)
            below = [Path(entry.path) for entry in entries if _is_folder(entry)]
            if depth < self.depth:
                ahead.extend((path, depth + 1) for path in sorted(below))
            else:
                self.cut |= bool(below)
        self.cut |= bool(ahead)

    def _list(self, folder: Path) -> list[os.DirEntry[str]]:
        """Entries of ``folder``, if it is another than those before, as far as there is room."""
        try:
            if not self._is_new(folder.stat()):
                return []
            with os.scandir(folder) as found:
                entries = list(islice(found, self.most - self._looked + 1))
        except OSError:
            self.unreadable += 1
            return []
        kept = entries[: self.most - self._looked]
        self.cut |= len(kept) < len(entries)
        self._looked += len(kept)
        return [entry for entry in kept if self._is_wanted(entry)]

    def _is_wanted(self, entry: os.DirEntry[str]) -> bool:
        if entry.name[0] == "." or entry.name in _PASSED_OVER:
            return False
        return self.links or not entry.is_symlink()

    def _look_at_files(
        self, folder: Path, entries: Sequence[os.DirEntry[str]]
    ) -> Iterator[FoundTrace | None]:
        dumps, names = [], {entry.name for entry in entries}
        for entry in entries:
            if _dump_of(entry.name) in names:
                continue
            status = _status_of(entry)
            if status is None or not _may_be_trace(status) or not self._is_new(status):
                continue
            if entry.name.endswith(SUFFIX):
                dumps.append(status)
            else:
                yield _look_at_file(folder / entry.name, status)
        if dumps:
            yield _recording(folder, dumps)

    def _is_new(self, status: os.stat_result) -> bool:
        identity = (status.st_dev, status.st_ino)
        new = identity not in self._seen
        self._seen.add(identity)
        return new


def _dump_of(name: str) -> str | None:
    """Name the dump that a file called ``name`` is the summary of; None where it is none."""
    return name.removesuffix(SUMMARY) + SUFFIX if name.endswith(SUMMARY) else None


def look_at(paths: Sequence[Path]) -> FoundTrace | None:
    """Describe what ``paths`` are together; None where one of them is no trace, or is not there."""
    found = [trace for path in paths if (trace := _look_at_one(path))]
    if len(found) < len(paths) or not found:
        return None
    formats = dict.fromkeys(trace.format for trace in found)
    return FoundTrace(
        tuple(paths),
        ", ".join(formats),
        sum(trace.size for trace in found),
        max(trace.modified for trace in found),
        max((trace.gpus for trace in found), key=len),
    )


def _look_at_one(path: Path) -> FoundTrace | None:
    with suppress(OSError, ValueError):
        status = path.stat()
        if not stat.S_ISDIR(status.st_mode):
            return _look_at_file(path, status) if _may_be_trace(status) else None
        with os.scandir(path) as entries:
            dumps = [dump for entry in entries if (dump := _dump_status(entry))]
            return _recording(path, dumps) if dumps else None
    return None


def _dump_status(entry: os.DirEntry[str]) -> os.stat_result | None:
    status = _status_of(entry) if entry.name.endswith(SUFFIX) else None
    return status if status and _may_be_trace(status) else None


def _look_at_file(path: Path, status: os.stat_result) -> FoundTrace | None:
    """Tell the format of a file; None where flame has none for it."""
    with suppress(InputError, OSError):
        head = FileHead(path, _GLANCE)
        format_ = find_format(head)
        if format_ is None and _JSON.match(head.unpacked):  # which may say late what it is
            head = FileHead(path)
            format_ = find_format(head)
        gpus = format_.glance(head) if format_ else None
        if format_ and gpus is not None:
            return FoundTrace((path,), format_.name, status.st_size, status.st_mtime, gpus)
    return None


def _may_be_trace(status: os.stat_result) -> bool:
    """Tell whether it is a file with something in it: what else there is may wait to be read."""
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _recording(folder: Path, dumps: Sequence[os.stat_result]) -> FoundTrace:
    size, modified = sum(dump.st_size for dump in dumps), max(dump.st_mtime for dump in dumps)
    return FoundTrace((folder,), RECORDING, size, modified)


def _status_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Status of what ``entry`` leads to; None where that is nowhere."""
    with suppress(OSError):
        return entry.stat()
    return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir()
    return False


def _system_folders() -> set[_Identity]:
    """What no search goes into: no files of anybody, and to read them may do something."""
    found = map(file_at, map(Path, ("/proc", "/sys", "/dev")))
    return {identity for identity in found if identity}


_FEW, _NAMED = 2_000, 3


def describe_folder(folder: Path) -> str:
    """Say in one line which traces lie in ``folder``, and that one is to be named."""
    search = FolderSearch(folder, _FEW)
    found = sorted(filter(None, search.looks()), key=lambda one: (-int(one.modified), one.paths))
    if not found:
        return f"is a folder with no dump (*{SUFFIX}) and no other trace in it: name a trace file"
    names = [str(trace.paths[0]) for trace in found[:_NAMED]]
    more = [f"and {len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    least = "at least " if search.cut else ""
    number, what = f"{len(found):,} traces", "one or several"
    if len(found) == 1:
        number, what = "1 trace", "it"
    return f"is a folder of {least}{number}, name {what}: {', '.join([*names, *more])}"
