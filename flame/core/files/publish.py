"""Give finished files their names, and see to it that these outlast a loss of power."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What file systems without hard links answer: vfat, some of FUSE and of networks.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# What those answer that cannot put a folder on disk, and O_PATH.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder, to work in this one whatever gets its name meanwhile. Raises OSError."""
    flags = os.O_DIRECTORY | os.O_CLOEXEC
    try:
        folder = os.open(path, flags | os.O_RDONLY)
    except PermissionError:  # One may write to it and not list it.
        folder = os.open(path, flags | getattr(os, "O_PATH", os.O_RDONLY))
    try:
        yield folder
    finally:
        os.close(folder)


def make_private_folder(path: Path) -> None:
    """Make a folder for this user alone, and those above it that are not there. Raises OSError."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(0o700, exist_ok=True)


def publish(beside: str, name: str, folder: int, *, replace: bool) -> None:
    """Name the file ``beside`` ``name``; both are in the folder open as ``folder``.

    Without ``replace`` nothing loses its name: FileExistsError. Raises OSError.
    """
    if replace:
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _take_name(beside, name, folder)


def _take_name(beside: str, name: str, folder: int) -> None:
    """Replace an empty file that has been made for that: it is nobody else's."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(name, flags, 0o600, dir_fd=folder))
    try:
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def sync_folder(folder: int) -> None:
    """Put the names in an open folder on disk, where its file system can. Raises OSError."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
