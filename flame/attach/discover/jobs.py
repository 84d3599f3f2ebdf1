"""Processes as jobs: what was started as one command, and how each of its processes is watched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from flame.attach.discover.dump_counts import Count, Counts, total
from flame.attach.discover.maps import path_of, takes_library
from flame.attach.discover.model import Candidate, Job, Way, is_flame, job_name
from flame.attach.discover.proc import command_of, user_name, user_of
from flame.attach.discover.process_table import Machine
from flame.core.errors import InputError
from flame.core.readers.fdump.layout import RUNNING

_REMOVED = "its dump has been removed, and only the process itself can still open it"


class Jobs:
    """The jobs of a `Machine`, as of its last update.

    ``dumps``: those that are still written, by process; ``lost``: processes whose dump cannot be
    opened from here; ``stopped``: those that have the library and whose dumps have ended.
    """

    def __init__(self, machine: Machine, counts: Counts) -> None:
        self.machine = machine
        self.dumps: dict[int, tuple[Path, ...]] = {}
        self.lost: set[int] = set()
        self.stopped: dict[int, tuple[Path, ...]] = {}
        self._counts = counts
        self._candidates: dict[int, Candidate] = {}
        for pid, places in machine.dumps().items():
            self._sort_out(pid, [path_of(place, pid) for place in places])

    def _sort_out(self, pid: int, paths: list[Path | None]) -> None:
        known = [path for path in paths if path]
        growing = tuple(path for path in known if self._grows(path))
        if growing:
            self.dumps[pid] = growing
        elif known:
            self.stopped[pid] = tuple(known)
        else:
            self.lost.add(pid)

    def _grows(self, path: Path) -> bool:
        dump = self._counts.of(path)
        try:
            return dump is not None and dump.header().state == RUNNING
        except InputError:
            return False

    # Processes

    def candidate(self, pid: int) -> Candidate:
        """What is known of a process in the table."""
        if pid not in self._candidates:
            self._candidates[pid] = self._candidate(pid)
        return self._candidates[pid]

    def _candidate(self, pid: int) -> Candidate:
        one = self.machine.table[pid]
        uid = user_of(one)
        command = command_of(pid) if uid == os.geteuid() else ()
        return Candidate(
            pid=pid,
            name=job_name(one.name, command),
            command=" ".join(command),
            user=user_name(uid),
            age=one.age,
            way=self._way(pid),
            dumps=self.dumps.get(pid, ()),
            parent=one.parent,
            denied=_REMOVED if pid in self.lost else "",
        )

    def _way(self, pid: int) -> Way:
        look = self.machine.look(pid)
        if look.prepared or look.mapped.dumps:
            return Way.DUMP
        version = look.mapped.python
        if version is None:
            return Way.NONE
        return Way.REMOTE if takes_library(version) else Way.CPU

    def is_flame(self, pid: int) -> bool:
        """Whether a process is a flame."""
        return self._python(pid) and is_flame(command_of(pid))

    def is_called(self, pid: int, name: str) -> bool:
        """Whether a process of this user is called ``name``, by itself or by its program."""
        one, command = self.machine.table[pid], command_of(pid)
        if one.uid != os.geteuid() or not command or self.is_flame(pid):
            return False
        return name in (one.name, job_name(one.name, command), command[0].rpartition("/")[2])

    def inodes(self) -> set[int]:
        """Of all dumps that are still written and that some process has mapped."""
        places = self.machine.dumps().items()
        return {one.inode for pid, found in places if pid not in self.stopped for one in found}

    def paths(self) -> list[Path]:
        """Of the same, as far as they can be opened."""
        return [path for paths in self.dumps.values() for path in paths]

    def loadable(self, pid: int) -> tuple[int, ...]:
        """Those at and below a process that can load the library and use CUDA, or itself."""
        pids = [one.pid for one in self.machine.below(pid) if self._way(one.pid) is Way.REMOTE]
        return tuple(one for one in pids if self.machine.look(one).mapped.cuda) or (pid,)

    # Jobs

    def below(self, pid: int) -> list[Candidate]:
        """All at and below a process that record, or else that will."""
        pids = [one.pid for one in self.machine.below(pid)]
        recorded = [one for one in pids if one in self.dumps or one in self.lost]
        prepared = [one for one in pids if self.machine.look(one).prepared]
        return [self.candidate(one) for one in recorded or prepared if one not in self.stopped]

    def recorded(self) -> Iterator[tuple[int, list[int]]]:
        """Root and members of the jobs that record."""
        yield from self._grouped(self.dumps.keys() | self.lost).items()

    def _grouped(self, pids: Iterable[int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for pid in sorted(pids):
            groups.setdefault(self.machine.root_of(pid), []).append(pid)
        return groups

    def others(self) -> Iterator[tuple[int, list[int]]]:
        """Root and members of other jobs of this user: Pythons that could be watched, or will be.

        Members are those that have loaded CUDA, unless none has.
        """
        roots = self._grouped(self.dumps.keys() | self.lost | self.stopped.keys())
        covered = {one.pid for one in self.machine.below(*roots)}
        left = [pid for pid in self.machine.table if pid not in covered and self._is_python(pid)]
        groups: dict[int, list[int]] = {}
        for pid in left:
            groups.setdefault(self._top(pid, left), []).append(pid)
        for root, pids in groups.items():
            yield root, [pid for pid in pids if self.machine.look(pid).mapped.cuda] or [root]

    def _is_python(self, pid: int) -> bool:
        return self._python(pid) and pid not in self.stopped and not self.is_flame(pid)

    def _python(self, pid: int) -> bool:
        is_own = self.machine.table[pid].uid == os.geteuid()
        return is_own and self.machine.look(pid).interpreter

    def _top(self, pid: int, pythons: Sequence[int]) -> int:
        if self.machine.look(pid).prepared:
            return self.machine.root_of(pid)
        while (parent := self.machine.table[pid].parent) in pythons:
            pid = parent
        return pid

    def job(self, root: int, members: Sequence[int], counted: dict[Path, Count]) -> Job:
        """The job of these processes; its root need not be one of those that record."""
        candidates = tuple(map(self.candidate, members))
        paths = [path for one in candidates for path in one.dumps]
        return job_of(self.candidate(root), candidates, paths, self._counts, counted)


def job_of(
    root: Candidate,
    members: tuple[Candidate, ...],
    paths: Sequence[Path],
    counts: Counts,
    counted: dict[Path, Count],
) -> Job:
    """A job with what its dumps hold."""
    found = [counted.get(path, Count()) for path in paths]
    folders = {path.parent for path in paths}
    known = len(folders) == 1 and not str(paths[0]).startswith("/proc/")
    return Job(
        root,
        members,
        kernels=total(one.kernels for one in found),
        launches=total(one.launches for one in found),
        bytes=sum(counts.size(path) for path in paths),
        active=any(one.active for one in found),
        folder=paths[0].parent if known else None,
    )
