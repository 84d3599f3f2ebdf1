"""Open files that another user may have put there, and tell files apart, by path or mapping."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flame.core.lazy_regex import lazy_regex

_DESCRIPTOR = lazy_regex(r"/proc/\d+/fd/\d+")


class MappedFile(NamedTuple):
    """Identify a file as the kernel does in ``/proc/PID/maps``.

    Not as stat does: on btrfs and overlays the numbers of the device differ.
    """

    device: str
    inode: int


def open_regular(path: str | Path, follow_link: bool = True, folder: int | None = None) -> int:
    """Open the file at ``path`` for reading; raises OSError, and IsNotRegularError.

    What it is is seen first: opening a device may do something, and a pipe would be waited for.
    A relative path is looked for in ``folder``, a descriptor, where that is given.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    if sys.platform != "linux":
        _check_regular(os.stat(path, dir_fd=folder, follow_symlinks=follow_link))
        return os.open(path, flags, dir_fd=folder)
    no_link = 0 if follow_link else os.O_NOFOLLOW
    place = os.open(path, os.O_PATH | os.O_CLOEXEC | no_link, dir_fd=folder)
    try:
        _check_regular(os.fstat(place))
        return os.open(f"/proc/self/fd/{place}", flags)
    finally:
        os.close(place)


def open_foreign(path: str | Path) -> int:
    """Open what another user's process may have put at ``path``; raises as `open_regular`.

    Through no link but that of a descriptor, which the kernel makes.
    """
    return open_regular(path, follow_link=bool(_DESCRIPTOR.fullmatch(str(path))))


class IsNotRegularError(OSError):
    """Report a path that leads to a folder, a link, a device or a pipe."""


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise IsNotRegularError(errno.EINVAL, "not a regular file")


def file_at(path: Path) -> tuple[int, int] | None:
    """Return device and inode of what is at ``path``; None if it cannot be looked at."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def identify_mapped(descriptor: int) -> MappedFile:
    """Say how the file open as ``descriptor`` is listed where it is mapped; raises OSError.

    By mapping it here: nothing else gives the same numbers on all file systems.
    """
    try:
        with mmap.mmap(descriptor, 1, access=mmap.ACCESS_READ) as mapped:
            address = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
            return _listed_at(address)
    except ValueError as error:  # it is empty
        raise OSError(errno.EINVAL, str(error)) from None


def _listed_at(address: int) -> MappedFile:
    with Path("/proc/self/maps").open("rb") as lines:
        for line in lines:
            if int(line.partition(b"-")[0], 16) == address:
                return listed_file(line)
    raise OSError(errno.ENOENT, "the mapping is not listed")


def listed_file(line: bytes) -> MappedFile:
    """Read which file a line of ``/proc/PID/maps`` is about."""
    fields = line.split(maxsplit=5)
    return MappedFile(fields[3].decode("ascii"), int(fields[4]))
