"""Ask the library by the socket that it keeps beside a dump.

Nothing here waits for long, or trusts what is at the other end: if anything is wrong, there is no
answer.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from flame.core.lazy_dataclass import dataclass

SUFFIX = ".sock"
_SOON = 1.5
"""Seconds in which what costs nothing is answered, unless the process is stopped."""
_WORK = 5.0
"""Seconds for what makes CUPTI flush."""
_LONG = 60.0
"""Seconds for what CUPTI sets up once, after all cubins so far have been saved."""
_LONGEST = 1 << 16
_MOST_DESCRIPTORS = 8
_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid
_NONE_THERE = (OSError, ValueError, RecursionError)  # msgspec's errors are ValueErrors

_Reply = TypeVar("_Reply", bound="_OkReply | SamplingReply")


@dataclass(frozen=True)
class _OkReply:
    ok: Literal[True]


@dataclass(frozen=True)
class _Opened(_OkReply):
    protocol: Literal[1]
    pid: int


@dataclass(frozen=True)
class ControlStatus(_OkReply):
    """Say how the library is doing.

    ``pid`` as the process itself sees it; ``bytes`` of the dump so far, ``dropped`` records;
    whether it is ``recording``, and with it Python stacks (``python``) and launches (``cupti``).
    """

    pid: int
    state: Literal["recording", "full", "ended"]
    recording: bool
    bytes: int
    dropped: int
    python: bool
    cupti: bool


@dataclass(frozen=True)
class SamplingReply:
    """Say what came of a request for PC samples: ``contexts`` sampled now, or the ``error``."""

    ok: bool
    contexts: int = 0
    error: str = ""


class Control:
    """Control the library in one process, found by the dump that it writes."""

    def __init__(self, path: Path, pid: int, dump: int) -> None:
        self.pid = pid
        """As the process itself sees it."""
        self._path = path
        self._dump = dump

    @classmethod
    def open(cls, dump: Path) -> Control | None:
        """Connect to the process that writes ``dump``; None where nobody trusted answers.

        Some processes have no socket: a folder in which none can be made, a sandbox, a dump that
        was made by another version.
        """
        path = dump.with_suffix(SUFFIX)
        with suppress(*_NONE_THERE):
            reply, descriptors = _ask(path, "open", _Opened, _SOON)
            if len(descriptors) == 1 and _is_dump(descriptors[0]):
                return cls(path, reply.pid, descriptors[0])
            _close(descriptors)
        return None

    def descriptor(self) -> int:
        """Return the dump, open for reading only, wherever it lies and even if it has been removed.

        The caller closes it.
        """
        return os.dup(self._dump)

    def status(self) -> ControlStatus | None:
        """Return how it is doing; None if it does not answer (any more)."""
        return self._ask("status", ControlStatus, _SOON)

    def flush(self) -> bool:
        """Let CUPTI hand over what has run; True when that has been written to the dump."""
        return self._ask("flush", _OkReply, _WORK) is not None

    def sample(self, mode: str) -> SamplingReply | None:
        """Switch PC sampling to ``mode``, as FLAME_PC; None if it does not answer (any more)."""
        return self._ask("pc", SamplingReply, _LONG, mode)

    def stop(self) -> bool:
        """End the recording, not the process: True when the dump is complete."""
        return self._ask("stop", _OkReply, _WORK) is not None

    def close(self) -> None:
        """Close the descriptor."""
        if self._dump >= 0:
            os.close(self._dump)
        self._dump = -1

    def _ask(
        self, what: str, reply_type: type[_Reply], patience: float, mode: str | None = None
    ) -> _Reply | None:
        with suppress(*_NONE_THERE):
            reply, descriptors = _ask(self._path, what, reply_type, patience, mode)
            _close(descriptors)
            return reply
        return None


def _ask(
    path: Path, what: str, reply_type: type[_Reply], patience: float, mode: str | None = None
) -> tuple[_Reply, list[int]]:
    """One request over a connection of its own: the reply, and the descriptors that came with it.

    Raises OSError and ValueError.
    """
    until = time.monotonic() + patience
    with closing(_connect(path, patience)) as connection:
        request = {"do": what} if mode is None else {"do": what, "mode": mode}
        connection.sendall(msgspec.json.encode(request) + b"\n")
        line, descriptors = _receive(connection, until)
    try:
        return msgspec.json.decode(line, type=reply_type), descriptors
    except _NONE_THERE:
        _close(descriptors)
        raise


def _connect(path: Path, patience: float) -> socket.socket:
    """A connection to the socket ``path``, if it is one and both it and its server can be trusted.

    What has been looked at is what is connected to: by descriptor, which also has room in an
    address where the path has none.
    """
    if sys.platform != "linux":
        raise OSError("processes are recorded on Linux only")
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISSOCK(status.st_mode) or not _is_trusted(status.st_uid):
            raise OSError(f"{path}: is not a socket of this user")
        return _connected(f"/proc/self/fd/{descriptor}", patience)
    finally:
        os.close(descriptor)


def _connected(address: str, patience: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(patience)
        connection.connect(address)
        option = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if not _is_trusted(_CREDENTIALS.unpack(option)[1]):
            raise OSError("the server is another user's")
    except OSError:
        connection.close()
        raise
    return connection


def _is_trusted(uid: int) -> bool:
    """Root may look at what all users do, and knows what that means."""
    return uid in (0, os.geteuid()) or os.geteuid() == 0


def _receive(connection: socket.socket, until: float) -> tuple[bytes, list[int]]:
    """A line, and what descriptors come with it. Raises OSError where none comes in time."""
    data, descriptors = b"", list[int]()
    try:
        while b"\n" not in data:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            part, more = _part(connection)
            descriptors += more
            data += part
            too_much = len(data) > _LONGEST or len(descriptors) > _MOST_DESCRIPTORS
            if not part or too_much or time.monotonic() > until:
                raise OSError("no line, or not in time")
    except OSError:
        _close(descriptors)
        raise
    return data.partition(b"\n")[0], descriptors


def _part(connection: socket.socket) -> tuple[bytes, list[int]]:
    part, descriptors, _, _ = socket.recv_fds(
        connection, _LONGEST, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
    )
    return part, descriptors


def _is_dump(descriptor: int) -> bool:
    """Whether it can be: a file of somebody trusted, that can be read and not be written."""
    status = os.fstat(descriptor)
    # What is open as a path only says that it is for reading, and cannot be read.
    mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_PATH)
    return stat.S_ISREG(status.st_mode) and _is_trusted(status.st_uid) and mode == os.O_RDONLY


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
