"""Keep a table of all processes and what is known of each, cheap to update again and again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from flame.attach.discover.maps import (
    NO_MAPPINGS,
    MappedDump,
    Mappings,
    is_interpreter,
    is_prepared,
    mappings_of,
)
from flame.attach.discover.proc import ProcessStat, all_processes, descendants, read
from flame.core.mapped_files import MappedFile

_KEPT = 5.0
"""Seconds that a process which has nothing to do with recording is not looked at again."""
_SHELLS = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "nu", "tcsh", "zsh"})


class Inspection(NamedTuple):
    """Say what was seen of a process. ``prepared``: CUDA and NVTX will load the library.

    ``interpreter``: it is a Python, and does not just have one in it. ``denied``: nobody but others
    may look at it.
    """

    when: float
    mapped: Mappings = NO_MAPPINGS
    prepared: bool = False
    interpreter: bool = False
    denied: bool = False


class ProcessTable:
    """Hold all processes by pid (``table``), as `update` has seen them."""

    def __init__(self) -> None:
        self.table: dict[int, ProcessStat] = {}
        self._inspections: dict[int, tuple[int, Inspection]] = {}

    def update(self) -> None:
        """See which processes there are, and look at those that are new or may have changed."""
        self.table = all_processes()
        self.table.pop(os.getpid(), None)
        self._inspections = {
            process.pid: (process.start, self._known(process) or _inspect(process))
            for process in self.table.values()
        }

    def _known(self, process: ProcessStat) -> Inspection | None:
        start, known = self._inspections.get(process.pid, (0, None))
        if known is None or start != process.start or known.prepared or known.mapped.dumps:
            return None
        return known if time.monotonic() - known.when < _KEPT else None

    def inspection(self, pid: int) -> Inspection:
        """Return what is known of a process."""
        return self._inspections[pid][1] if pid in self._inspections else Inspection(0.0)

    def inspect_again(self, pid: int) -> None:
        """Look at a process again, whatever was known of it."""
        if pid in self.table:
            self._inspections[pid] = (self.table[pid].start, _inspect(self.table[pid]))

    def denied(self) -> int:
        """Count the processes that may not be looked at."""
        return sum(inspection.denied for _, inspection in self._inspections.values())

    def dumps(self) -> dict[int, list[MappedDump]]:
        """Return the dumps that are mapped, by the process that writes them."""
        users: dict[MappedFile, list[int]] = {}
        dumps: dict[MappedFile, MappedDump] = {}
        for pid, (_, inspection) in self._inspections.items():
            for dump in inspection.mapped.dumps:
                users.setdefault(dump.file, []).append(pid)
                dumps[dump.file] = dump
        by_writer: dict[int, list[MappedDump]] = {}
        for file, pids in users.items():
            by_writer.setdefault(self._writer(dumps[file], pids), []).append(dumps[file])
        return by_writer

    def _writer(self, dump: MappedDump, pids: list[int]) -> int:
        """The one of ``pids`` that writes a dump.

        A child has the parent's for a moment, or, where the library did not hear of the fork, for
        as long as it lives.
        """
        number = re.match(r"\d+", dump.path.rpartition("/")[2])
        named = [pid for pid in pids if len(pids) > 1 and number and int(number[0]) == _inner(pid)]
        tops = [pid for pid in pids if self.table[pid].parent not in pids]
        return [*named, *tops, *pids][0]

    def root_of(self, pid: int) -> int:
        """Return the topmost process that ``pid`` comes from and that was started to be recorded.

        A shell that a person works in may have been, too, and is no part of what it has started.
        """
        seen = {pid}
        while (parent := self.table[pid].parent) in self.table and parent not in seen:
            if self._is_shell(parent) or not self._has_library(parent):
                break
            seen.add(parent)
            pid = parent
        return pid

    def _has_library(self, pid: int) -> bool:
        inspection = self.inspection(pid)
        return inspection.prepared or bool(inspection.mapped.dumps)

    def _is_shell(self, pid: int) -> bool:
        process = self.table[pid]
        return process.session == pid and process.name in _SHELLS

    def descendants(self, *pids: int) -> Iterator[ProcessStat]:
        """Yield the processes and all below them."""
        return descendants(pids, self.table)


def _inspect(process: ProcessStat) -> Inspection:
    now = time.monotonic()
    if process.kernel or process.is_zombie:
        return Inspection(now)
    try:
        mapped = mappings_of(process.pid)
    except PermissionError:
        return Inspection(now, denied=True)
    except OSError:  # It has just ended.
        return Inspection(now)
    python = mapped.python is not None and is_interpreter(process.pid)
    return Inspection(now, mapped, is_prepared(process.pid), python)


def _inner(pid: int) -> int:
    """The pid of a process as it sees it itself, in a container."""
    for line in read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid
