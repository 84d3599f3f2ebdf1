"""Load the library into a running CPython (PEP 768).

Nothing that the owner of that program could have made is run for it, least of all by root.
"""

from __future__ import annotations

import errno
import os
import re
from functools import partial
from pathlib import Path
from stat import S_ISDIR

from flame.attach.discover.maps import mappings_of, path_of, takes_library
from flame.attach.discover.permission import explain
from flame.attach.discover.proc import read, read_process, user_name
from flame.attach.library.process_memory import ProcessMemory
from flame.attach.library.python_runtime import reason_against, request_script
from flame.attach.library.remote_script import ROOM, RemoteScript
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.record.environment import library_path

TIMEOUT = 5.0
"""Seconds within which a program that runs Python at all comes by."""

_INJECTED = Path(__file__).with_name("injected.py")
_RECORD = "start it with flame record"
_INSIDE = (
    "it sees other files than flame does (a container): install flame in there and run flame "
    f"attach in there, or {_RECORD}"
)


def load(pid: int, folder: Path | None = None, patience: float = TIMEOUT) -> Path:
    """Have ``pid`` load the library, which records from now on; return the path of its dump.

    The dump lies in ``folder``, which has to be writable for the user that ``pid`` runs as, or
    where the library puts it by itself (``/tmp/flame-UID``, or the program's own ``FLAME_DIR``).
    GPU work and Python frames are recorded, NVTX ranges are not: NVTX asks for libraries once, when
    it is first used.

    The program does it between two of its own Python instructions: if its main thread waits in C
    code for more than ``patience`` seconds, an InputError says that it will do it when that ends.
    InputError says why, too, where it cannot be done, and UsageError if there is no library.
    """
    with _open_memory(pid) as memory:
        # Only now: what it becomes by exec has another memory.
        target = _target(pid)
        library = library_path()
        _check_sees(pid, library, folder)
        if folder and not _is_usable(folder, target):
            raise InputError(f"{pid}: {_refused('refused', target, folder)}")
        answer = _ask(target, memory, library, folder, patience)
    if answer is None:
        raise InputError(_late(target, patience))
    if answer != "recording":
        raise InputError(f"{pid}: {_refused(answer, target, folder)}")
    return _dump(pid)


@dataclass(frozen=True)
class _RemoteProcess:
    """The process; ``start`` tells it from a later one of the same pid."""

    pid: int
    start: int
    uid: int
    gid: int


def _open_memory(pid: int) -> ProcessMemory:
    """InputError where this user may not look into ``pid``."""
    reason = explain(pid)
    try:
        if not reason:
            return ProcessMemory(pid)
    except OSError as error:
        reason = explain(pid) or f"nothing can be loaded into it ({error.strerror or error})"
    raise InputError(f"{pid}: {reason}")


def _target(pid: int) -> _RemoteProcess:
    """InputError where ``pid`` is no Python that can load anything."""
    process = read_process(pid)
    try:
        python = mappings_of(pid).python
        ids = _ids(pid)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise InputError(f"{pid}: has more mapped than is read of any process") from None
        process = python = None
    if not process:
        raise InputError(f"{pid}: it has ended")
    if python is None:
        raise InputError(f"{pid}: it is no Python program: {_RECORD}")
    if not takes_library(python):
        raise InputError(f"{pid}: {reason_against(python)}: {_RECORD}")
    return _RemoteProcess(pid, process.start, *ids)


def _ids(pid: int) -> tuple[int, int]:
    """Effective user and group."""
    ids = re.findall(rb"^[UG]id:\s+\d+\s+(\d+)", read(pid, "status"), re.MULTILINE)
    uid, gid = map(int, ids)
    return uid, gid


def _is_same(target: _RemoteProcess) -> bool:
    process = read_process(target.pid)
    return process is not None and process.start == target.start and not process.is_zombie


def _check_sees(pid: int, library: Path, folder: Path | None) -> None:
    """InputError if these and the script are something else, or nothing, where ``pid`` looks."""
    for path in (library, ROOM, folder):
        if path and not _is_seen(pid, path):
            raise InputError(f"{pid}: {_INSIDE}")


def _is_seen(pid: int, path: Path) -> bool:
    there = Path(f"/proc/{pid}/root{path.absolute()}")
    try:
        return not path.exists() or path.samefile(there)
    except OSError:
        return False


def _is_usable(folder: Path, target: _RemoteProcess) -> bool:
    """Whether the library can record into ``folder``: it does not try a second one."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return folder.parent.is_dir() and _may_write(folder.parent.stat(), target)
    trusted = status.st_uid in (0, target.uid)
    return S_ISDIR(status.st_mode) and trusted and _may_write(status, target)


def _may_write(status: os.stat_result, target: _RemoteProcess) -> bool:
    """Whether the target may make files in that folder, as far as owner and mode tell."""
    if target.uid == 0:
        return True
    if status.st_uid == target.uid:
        return status.st_mode & 0o300 == 0o300
    return bool(status.st_mode & 0o022)


def _script(library: Path, folder: Path | None, place: Path) -> str:
    words = (str(library), str(folder.absolute()) if folder else "", str(place))
    return f"{_INJECTED.read_text()}\n\nattach{words!r}\n"


def _ask(
    target: _RemoteProcess,
    memory: ProcessMemory,
    library: Path,
    folder: Path | None,
    patience: float,
) -> str | None:
    """What the target says once it has loaded ``library``; None where it does not come by."""
    try:
        with RemoteScript((target.uid, target.gid)) as remote_script:
            remote_script.prepare(_script(library, folder, remote_script.place))
            _request(target, memory, remote_script.script)
            return remote_script.wait(patience, partial(_is_same, target))
    except OSError as error:
        raise InputError(f"{ROOM}: not writable ({error.strerror or error})") from None


def _request(target: _RemoteProcess, memory: ProcessMemory, script: Path) -> None:
    try:
        request_script(memory, target.pid, str(script))
    except InputError as error:
        raise InputError(f"{target.pid}: {error}: {_RECORD}") from None
    except OSError:
        reason = "what is in its memory makes no sense" if _is_same(target) else "it has ended"
        raise InputError(f"{target.pid}: {reason}: {_RECORD}") from None


def _late(target: _RemoteProcess, patience: float) -> str:
    if not _is_same(target):
        return f"{target.pid}: it has ended"
    return (
        f"{target.pid}: its main thread has run no Python for {patience:g} s, it waits for C code: "
        "recording begins as soon as that returns; attach again then"
    )


def _refused(answer: str, target: _RemoteProcess, folder: Path | None) -> str:
    if answer != "refused":
        return f"the library cannot be loaded into it ({answer}): {_RECORD}"
    user, place = user_name(target.uid), folder or "the folder of its FLAME_DIR"
    return (
        f"the library cannot record: {place} has to belong to {user} or root, be no link, be "
        f"writable for {user} and have room; nor can it where it was stopped before"
    )


def _dump(pid: int) -> Path:
    """The dump that ``pid`` writes now."""
    try:
        paths = [path_of(dump, pid) for dump in mappings_of(pid).dumps]
    except OSError:
        paths = []
    path = next(filter(None, paths), None)
    if not path:
        raise InputError(f"{pid}: it has ended, or removed its dump, as soon as it was recorded")
    return path
