"""What a process has mapped: the dump it writes, and which Python it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from flame.attach.discover.proc import read, read_or_raise
from flame.core.readers.fdump.folder import SUFFIX

_DUMP = re.compile(
    rb"^\S+ \S\S\Ss \S+ \S+ (\d+) +(/.*" + re.escape(SUFFIX.encode()) + rb")( \(deleted\))?$", re.M
)
_PYTHON = re.compile(
    rb"/libpython3\.(\d+)|/bin/python3\.(\d+)[a-z]*$|\.cpython-3(\d+)[a-z]*-", re.M
)
_CUDA = re.compile(rb"/libcuda\.so")
# Only whether it is there, and names this library: other variables may hold secrets.
_PREPARED = re.compile(rb"(?:\A|\0)(?:CUDA|NVTX)_INJECTION64_PATH=[^\0]*flameinject")
_INTERPRETER = re.compile(r"python[\d.]*[a-z]?")
_OLDEST_REMOTE = (3, 14)


class Place(NamedTuple):
    """A dump as the process has it: ``path`` as it sees it, which may have been removed."""

    inode: int
    path: str
    removed: bool


class Mapped(NamedTuple):
    """``python``: the version, None if it is none; ``cuda``: whether the driver is loaded."""

    dumps: tuple[Place, ...]
    python: tuple[int, int] | None
    cuda: bool


NOTHING = Mapped((), None, False)


def mapped_by(pid: int) -> Mapped:
    """What ``pid`` has mapped; OSError where that may not be looked at, or nobody has that pid."""
    maps = read_or_raise(pid, "maps")
    python = _PYTHON.search(maps)
    version = (3, int(next(filter(None, python.groups())))) if python else None
    found = (one.groups(b"") for one in _DUMP.finditer(maps))
    places = {int(inode): _place(int(inode), path, removed) for inode, path, removed in found}
    return Mapped(tuple(places.values()), version, bool(_CUDA.search(maps)))


def _place(inode: int, path: bytes, removed: bytes) -> Place:
    # The only character that the kernel writes in another way.
    return Place(inode, os.fsdecode(path.replace(b"\\012", b"\n")), bool(removed))


def path_of(place: Place, pid: int) -> Path | None:
    """A path by which this process can open the dump that ``pid`` has mapped.

    None if there is none: it was removed, or lies in a container, and others cannot get at it.
    """
    named = () if place.removed else (place.path, f"/proc/{pid}/root{place.path}")
    for path in (*named, *_descriptors(pid)):
        with suppress(OSError):
            if os.stat(path).st_ino == place.inode:  # noqa: PTH116
                return Path(path)
    return None


def _descriptors(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            path = f"/proc/{pid}/fd/{number}"
            if SUFFIX in _target(path):
                yield path


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115
    except OSError:
        return ""


def is_prepared(pid: int) -> bool:
    """Whether it was started so that CUDA and NVTX load the library into it."""
    return bool(_PREPARED.search(read(pid, "environ")))


def is_interpreter(pid: int) -> bool:
    """Whether its program is a Python, and not one that has a Python in it."""
    return bool(_INTERPRETER.fullmatch(_target(f"/proc/{pid}/exe").rpartition("/")[2]))


def takes_library(version: tuple[int, int]) -> bool:
    """Whether the library can be loaded into a running Python of this version."""
    return version >= _OLDEST_REMOTE
