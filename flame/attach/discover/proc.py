"""Read the processes of this machine from ``/proc``."""

from __future__ import annotations

import errno
import os
import pwd
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD
_TICK = os.sysconf("SC_CLK_TCK")
_PIECE = 1 << 20
_LARGEST = 1 << 24
"""Bytes: a process may have the kernel show any memory of its own as its words or environment,
which are 6 MiB at most when it is started."""
_LARGEST_MAPS = 1 << 27
"""Bytes: as many mappings as most systems allow any process, a million, are listed in them."""


class ProcessStat(NamedTuple):
    """Hold what ``/proc/PID/stat`` says of a process.

    ``start`` in ticks since the machine was started: with the pid it names a process for good.
    ``uid`` is that of its files in ``/proc``: whom it runs as, or root.
    """

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    kernel: bool
    start: int
    uid: int

    @property
    def age(self) -> float:
        """Return the seconds since it was started."""
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - self.start / _TICK, 0.0)

    @property
    def is_zombie(self) -> bool:
        """Tell whether it has ended, and nobody has asked yet how."""
        return self.state in "ZX"


def all_processes() -> dict[int, ProcessStat]:
    """Read all processes that can be seen now, by pid."""
    numbers = (int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    return {pid: process for pid in numbers if (process := read_process(pid))}


def read_process(pid: int) -> ProcessStat | None:
    """Read the process ``pid``; None if there is none."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 (this runs for every process there is)
    except OSError:
        return None
    return _parsed(pid, read(pid, "stat"), uid)


def _parsed(pid: int, stat: bytes, uid: int) -> ProcessStat | None:
    # The name in parentheses may hold anything, parentheses too.
    head, _, tail = stat.rpartition(b")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    state, *numbers = fields[0].decode(), *map(int, fields[1:20])
    parent, group, session, _, _, flags = numbers[:6]
    kernel = bool(flags & _KERNEL_THREAD)
    return ProcessStat(pid, name, state, parent, group, session, kernel, numbers[18], uid)


def read(pid: int, name: str) -> bytes:
    """Read a file of the process; empty where there is none, or where it may not be read."""
    with suppress(OSError):
        return read_or_raise(pid, name)
    return b""


def read_or_raise(pid: int, name: str) -> bytes:
    """Read a file of the process; OSError says why it cannot be, EFBIG that it is too large."""
    file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = iter(lambda: os.read(file, _PIECE), b"")
        return b"".join(_bounded(parts, _LARGEST_MAPS if name == "maps" else _LARGEST))
    finally:
        os.close(file)


def _bounded(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield ``parts``; OSError where they are more than ``most`` bytes."""
    for part in parts:
        most -= len(part)
        if most < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        yield part


def command_of(pid: int) -> tuple[str, ...]:
    """Read the words that the process was started with; none for a zombie or kernel thread."""
    text = read(pid, "cmdline").rstrip(b"\0")
    return tuple(os.fsdecode(word) for word in text.split(b"\0")) if text else ()


def uid_of(process: ProcessStat) -> int:
    """Return the user that a process runs as, also where its files in ``/proc`` are root's."""
    match = re.search(rb"^Uid:\s+\d+\s+(\d+)", read(process.pid, "status"), re.MULTILINE)
    return int(match[1]) if match else process.uid


@cache
def user_name(uid: int) -> str:
    """Return what a user is called, or the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def descendants(roots: Iterable[int], table: dict[int, ProcessStat]) -> Iterator[ProcessStat]:
    """Yield the processes ``roots`` of ``table`` and all that they have started, at any depth."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    waiting = deque(roots)
    seen = set(waiting)
    while waiting:
        pid = waiting.popleft()
        if pid in table:
            yield table[pid]
        new = [child for child in children.get(pid, ()) if child not in seen]
        seen.update(new)
        waiting.extend(new)
