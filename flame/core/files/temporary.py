"""Make temporary files and folders beside their target; remove those that a killed flame left."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from flame.core.lazy_regex import lazy_regex

T = TypeVar("T")

_IDLE, _IDLE_WITHOUT_LOCKS = 600.0, 86_400.0
"""Seconds without a change after which a file that nobody holds counts as left behind."""

_TRIES = 3
"""How often it is tried to remove a folder that does not go."""

_LEFT = lazy_regex(r"\.flame-[0-9a-f]{16}\.(tmp|lock)")


def temporary_name() -> str:
    """Make a name that nobody can foresee; short, whatever the target's name is."""
    return f".flame-{os.urandom(8).hex()}.tmp"


def open_new(name: str, folder: int, mode: int) -> int:
    """Create the file ``name`` in the folder open as ``folder``, and open it for writing.

    It has ``mode``, less the umask, from the first moment. Raises FileExistsError where anything
    has that name, be it a link. As long as it is open `remove_left` knows that it is in use.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, mode, dir_fd=folder)
    try_lock(descriptor)
    return descriptor


@contextmanager
def made_and_removed(make: Callable[[], T], remove: Callable[[], object]) -> Iterator[T]:
    """Make a file or folder by ``make``, and ``remove`` it when the block is left.

    Also where a signal interrupts either, whose handler may raise when ``make`` is done and has not
    returned, or while ``remove`` is not done: it is called again then, and has to allow for that.
    An OSError of ``make`` says that nothing was made.
    """
    try:
        made = make()
    except OSError:
        raise
    except BaseException:
        remove()
        raise
    try:
        yield made
    finally:
        try:
            remove()
        except BaseException:
            remove()
            raise


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Make a folder in ``parent`` for this user alone; it is removed with all in it at the end."""
    path = parent / temporary_name()
    with made_and_removed(partial(path.mkdir, 0o700), partial(_remove_tree, path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            try_lock(descriptor)
            yield path
        finally:
            os.close(descriptor)


def _remove_tree(path: Path) -> None:
    """Remove a folder in which a thread may yet make a file, such as a download that is ended."""
    from shutil import rmtree  # takes as long as a tenth of numpy, and few need it

    for _ in range(_TRIES):
        rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder as `temporary_folder` where temporary files go. Raises OSError.

    Those that killed processes of this user have left there are removed.
    """
    from tempfile import gettempdir

    room = Path(gettempdir())
    remove_left(room)
    with temporary_folder(room) as folder:
        yield folder


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False where another process holds the lock.

    None where the file system has no such locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def remove_left(folder: Path) -> None:
    """Remove what processes that were killed have left in ``folder``. Nothing is raised.

    That is files and folders named as here, of this user, that nobody holds and that have not
    changed for ten minutes; for a day where the file system does not tell who holds them.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if _LEFT.fullmatch(entry.name)]
        for path in left:
            with suppress(OSError):
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    known = path.lstat()
    is_folder = stat.S_ISDIR(known.st_mode)
    if known.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(known.st_mode)):
        return
    idle = time.time() - _last_change(path, known)
    if idle < _IDLE:
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        is_free = try_lock(descriptor)
        if is_free or (is_free is None and idle > _IDLE_WITHOUT_LOCKS):
            from shutil import rmtree

            rmtree(path) if is_folder else path.unlink()
    finally:
        os.close(descriptor)


def _last_change(path: Path, known: os.stat_result) -> float:
    """When the file, or anything directly in the folder, was written to; seconds."""
    times = [known.st_mtime]
    if stat.S_ISDIR(known.st_mode):
        with os.scandir(path) as entries:
            times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
    return max(times)
