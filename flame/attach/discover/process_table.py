"""The processes of this machine and what is known of each, cheap to ask for again and again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from flame.attach.discover.maps import (
    NOTHING,
    Mapped,
    Place,
    is_interpreter,
    is_prepared,
    mapped_by,
)
from flame.attach.discover.proc import Process, all_processes, below, read

_KEPT = 5.0
"""Seconds that a process which has nothing to do with recording is not looked at again."""
_SHELLS = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "nu", "tcsh", "zsh"})


class Look(NamedTuple):
    """What a look at a process has shown. ``prepared``: CUDA and NVTX will load the library.

    ``interpreter``: it is a Python, and does not just have one in it. ``denied``: nobody but others
    may look at it.
    """

    when: float
    mapped: Mapped = NOTHING
    prepared: bool = False
    interpreter: bool = False
    denied: bool = False


class Machine:
    """``table``: all processes by pid, as `update` has seen them."""

    def __init__(self) -> None:
        self.table: dict[int, Process] = {}
        self._looks: dict[int, tuple[int, Look]] = {}

    def update(self) -> None:
        """See which processes there are, and look at those that are new or may have changed."""
        self.table = all_processes()
        self.table.pop(os.getpid(), None)
        self._looks = {
            one.pid: (one.start, self._known(one) or _look(one)) for one in self.table.values()
        }

    def _known(self, one: Process) -> Look | None:
        start, look = self._looks.get(one.pid, (0, None))
        if look is None or start != one.start or look.prepared or look.mapped.dumps:
            return None
        return look if time.monotonic() - look.when < _KEPT else None

    def look(self, pid: int) -> Look:
        """What is known of a process."""
        return self._looks[pid][1] if pid in self._looks else Look(0.0)

    def look_again(self, pid: int) -> None:
        """Do not trust what was known of a process."""
        if pid in self.table:
            self._looks[pid] = (self.table[pid].start, _look(self.table[pid]))

    def denied(self) -> int:
        """How many processes may not be looked at."""
        return sum(look.denied for _, look in self._looks.values())

    def dumps(self) -> dict[int, list[Place]]:
        """The dumps that are mapped, by the process that writes them."""
        users: dict[int, list[int]] = {}
        places: dict[int, Place] = {}
        for pid, (_, look) in self._looks.items():
            for place in look.mapped.dumps:
                users.setdefault(place.inode, []).append(pid)
                places[place.inode] = place
        found: dict[int, list[Place]] = {}
        for inode, pids in users.items():
            found.setdefault(self._writer(places[inode], pids), []).append(places[inode])
        return found

    def _writer(self, place: Place, pids: list[int]) -> int:
        """The one of ``pids`` that writes a dump.

        A child has the parent's for a moment, or, where the library did not hear of the fork, for
        as long as it lives.
        """
        number = re.match(r"\d+", place.path.rpartition("/")[2])
        named = [pid for pid in pids if len(pids) > 1 and number and int(number[0]) == _inner(pid)]
        tops = [pid for pid in pids if self.table[pid].parent not in pids]
        return [*named, *tops, *pids][0]

    def root_of(self, pid: int) -> int:
        """The topmost process that ``pid`` comes from and that was started to be recorded.

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
        look = self.look(pid)
        return look.prepared or bool(look.mapped.dumps)

    def _is_shell(self, pid: int) -> bool:
        one = self.table[pid]
        return one.session == pid and one.name in _SHELLS

    def below(self, *pids: int) -> Iterator[Process]:
        """The processes and all below them."""
        return below(pids, self.table)


def _look(one: Process) -> Look:
    now = time.monotonic()
    if one.kernel or one.is_zombie:
        return Look(now)
    try:
        mapped = mapped_by(one.pid)
    except PermissionError:
        return Look(now, denied=True)
    except OSError:  # It has just ended.
        return Look(now)
    python = mapped.python is not None and is_interpreter(one.pid)
    return Look(now, mapped, is_prepared(one.pid), python)


def _inner(pid: int) -> int:
    """The pid of a process as it sees it itself, in a container."""
    for line in read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid
