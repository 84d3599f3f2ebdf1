"""Keep what has been derived from files: found again by content, checked, bounded."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from flame.core.files.bounds import read_bounds, trim
from flame.core.files.cache_folder import NoCacheError, trusted_folder
from flame.core.files.digest import contents_digest
from flame.core.files.publish import open_folder
from flame.core.files.temporary import made_and_removed, temporary_folder, try_lock
from flame.core.lazy_dataclass import dataclass
from flame.core.mapped_files import open_regular

_PAUSE = 0.1


@dataclass(frozen=True)
class Cache:
    """Results of one ``kind`` (the name of a folder in the cache; empty: the cache's own).

    A result is a file named by the key of what it was made of, and by a digest of itself: one that
    has changed since is found out, and removed, before it is read. One that is found by its name
    alone (`find_named`) is checked by whoever reads it. When it was last used is its modification
    time.
    """

    kind: str = ""

    def folder(self) -> Path:
        """Return the folder, made if need be; NoCacheError where there is none to be trusted."""
        return trusted_folder(self.kind)

    def find(self, key: str, suffix: str) -> tuple[Path | None, bool]:
        """Find the result whose key begins with ``key``, and tell whether a damaged one was met.

        The damaged one is removed. Raises NoCacheError.
        """
        damaged = False
        for path in sorted(self.folder().glob(f"{key}*{suffix}"), key=_last_use, reverse=True):
            if _is_sound(path, suffix):
                return path, damaged
            damaged = True
            self.drop(path)
        return None, damaged

    def keep(self, made: Path, key: str, suffix: str) -> Path:
        """Move the file ``made``, from `workspace`, into the cache; return its name there.

        Other results of the same key go, and so does what is beyond the bounds. Raises OSError.
        """
        # Not put on disk first, which takes long for what is gigabytes: what a loss of power
        # leaves of it is found out as any damage is.
        made.chmod(0o600)
        with made.open("rb") as file:
            name = f"{key}.{contents_digest(file)}{suffix}"
        return self._put(made, name, lambda other: other.startswith(f"{key}."), suffix)

    def find_named(self, name: str) -> BinaryIO | None:
        """Open the result called ``name``, which counts as used now; None where there is none.

        What is in it is for the caller to check. One that others could have made, or changed, is
        none. Raises NoCacheError.
        """
        folder = self.folder()
        with suppress(OSError):
            file = os.fdopen(open_regular(folder / name, follow_link=False), "rb", 0)
            if is_own(os.fstat(file.fileno())):
                with suppress(OSError):  # as in `_is_sound`
                    os.utime(file.fileno())
                return file
            file.close()
        return None

    def keep_named(self, made: Path, name: str, is_stale: Callable[[str], bool]) -> Path:
        """Move the file ``made``, from `workspace`, into the cache as ``name``.

        It replaces what has that name; others whose names are stale go, and so does what is beyond
        the bounds. Raises OSError.
        """
        made.chmod(0o600)
        return self._put(made, name, is_stale, Path(name).suffix)

    def _put(self, made: Path, name: str, is_stale: Callable[[str], bool], suffix: str) -> Path:
        bounds = read_bounds()
        path = self.folder() / name
        os.utime(made)
        with open_folder(path.parent) as folder, open_folder(made.parent) as workspace:
            os.rename(made.name, name, src_dir_fd=workspace, dst_dir_fd=folder)
        for other in path.parent.glob(f"*{suffix}"):
            if other != path and is_stale(other.name):
                self.drop(other)
        trim(bounds, path)
        return path

    def drop(self, path: Path) -> None:
        """Remove a result that is of no use, if that can be done."""
        with suppress(OSError):
            path.unlink()

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Make a folder to make a result in, beside where it is kept."""
        with temporary_folder(self.folder()) as folder:
            yield folder

    @contextmanager
    def lock(self, key: str, tick: Callable[[], None]) -> Iterator[None]:
        """Keep other processes from making the result of ``key`` meanwhile.

        While another one does, ``tick`` is called ten times a second and may raise to give up.
        Raises NoCacheError where nothing can be written.
        """
        path = self.folder() / f".flame-{sha256(key.encode()).hexdigest()[:16]}.lock"
        file = _LockFile(path, tick)
        with made_and_removed(file.take, file.remove):
            yield


def is_own(status: os.stat_result) -> bool:
    """Tell whether a file is this user's, and no other user can write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _last_use(path: Path) -> float:
    with suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _is_sound(path: Path, suffix: str) -> bool:
    """Whether the file is what its name says; it counts as used now, then."""
    with suppress(OSError), os.fdopen(open_regular(path, follow_link=False), "rb", 0) as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            return False
        if path.name.removesuffix(suffix).endswith(f".{contents_digest(file)}"):
            with suppress(OSError):  # One may read the cache of a disk that nobody may write to.
                os.utime(file.fileno())
            return True
    return False


class _LockFile:
    """A file that is locked by whoever has `take`n it, and which is there no longer than that."""

    def __init__(self, path: Path, tick: Callable[[], None]) -> None:
        self._path, self._tick = path, tick
        self._held: BinaryIO | None = None

    def take(self) -> None:
        """Make the file if need be, and lock it; NoCacheError where it cannot be made."""
        try:
            while self._held is None:
                self._held = self._locked()
        except OSError as error:
            reason = error.strerror or error
            raise NoCacheError(f"no cache: {self._path}: {reason}") from None

    def _locked(self) -> BinaryIO | None:
        """Wait for the lock; None where whoever had it has removed the file."""
        file = self._open(os.O_CREAT)
        try:
            while try_lock(file.fileno()) is False:
                self._tick()
                time.sleep(_PAUSE)
            if _is_at(self._path, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()
        return None

    def _open(self, more: int = 0) -> BinaryIO:
        """Open the file as an object: where a signal keeps that from being kept, it is closed.

        A descriptor would stay open then, and locked.
        """
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | more
        return os.fdopen(os.open(self._path, flags, 0o600), "rb", 0)

    def remove(self) -> None:
        """Unlock and remove the file, unless another process has locked it; again does no harm."""
        if self._held is None:
            self._remove_free()
        elif not self._held.closed:
            self._unlink(self._held)
            self._held.close()

    def _remove_free(self) -> None:
        """Remove the file where a signal came between its making and its lock."""
        with suppress(OSError), self._open() as file:
            if try_lock(file.fileno()) is not False:
                self._unlink(file)

    def _unlink(self, locked: BinaryIO) -> None:
        with suppress(OSError):
            if _is_at(self._path, locked):
                self._path.unlink()


def _is_at(path: Path, file: BinaryIO) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    return False
