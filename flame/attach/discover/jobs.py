"""Group processes into jobs by the command they were started as, and say how to watch each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from flame.attach.discover.dump_counts import DumpCount, DumpCounter, total
from flame.attach.discover.maps import path_of, takes_library
from flame.attach.discover.model import Candidate, Job, WatchMethod, is_flame, job_name
from flame.attach.discover.proc import command_of, uid_of, user_name
from flame.attach.discover.process_table import ProcessTable
from flame.core.errors import InputError
from flame.core.mapped_files import file_at
from flame.core.names.secrets import mask_secrets
from flame.core.readers.fdump.layout import RUNNING

_REMOVED = "its dump has been removed, and only the process itself can still open it"


class Jobs:
    """Find the jobs of a `ProcessTable`, as of its last update.

    ``dumps``: those that are still written, by process; ``lost``: processes whose dump cannot be
    opened from here; ``stopped``: those that have the library and whose dumps have ended.
    """

    def __init__(self, processes: ProcessTable, counter: DumpCounter) -> None:
        self.processes = processes
        self.dumps: dict[int, tuple[Path, ...]] = {}
        self.lost: set[int] = set()
        self.stopped: dict[int, tuple[Path, ...]] = {}
        self._mapped: list[Path] = []
        self._counter = counter
        self._candidates: dict[int, Candidate] = {}
        for pid, dumps in processes.dumps().items():
            self._sort_out(pid, [path_of(dump, pid) for dump in dumps])

    def _sort_out(self, pid: int, paths: list[Path | None]) -> None:
        known = [path for path in paths if path]
        growing = tuple(path for path in known if self._grows(path))
        if growing:
            self.dumps[pid] = growing
            self._mapped += known
        elif known:
            self.stopped[pid] = tuple(known)
        else:
            self.lost.add(pid)

    def _grows(self, path: Path) -> bool:
        dump = self._counter.dump(path)
        try:
            return dump is not None and dump.header().state == RUNNING
        except InputError:
            return False

    # Processes

    def candidate(self, pid: int) -> Candidate:
        """Return what is known of a process in the table."""
        if pid not in self._candidates:
            self._candidates[pid] = self._candidate(pid)
        return self._candidates[pid]

    def _candidate(self, pid: int) -> Candidate:
        process = self.processes.table[pid]
        uid = uid_of(process)
        command = command_of(pid) if uid == os.geteuid() else ()
        return Candidate(
            pid=pid,
            name=job_name(process.name, command),
            command=" ".join(mask_secrets(command)),
            user=user_name(uid),
            age=process.age,
            method=self._method(pid),
            dumps=self.dumps.get(pid, ()),
            parent=process.parent,
            denied=_REMOVED if pid in self.lost else "",
        )

    def _method(self, pid: int) -> WatchMethod:
        inspection = self.processes.inspection(pid)
        if inspection.prepared or inspection.mapped.dumps:
            return WatchMethod.DUMP
        version = inspection.mapped.python
        if version is None:
            return WatchMethod.NONE
        return WatchMethod.REMOTE if takes_library(version) else WatchMethod.CPU

    def is_flame(self, pid: int) -> bool:
        """Tell whether a process is a flame."""
        return self._python(pid) and is_flame(command_of(pid))

    def is_called(self, pid: int, name: str) -> bool:
        """Tell whether a process of this user is called ``name``, by itself or by its program."""
        process, command = self.processes.table[pid], command_of(pid)
        if process.uid != os.geteuid() or not command or self.is_flame(pid):
            return False
        program = command[0].rpartition("/")[2]
        return name in (process.name, job_name(process.name, command), program)

    def files(self) -> set[tuple[int, int]]:
        """Return device and inode of what processes that still write dumps have mapped."""
        return {file for path in self._mapped if (file := file_at(path))}

    def paths(self) -> list[Path]:
        """Return the paths of dumps that are still written, as far as they can be opened."""
        return [path for paths in self.dumps.values() for path in paths]

    def loadable(self, pid: int) -> tuple[int, ...]:
        """Return those at and below a process that use CUDA and can load the library, or itself."""
        pids = [process.pid for process in self.processes.descendants(pid)]
        loadable = [child for child in pids if self._method(child) is WatchMethod.REMOTE]
        return tuple(filter(self._uses_cuda, loadable)) or (pid,)

    def _uses_cuda(self, pid: int) -> bool:
        return self.processes.inspection(pid).mapped.cuda

    # Jobs

    def recorded_below(self, pid: int) -> list[Candidate]:
        """Return all at and below a process that record, or else that will."""
        pids = [process.pid for process in self.processes.descendants(pid)]
        recorded = [child for child in pids if child in self.dumps or child in self.lost]
        prepared = [child for child in pids if self.processes.inspection(child).prepared]
        wanted = recorded or prepared
        return [self.candidate(child) for child in wanted if child not in self.stopped]

    def recorded(self) -> Iterator[tuple[int, list[int]]]:
        """Yield root and members of the jobs that record."""
        yield from self._grouped(self.dumps.keys() | self.lost).items()

    def _grouped(self, pids: Iterable[int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for pid in sorted(pids):
            groups.setdefault(self.processes.root_of(pid), []).append(pid)
        return groups

    def others(self) -> Iterator[tuple[int, list[int]]]:
        """Yield root and members of other jobs of this user: Pythons that could be watched.

        Members are those that have loaded CUDA, unless none has.
        """
        roots = self._grouped(self.dumps.keys() | self.lost | self.stopped.keys())
        covered = {process.pid for process in self.processes.descendants(*roots)}
        left = [pid for pid in self.processes.table if pid not in covered and self._is_python(pid)]
        groups: dict[int, list[int]] = {}
        for pid in left:
            groups.setdefault(self._top(pid, left), []).append(pid)
        for root, pids in groups.items():
            yield (
                root,
                [pid for pid in pids if self.processes.inspection(pid).mapped.cuda] or [root],
            )

    def _is_python(self, pid: int) -> bool:
        return self._python(pid) and pid not in self.stopped and not self.is_flame(pid)

    def _python(self, pid: int) -> bool:
        is_own = self.processes.table[pid].uid == os.geteuid()
        return is_own and self.processes.inspection(pid).interpreter

    def _top(self, pid: int, pythons: Sequence[int]) -> int:
        if self.processes.inspection(pid).prepared:
            return self.processes.root_of(pid)
        while (parent := self.processes.table[pid].parent) in pythons:
            pid = parent
        return pid

    def job(self, root: int, members: Sequence[int], counted: dict[Path, DumpCount]) -> Job:
        """Return the job of these processes; its root need not be one of those that record."""
        candidates = tuple(map(self.candidate, members))
        paths = [path for candidate in candidates for path in candidate.dumps]
        return job_of(self.candidate(root), candidates, paths, self._counter, counted)


def job_of(
    root: Candidate,
    members: tuple[Candidate, ...],
    paths: Sequence[Path],
    counter: DumpCounter,
    counted: dict[Path, DumpCount],
) -> Job:
    """Make a job that says what its dumps hold."""
    counts = [counted.get(path, DumpCount()) for path in paths]
    folders = {path.parent for path in paths}
    is_known = len(folders) == 1 and not str(paths[0]).startswith("/proc/")
    return Job(
        root,
        members,
        kernels=total(count.kernels for count in counts),
        launches=total(count.launches for count in counts),
        bytes=sum(counter.size(path) for path in paths),
        active=any(count.active for count in counts),
        folder=paths[0].parent if is_known else None,
    )
