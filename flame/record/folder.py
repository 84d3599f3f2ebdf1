"""Make the folder of a recording, named after what is recorded, and clean it up afterwards."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex

SUFFIX = ".flame"
_MODE = 0o700
_OTHER = "name another folder with -o"
_INTERPRETER = lazy_regex(r"(python|pypy)[\d.]*|(ba|da|z)?sh")
_SCRIPT = lazy_regex(r"[^-\s]\S*\.(py|sh)")
_SOCKET = lazy_regex(r"\d+-[0-9a-f]+\.sock")
_ENDS = lazy_regex(r"^[.-]+|\.(py|sh)$")


@dataclass(frozen=True)
class RecordingFolder:
    """Name where a recording goes; ``made``: it was not there before."""

    path: Path
    made: bool = True
    identity: tuple[int, int] = (0, 0)
    """Device and inode of the folder."""

    def is_replaced(self) -> bool:
        """Tell whether something else than the folder has its name now."""
        with suppress(FileNotFoundError):
            return _identity(self.path) != self.identity
        return False

    def drop_if_empty(self) -> None:
        """Remove the folder if it was made for a recording and nothing has been written to it."""
        if self.made and not self.is_replaced():
            with suppress(OSError):
                self.path.rmdir()


def make_folder(output: Path | None, command: Sequence[str]) -> RecordingFolder:
    """Make the empty folder for a recording of ``command``: ``output``, or a new one here.

    UsageError where ``output`` holds something already, InputError where nothing can be written.
    """
    if output is None:
        names = _names(recording_name(command))
        return _opened(next(folder for folder in map(Path, names) if _make(folder)))
    made = _make(output)
    if not made:
        _check_usable(output)
    return _opened(output, made)


def _opened(folder: Path, made: bool = True) -> RecordingFolder:
    return RecordingFolder(folder, made, _identity(folder))


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _names(stem: str) -> Iterator[str]:
    yield f"{stem}{SUFFIX}"
    yield from (f"{stem}.{number}{SUFFIX}" for number in itertools.count(2))


def _make(folder: Path) -> bool:
    """Make the folder; False if something of that name exists."""
    try:
        folder.mkdir(_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"{folder}: cannot be made for the recording ({reason}); {_OTHER}"
        ) from None
    return True


def _check_usable(folder: Path) -> None:
    """Raise UsageError or InputError if something that exists is no empty folder of the user."""
    try:
        is_empty = folder.is_dir() and next(folder.iterdir(), None) is None
        owner = folder.stat().st_uid
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{folder}: cannot be read ({reason}); {_OTHER}") from None
    if not is_empty:
        raise UsageError(f"-o {folder}: is there already; name a new folder")
    # As the library sees it: who owns the folder can change what is in it, also for root.
    if owner not in (0, os.geteuid()):
        raise InputError(f"{folder}: belongs to another user, who could change it; {_OTHER}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: not writable; {_OTHER}")


def recording_name(command: Sequence[str]) -> str:
    """Name a recording of ``command`` after its script or module, else after the program.

    ``python -u train.py`` and ``torchrun --nproc-per-node 2 train.py`` are ``train``, ``python -m
    pkg.train`` is ``pkg.train``.
    """
    program, *words = command
    chosen = _script(words) or _module(words) or _first(program, words) or program
    return _ENDS.sub("", Path(chosen).name) or "recording"


def _script(words: Sequence[str]) -> str:
    return next((word for word in words if _SCRIPT.fullmatch(word)), "")


def _module(words: Sequence[str]) -> str:
    return words[words.index("-m") + 1] if "-m" in words[:-1] else ""


def _first(program: str, words: Sequence[str]) -> str:
    """What an interpreter is told to run, if that is no option and no code."""
    is_script = _INTERPRETER.fullmatch(Path(program).name) and words and words[0][:1] != "-"
    return words[0] if is_script else ""


# Sockets of processes that have ended without a word: nobody listens at them any more


def remove_stale_sockets(folder: Path) -> None:
    """Remove the sockets in ``folder`` of processes that were killed, or called ``_exit``.

    Those of processes that go on after the command has ended stay. Nothing is raised.
    """
    for path in _sockets(folder):
        with suppress(OSError):
            if _is_refused(path):
                path.unlink()


def _sockets(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from [path for path in folder.iterdir() if _SOCKET.fullmatch(path.name)]


def _is_refused(path: Path) -> bool:
    """Whether ``path`` is a socket that nobody listens at."""
    import socket

    # By descriptor: a path may be longer than an address, and a link is not followed.
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as connection:
            connection.setblocking(False)
            return connection.connect_ex(f"/proc/self/fd/{descriptor}") == errno.ECONNREFUSED
    finally:
        os.close(descriptor)
