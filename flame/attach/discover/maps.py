"""Read what a process has mapped: the dump it writes, and which Python it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from flame.attach.discover.proc import read, read_or_raise
from flame.core.lazy_regex import lazy_regex
from flame.core.mapped_files import MappedFile, identify_mapped, open_foreign
from flame.core.readers.fdump.folder import SUFFIX

REMOTE_VERSIONS = frozenset({(3, 14), (3, 15)})
"""Those of CPython into which the library can be loaded while they run."""

_DUMP = lazy_regex(
    rb"^\S+ \S\S\Ss \S+ (\S+) (\d+) +(/.*" + re.escape(SUFFIX.encode()) + rb")( \(deleted\))?$",
    re.M,
)
_PYTHON = lazy_regex(
    rb"/libpython3\.(\d+)|/python3\.(\d+)[a-z]*(?: \(deleted\))?$|\.cpython-3(\d+)[a-z]*-", re.M
)
_CUDA = lazy_regex(rb"/libcuda\.so")
# Only whether it is there, and names this library: other variables may hold secrets.
_PREPARED = lazy_regex(rb"(?:\A|\0)(?:CUDA|NVTX)_INJECTION64_PATH=[^\0]*flameinject")
_INTERPRETER = lazy_regex(r"python[\d.]*[a-z]?")
_MOST_DUMPS = 16
"""One is usual; another user's process may have mapped any number of files called so."""
_MOST_DESCRIPTORS = 1 << 16


class MappedDump(NamedTuple):
    """Name a dump as its process sees it: ``path`` may have been removed."""

    file: MappedFile
    path: str
    removed: bool


class Mappings(NamedTuple):
    """Hold what is mapped. ``python``: its version or None; ``cuda``: the driver is loaded."""

    dumps: tuple[MappedDump, ...]
    python: tuple[int, int] | None
    cuda: bool


NO_MAPPINGS = Mappings((), None, False)


def mappings_of(pid: int) -> Mappings:
    """Read what ``pid`` has mapped; OSError where that is forbidden, or nobody has that pid."""
    maps = read_or_raise(pid, "maps")
    python = _PYTHON.search(maps)
    version = (3, int(next(filter(None, python.groups())))) if python else None
    return Mappings(tuple(_dumps(maps)), version, bool(_CUDA.search(maps)))


def _dumps(maps: bytes) -> Iterator[MappedDump]:
    """Yield each dump once, and no more than `_MOST_DUMPS`."""
    known: set[MappedFile] = set()
    for dump in map(_dump, _DUMP.finditer(maps)):
        if dump.file not in known and len(known) < _MOST_DUMPS:
            known.add(dump.file)
            yield dump


def _dump(match: re.Match[bytes]) -> MappedDump:
    device, inode, path, removed = match.groups(b"")
    # The only character that the kernel writes in another way.
    name = os.fsdecode(path.replace(b"\\012", b"\n"))
    return MappedDump(MappedFile(device.decode("ascii"), int(inode)), name, bool(removed))


def path_of(dump: MappedDump, pid: int) -> Path | None:
    """Return a path by which this process can open the dump that ``pid`` has mapped.

    None if there is none: it was removed, or lies in a container, and others cannot get at it. A
    link in its place is not followed: who owns the folder may have put it there.
    """
    if not dump.removed:
        for path in (dump.path, f"/proc/{pid}/root{dump.path}"):
            if _leads_to(path, dump.file):
                return Path(path)
    for path in _descriptors(pid):
        if _leads_to(path, dump.file):
            return Path(path)
    return None


def _leads_to(path: str, file: MappedFile) -> bool:
    with suppress(OSError):
        descriptor = open_foreign(path)
        try:
            return identify_mapped(descriptor) == file
        finally:
            os.close(descriptor)
    return False


def _descriptors(pid: int) -> Iterator[str]:
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in islice(entries, _MOST_DESCRIPTORS):
            if SUFFIX in _target(entry.path):
                yield entry.path


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115
    except OSError:
        return ""


def is_prepared(pid: int) -> bool:
    """Tell whether ``pid`` was started so that CUDA and NVTX load the library into it."""
    return bool(_PREPARED.search(read(pid, "environ")))


def is_interpreter(pid: int) -> bool:
    """Tell whether the program of ``pid`` is a Python, and not one that has a Python in it."""
    return bool(_INTERPRETER.fullmatch(_target(f"/proc/{pid}/exe").rpartition("/")[2]))


def takes_library(version: tuple[int, int]) -> bool:
    """Tell whether the library can be loaded into a running Python of this version."""
    return version in REMOTE_VERSIONS
