"""Find what can be attached to on this machine: jobs of processes, and finished recordings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flame.attach.discover.dump_counts import DumpCount, DumpCounter, is_fresh
from flame.attach.discover.finished import (
    DumpFolder,
    DumpInfo,
    default_dump_folder,
    finished_recordings,
    read_header,
)
from flame.attach.discover.jobs import Jobs, job_of
from flame.attach.discover.model import Candidate, Discovery, Job, WatchMethod
from flame.attach.discover.proc import user_name
from flame.attach.discover.process_table import ProcessTable
from flame.core.errors import UsageError
from flame.core.mapped_files import file_at
from flame.core.names.secrets import mask_line
from flame.core.readers.fdump.layout import RUNNING
from flame.core.units import format_counted

_NOBODY = 65534
_TIMEOUT = 0.4
"""Seconds for counting what is in dumps: the list shall be there at once."""
_ORDER = {method: place for place, method in enumerate(WatchMethod)}


class ProcessFinder:
    """Find what there is, again and again; what takes long is done only once.

    ``folder``: where dumps of ended processes lie, by default the user's. Without ``count`` nobody
    looks how much is in the dumps.
    """

    def __init__(self, folder: Path | None = None, count: bool = True) -> None:
        if sys.platform != "linux":
            raise UsageError("processes can be attached to on Linux only")
        self._processes = ProcessTable()
        self._folder = DumpFolder(folder or default_dump_folder())
        self._counter = DumpCounter()
        self._patience = _TIMEOUT if count else -1.0
        self._jobs = Jobs(self._processes, self._counter)

    def find(self) -> Discovery:
        """Return all that can be attached to now."""
        until = time.monotonic() + self._patience
        left = self._dumps_left()
        self._jobs = jobs = Jobs(self._processes, self._counter)
        mapped = jobs.files()
        left = [dump for dump in left if file_at(dump.path) not in mapped]
        elsewhere = [dump for dump in left if is_fresh(dump.header)]
        growing = [*jobs.paths(), *(dump.path for dump in elsewhere)]
        counted = self._counter.count(growing, until)
        all_jobs = [jobs.job(root, members, counted) for root, members in jobs.recorded()]
        all_jobs += [self._distant(dump, counted) for dump in elsewhere]
        all_jobs += [jobs.job(root, members, counted) for root, members in jobs.others()]
        all_jobs.sort(key=lambda job: (_ORDER[job.root.method], job.root.age))
        finished = tuple(
            finished_recordings(
                [dump for dump in left if dump not in elsewhere], self._counter, until
            )
        )
        self._counter.keep([*growing, *(dump.path for dump in left)])
        return Discovery(tuple(all_jobs), finished, tuple(self._notes()))

    # What the last look has shown of single processes

    def candidate(self, pid: int) -> Candidate | None:
        """Return the process, None if there was none."""
        return self._jobs.candidate(pid) if pid in self._processes.table else None

    def recorded_below(self, pid: int) -> list[Candidate]:
        """Return those at and below a process that record, or else that will."""
        return self._jobs.recorded_below(pid)

    def stopped(self, pid: int) -> tuple[Path, ...]:
        """Return the dumps of a process that has the library and records no longer."""
        return self._jobs.stopped.get(pid, ())

    def loadable(self, pid: int) -> tuple[int, ...]:
        """Return those below the process that use CUDA and can load the library; else itself."""
        return self._jobs.loadable(pid)

    def is_flame(self, pid: int) -> bool:
        """Tell whether it is another flame."""
        return pid in self._processes.table and self._jobs.is_flame(pid)

    def is_written(self, path: Path) -> bool:
        """Tell whether a process still writes the dump; InputError if it is none."""
        header = read_header(path)
        if header.state != RUNNING:
            return False
        return is_fresh(header) or file_at(path) in self._jobs.files()

    def called(self, name: str) -> list[int]:
        """Return the processes of this user whose program or script is called so."""
        return [pid for pid in self._processes.table if self._jobs.is_called(pid, name)]

    def _dumps_left(self) -> list[DumpInfo]:
        """The dumps in the folder, and the processes as they are at least as late as these."""
        self._processes.update()
        left = self._folder.dumps()
        for dump in left:
            # It may have begun since it was last looked at.
            if is_fresh(dump.header):
                self._processes.inspect_again(dump.header.pid)
        return left

    def _distant(self, dump: DumpInfo, counted: dict[Path, DumpCount]) -> Job:
        """The job of a process that writes to the folder and that nobody sees do it.

        It runs in another container, or may not be looked at.
        """
        owner, age = _owner(dump.path), time.monotonic_ns() - dump.header.start_monotonic
        command = mask_line(dump.facts.get("command", "")) if owner == os.geteuid() else ""
        root = Candidate(
            dump.header.pid,
            dump.name,
            command,
            user_name(owner),
            age / 1e9,
            WatchMethod.DUMP,
            (dump.path,),
        )
        return job_of(root, (root,), [dump.path], self._counter, counted)

    def _notes(self) -> Iterator[str]:
        yield from self._folder.notes
        if denied := self._processes.denied():
            who = format_counted(denied, "process", "processes")
            how = "root may not here" if os.geteuid() == 0 else "sudo flame attach --list shows all"
            yield f"{who} of other users cannot be looked at: {how}"


def _owner(path: Path) -> int:
    """Whose file it is; nobody's if it has just been removed."""
    with suppress(OSError):
        return path.stat().st_uid
    return _NOBODY
