"""Watch for new dumps of what was attached to: children begin, workers are started anew."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from flame.attach.discover.finished import read_dump_info, read_header
from flame.attach.discover.maps import path_of
from flame.attach.discover.proc import read_process
from flame.attach.discover.process_table import ProcessTable
from flame.attach.library.control import Control
from flame.core.errors import InputError
from flame.core.mapped_files import file_at
from flame.core.readers.fdump.folder import list_dumps

_PERIOD = 10.0
"""Seconds from one look at all processes to the next: a look at the folder mostly does."""
_ASKING = 2.0
"""Seconds in which descriptors are asked for: without one a dump is opened by its name."""
_TICK_NS = 50_000_000
"""Longer than that no two changes of a folder have the same time."""


class DumpWatch:
    """Find the dumps of processes ``pids`` and all that come from them, and those in ``folder``.

    ``dumps`` are known to belong to it, wherever they are.
    """

    def __init__(
        self, pids: Iterable[int] = (), dumps: Iterable[Path] = (), folder: Path | None = None
    ) -> None:
        self._pids = {pid: process.start for pid in pids if (process := read_process(pid))}
        self._waiting = dict.fromkeys(dumps)
        self._whole = folder
        self._folders = {path.parent: 0 for path in self._waiting if _lies_in_folder(path)}
        self._folders |= {folder: 0} if folder else {}
        self._seen: set[tuple[int, int]] = set()
        self._foreign: set[str] = set()
        self._processes = ProcessTable()
        self._next = 0.0

    def new(self) -> list[tuple[Path, int | None]]:
        """Return the dumps that have appeared since the last call, the first time all there are.

        Each with its descriptor, which the caller closes, where the library hands one out: that is
        the dump, whatever becomes of its name. To be called about once a second.
        """
        for folder in list(self._folders):
            self._look_into(folder)
        if self._pids and (not self._seen or time.monotonic() >= self._next):
            self._look_at_processes()
            self._next = time.monotonic() + _PERIOD
        until = time.monotonic() + _ASKING
        return [(path, _descriptor(path, until)) for path in self._readable()]

    @property
    def over(self) -> bool:
        """Tell whether all that was watched has ended, so that no dump can appear any more."""
        gone = not any(self._runs(pid) for pid in self._pids)
        return gone and not self._waiting and self._whole is None

    def _runs(self, pid: int) -> bool:
        process = read_process(pid)
        return process is not None and process.start == self._pids[pid] and not process.is_zombie

    def _readable(self) -> Iterator[Path]:
        """Those that wait and can be read; of others the header is still being written."""
        for path in list(self._waiting):
            with suppress(InputError, OSError):
                read_header(path)
                file = file_at(path)
                del self._waiting[path]
                if file and file not in self._seen:
                    self._seen.add(file)
                    yield path

    # By folder

    def _look_into(self, folder: Path) -> None:
        with suppress(OSError):
            changed = folder.stat().st_mtime_ns
            if changed == self._folders[folder]:
                return
            whole = [self._take(path) for path in list_dumps(folder)]
            is_past = time.time_ns() - changed > _TICK_NS
            self._folders[folder] = changed if is_past and all(whole) else 0

    def _take(self, path: Path) -> bool:
        """Have a dump wait if it belongs here; False if nobody can tell yet."""
        try:
            if not self._is_known(path):
                if path.parent == self._whole or self._is_ours(path):
                    self._waiting[path] = None
                else:
                    self._foreign.add(path.name)
        except InputError:
            return False
        return True

    def _is_known(self, path: Path) -> bool:
        if path.name in self._foreign or path in self._waiting:
            return True
        return file_at(path) in self._seen

    def _is_ours(self, path: Path) -> bool:
        """Whether the process that writes the dump comes from those that are watched."""
        info = read_dump_info(path)
        return self._comes(info.header.pid) or info.parent in self._pids

    def _comes(self, pid: int) -> bool:
        seen: set[int] = set()
        while pid not in seen and (process := read_process(pid)):
            if self._pids.get(pid) == process.start:
                return True
            seen.add(pid)
            pid = process.parent
        return False

    # By process

    def _look_at_processes(self) -> None:
        """Find what is written anywhere else; know the children before their parents are gone."""
        processes = self._processes
        processes.update()
        known = [pid for pid, start in self._pids.items() if self._is_alive(pid, start)]
        below = {child.pid: child.start for child in processes.descendants(*known)}
        self._pids |= below
        for pid, dumps in processes.dumps().items():
            found = [path_of(dump, pid) for dump in dumps] if pid in below else []
            for path in filter(None, found):
                if file_at(path) in self._seen:
                    continue
                self._waiting.setdefault(path)
                if _lies_in_folder(path):
                    self._folders.setdefault(path.parent, 0)

    def _is_alive(self, pid: int, start: int) -> bool:
        return pid in self._processes.table and self._processes.table[pid].start == start


def _descriptor(path: Path, until: float) -> int | None:
    """What the library that writes the dump hands out; None where nobody answers in time."""
    control = Control.open(path) if time.monotonic() < until else None
    if control is None:
        return None
    with closing(control):
        return control.descriptor()


def _lies_in_folder(path: Path) -> bool:
    """Whether it does so here; not if only its process can get at it."""
    return path.parts[:2] != ("/", "proc")
