"""What can be attached to on this machine: processes grouped into jobs, and ended recordings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flame.attach.discover.dump_counts import Count, Counts, is_fresh
from flame.attach.discover.finished import Folder, Left, read_header, recordings, users_folder
from flame.attach.discover.jobs import Jobs, job_of
from flame.attach.discover.model import Candidate, Found, Job, Way
from flame.attach.discover.proc import user_name
from flame.attach.discover.process_table import Machine
from flame.core.errors import UsageError
from flame.core.readers.fdump.layout import RUNNING

_NOBODY = 65534
_PATIENCE = 0.4
"""Seconds for counting what is in dumps: the list shall be there at once."""
_ORDER = {way: place for place, way in enumerate(Way)}


def find() -> Found:
    """All that there is now; UsageError where this is no Linux."""
    return Finder()()


class Finder:
    """Finds again and again, each time as it is then; what takes long is done only once.

    ``folder``: where dumps of ended processes lie, by default the user's. Without ``count`` nobody
    looks how much is in the dumps.
    """

    def __init__(self, folder: Path | None = None, count: bool = True) -> None:
        if sys.platform != "linux":
            raise UsageError("processes can be attached to on Linux only")
        self._machine = Machine()
        self._folder = Folder(folder or users_folder())
        self._counts = Counts()
        self._patience = _PATIENCE if count else -1.0
        self._jobs = Jobs(self._machine, self._counts)

    def __call__(self) -> Found:
        """Look now."""
        until = time.monotonic() + self._patience
        left = self._left()
        self._jobs = jobs = Jobs(self._machine, self._counts)
        mapped = jobs.inodes()
        left = [one for one in left if _inode(one.path) not in mapped]
        elsewhere = [one for one in left if is_fresh(one.header)]
        growing = [*jobs.paths(), *(one.path for one in elsewhere)]
        counted = self._counts.count(growing, until)
        found = [jobs.job(root, members, counted) for root, members in jobs.recorded()]
        found += [self._distant(one, counted) for one in elsewhere]
        found += [jobs.job(root, members, counted) for root, members in jobs.others()]
        found.sort(key=lambda job: (_ORDER[job.root.way], job.root.age))
        ended = recordings([one for one in left if one not in elsewhere], self._counts, until)
        found_ended = tuple(ended)
        self._counts.keep([*growing, *(one.path for one in left)])
        return Found(tuple(found), found_ended, tuple(self._notes()))

    # What the last look has shown of single processes

    def candidate(self, pid: int) -> Candidate | None:
        """The process, None if there was none."""
        return self._jobs.candidate(pid) if pid in self._machine.table else None

    def below(self, pid: int) -> list[Candidate]:
        """Those at and below a process that record, or else that will."""
        return self._jobs.below(pid)

    def stopped(self, pid: int) -> tuple[Path, ...]:
        """The dumps of a process that has the library and records no longer."""
        return self._jobs.stopped.get(pid, ())

    def loadable(self, pid: int) -> tuple[int, ...]:
        """Those below the process that have loaded CUDA and can load the library; else itself."""
        return self._jobs.loadable(pid)

    def is_flame(self, pid: int) -> bool:
        """Whether it is another flame."""
        return pid in self._machine.table and self._jobs.is_flame(pid)

    def is_written(self, path: Path) -> bool:
        """Whether a process still writes the dump; InputError if it is none."""
        header = read_header(path)
        if header.state != RUNNING:
            return False
        return is_fresh(header) or _inode(path) in self._jobs.inodes()

    def called(self, name: str) -> list[int]:
        """Processes of this user whose program or script is called so, recorded or not."""
        return [pid for pid in self._machine.table if self._jobs.is_called(pid, name)]

    def _left(self) -> list[Left]:
        """The dumps in the folder, and the processes as they are at least as late as these."""
        self._machine.update()
        left = self._folder.dumps()
        for one in left:
            # It may have begun since it was last looked at.
            if is_fresh(one.header):
                self._machine.look_again(one.header.pid)
        return left

    def _distant(self, left: Left, counted: dict[Path, Count]) -> Job:
        """The job of a process that writes to the folder and that nobody sees do it.

        It runs in another container, or may not be looked at.
        """
        owner, age = _owner(left.path), time.monotonic_ns() - left.header.start_monotonic
        command = left.facts.get("command", "") if owner == os.geteuid() else ""
        root = Candidate(
            left.header.pid,
            left.name,
            command,
            user_name(owner),
            age / 1e9,
            Way.DUMP,
            (left.path,),
        )
        return job_of(root, (root,), [left.path], self._counts, counted)

    def _notes(self) -> Iterator[str]:
        yield from self._folder.notes
        if denied := self._machine.denied():
            who = "1 process" if denied == 1 else f"{denied:,} processes"
            how = "root may not here" if os.geteuid() == 0 else "sudo flame attach --list shows all"
            yield f"{who} of other users cannot be looked at: {how}"


def _owner(path: Path) -> int:
    """Whose file it is; nobody's if it has just been removed."""
    with suppress(OSError):
        return path.stat().st_uid
    return _NOBODY


def _inode(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_ino
    return 0
