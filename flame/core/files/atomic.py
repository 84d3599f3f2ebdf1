"""Write output that is there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from flame.core.errors import InputError
from flame.core.files.publish import make_private_folder, open_folder, publish, sync_folder
from flame.core.files.temporary import made_and_removed, open_new, remove_left, temporary_name
from flame.core.files.terminal_output import escaped_on_terminal

STDOUT = "-"

# What the shell has opened: to replace the file behind such a name would lose what is in it.
_DESCRIPTORS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_MOST_LINKS = 40


class OccupiedError(InputError):
    """Report that something has the name of a file that must not be replaced."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is there already")


def is_stream(path: str) -> bool:
    """Tell whether what is written to ``path`` replaces nothing: standard output, pipes, devices.

    And what the shell has opened: its descriptors.
    """
    if path == STDOUT or path.startswith(_DESCRIPTORS):
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def refuse_missing_folder(path: str) -> None:
    """Raise InputError, before anything is read, where the folder of a file to write is none."""
    if not is_stream(path) and not Path(path).parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {Path(path).parent}")


@contextmanager
def atomic_output(path: str, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file that takes its place at ``path`` when the block has succeeded.

    Until then, and if the block fails, what is at ``path`` stays as it is. Without ``replace`` it
    stays in any case, also what appears there meanwhile: OccupiedError. ``-`` is stdout; pipes,
    devices and descriptors are written to directly, and a terminal gets nothing that it would obey.
    Raises InputError, in one line, where ``path`` cannot be written; BrokenPipeError passes.
    """
    try:
        with _open_output(path) if replace else _open_unoccupied(path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def private_output(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file that replaces the one at ``path``, in a folder of the user's own.

    The folder is made where it is not there; file and folder are for this user alone. What a killed
    flame has left in the folder is removed. Raises OSError.
    """
    make_private_folder(path.parent)
    remove_left(path.parent)
    with open_folder(path.parent) as folder, written_whole(path.name, folder) as file:
        yield file


def _open_output(path: str) -> AbstractContextManager[BinaryIO]:
    if path == STDOUT:
        return _stdout()
    if path.startswith(_DESCRIPTORS):
        return _append_to(path)
    if not path or path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    target = _follow_links(Path(path))
    known = _stat(target)
    if known is None:
        return _whole_file(target, None, replace=True)
    if stat.S_ISDIR(known.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(known.st_mode):
        return _append_to(path)
    # Who may not write to a file may not replace it either; the system knows best why not.
    os.close(os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
    return _whole_file(target, known, replace=True)


@contextmanager
def _open_unoccupied(path: str) -> Iterator[BinaryIO]:
    if os.path.lexists(path):
        raise OccupiedError(path)
    try:
        with _whole_file(Path(path), None, replace=False) as file:
            yield file
    except FileExistsError:
        raise OccupiedError(path) from None


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    yield escaped_on_terminal(sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def _append_to(path: str) -> Iterator[BinaryIO]:
    # Appending, since the shell may have opened the same file with ">>".
    with Path(path).open("ab") as file:
        yield escaped_on_terminal(file)


def _follow_links(path: Path) -> Path:
    """Name what ``path`` leads to. No link counts that others may have put there to mislead."""
    for _ in range(_MOST_LINKS):
        known = _stat(path)
        if known is None:
            return path
        _refuse_planted(path, known)
        if not stat.S_ISLNK(known.st_mode):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _refuse_planted(path: Path, known: os.stat_result) -> None:
    """Raise PermissionError for what another user has made in a folder such as /tmp.

    As Linux does for links and files there, where it is told to (fs.protected_symlinks).
    """
    folder = path.parent.stat()
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and known.st_uid not in (os.geteuid(), folder.st_uid):
        reason = "another user has made it, in a folder that everybody may write to"
        raise PermissionError(errno.EACCES, reason)


@contextmanager
def _whole_file(target: Path, known: os.stat_result | None, *, replace: bool) -> Iterator[BinaryIO]:
    """A file that gets the name ``target`` at the end, and the permissions of ``known``, if any."""
    mode = 0o666 if known is None else known.st_mode & 0o777
    with (
        open_folder(target.parent) as folder,
        written_whole(target.name, folder, mode, replace=replace) as file,
    ):
        if known is not None and known.st_uid == os.geteuid():
            _take_permissions(file.fileno(), known)
        yield file


def _take_permissions(descriptor: int, known: os.stat_result) -> None:
    """Give an empty file the group and permissions of another; never more than that one gave."""
    mode = known.st_mode & 0o777
    if os.fstat(descriptor).st_gid != known.st_gid:
        try:
            os.fchown(descriptor, -1, known.st_gid)
        except PermissionError:
            mode &= ~stat.S_IRWXG  # They were meant for another group.
    with suppress(PermissionError):  # vfat has no permissions
        os.fchmod(descriptor, mode)


@contextmanager
def written_whole(
    name: str, folder: int, mode: int = 0o600, *, replace: bool = True
) -> Iterator[BinaryIO]:
    """Open a file that becomes ``name``, in the folder open as ``folder``, when it is on disk.

    It has ``mode``, less the umask, from its first byte. If the block fails nothing is left behind.
    Raises OSError, FileExistsError where ``name`` is there and must not be replaced.
    """
    beside = temporary_name()

    def remove() -> None:
        with suppress(OSError):  # It has got its name.
            os.unlink(beside, dir_fd=folder)

    with made_and_removed(partial(open_new, beside, folder, mode), remove) as descriptor:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        publish(beside, name, folder, replace=replace)
    sync_folder(folder)
