"""Load the library into a running CPython 3.14 or later by ``sys.remote_exec`` (PEP 768)."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from flame.attach.discover.maps import is_interpreter, mappings_of, path_of
from flame.attach.discover.permission import explain
from flame.attach.discover.proc import read, read_process, user_name
from flame.attach.library.remote_script import ROOM, RemoteScript
from flame.core.errors import InputError
from flame.record.environment import INJECTIONS, library_path

PATIENCE = 5.0
"""Seconds within which a program that runs Python at all comes by."""

_ASKING = 30.0  # a second interpreter starts in 0.05 s, on a machine that is not overloaded
_INJECTED = Path(__file__).with_name("injected.py")
# Run by the interpreter of the program: of another minor version it could not do it, and what it
# has to know of the program's memory changes with every one.
_ASK = """\
import sys
try:
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])
except Exception as error:
    while error:
        print(error)
        error = error.__cause__ or error.__context__
    sys.exit(1)
"""
_RECORD = "start it with flame record"
_INSIDE = (
    "it sees other files than flame does (a container): install flame-view in there and run flame "
    f"attach in there, or {_RECORD}"
)
_LIBPYTHON = re.compile(rb" (/[^\n]*)/libpython3[^/\n]*$", re.MULTILINE)
# What CPython says (Python/remote_debugging.c), and what is to be said of it.
_REASONS = {
    "not enabled in the remote": "its Python was told to let nobody load anything into it "
    f"(-X disable-remote-debug, PYTHON_DISABLE_REMOTE_DEBUG): {_RECORD}",
    "not been compiled in": f"its Python was built --without-remote-debug: {_RECORD}",
    "no attribute 'remote_exec'": f"its Python is older than 3.14: {_RECORD}",
}


def load(pid: int, folder: Path | None = None, patience: float = PATIENCE) -> Path:
    """Have ``pid`` load the library, which records from now on; return the path of its dump.

    The dump lies in ``folder``, which has to be writable for the user that ``pid`` runs as, or
    where the library puts it by itself (``/tmp/flame-UID``, or the program's own ``FLAME_DIR``).
    GPU work and Python frames are recorded, NVTX ranges are not: NVTX asks for libraries once, when
    it is first used.

    The program does it between two of its own Python instructions: if its main thread waits in C
    code for more than ``patience`` seconds, an InputError says that it will do it when that ends.
    InputError says why, too, where it cannot be done, and UsageError if there is no library.
    """
    target = _target(pid)
    library = library_path()
    _check_sees(pid, library, folder)
    if folder and not _is_usable(folder, target):
        raise InputError(f"{pid}: {_refused('refused', target, folder)}")
    try:
        with RemoteScript((target.uid, target.gid)) as remote_script:
            remote_script.prepare(_script(library, folder, remote_script.place))
            _ask(target, remote_script.script)
            answer = remote_script.wait(patience, partial(_is_same, target))
    except OSError as error:
        raise InputError(f"{ROOM}: not writable ({error.strerror or error})") from None
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
    program: str


def _target(pid: int) -> _RemoteProcess:
    """InputError where ``pid`` is no Python that this user may change."""
    if reason := explain(pid):
        raise InputError(f"{pid}: {reason}")
    process = read_process(pid)
    try:
        program = str(Path(f"/proc/{pid}/exe").readlink())
        ids = _ids(pid)
    except (OSError, ValueError):
        process = None
    if not process:
        raise InputError(f"{pid}: it has ended")
    if program.endswith(" (deleted)"):
        raise InputError(f"{pid}: its Python has been updated since it was started: {_RECORD}")
    if not is_interpreter(pid):
        # Another program would do whatever it does with the words that a Python is told.
        name = Path(program).name
        raise InputError(f"{pid}: its program is {name}, no Python interpreter: {_RECORD}")
    return _RemoteProcess(pid, process.start, *ids, program)


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


def _ask(target: _RemoteProcess, script: Path) -> None:
    """Have the interpreter of the program tell it to run ``script``. InputError if it will not."""
    runs_as = _credentials(target)
    try:
        done = subprocess.run(
            [target.program, "-I", "-S", "-c", _ASK, str(target.pid), str(script)],
            executable=f"/proc/{target.pid}/exe",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(target),
            cwd="/",
            timeout=_ASKING,
            **runs_as,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{target.pid}: its Python did not answer: {_RECORD}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{target.pid}: its Python cannot be run here ({reason}): {_RECORD}"
        ) from None
    if done.returncode:
        output = done.stdout.decode("utf-8", "replace")
        raise InputError(f"{target.pid}: {_reason(target, output, bool(runs_as))}")


def _credentials(target: _RemoteProcess) -> dict[str, Any]:
    """Whom to run the program's interpreter as, for `subprocess.run`: its user may have made it.

    Root runs no such thing as root. As that user it can do it as well, unless the system lets
    nobody but root.
    """
    if os.geteuid() != 0 or target.uid == 0 or _is_roots(Path(target.program)):
        return {}
    return {"user": target.uid, "group": target.gid, "extra_groups": []}


def _is_roots(path: Path) -> bool:
    """Whether nobody but root can change the file at ``path``, or put another one in its place."""
    try:
        statuses = [part.stat() for part in (path, *path.parents)]
    except OSError:
        return False
    return all(status.st_uid == 0 and not status.st_mode & 0o022 for status in statuses)


def _environment(target: _RemoteProcess) -> dict[str, str]:
    """Our own without injections; a Python that is a library is looked for where it was found."""
    environment = {key: value for key, value in os.environ.items() if key not in INJECTIONS}
    library = _LIBPYTHON.search(read(target.pid, "maps"))
    if library and target.uid == os.geteuid():
        folders = [os.fsdecode(library[1]), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    return environment


def _reason(target: _RemoteProcess, output: str, dropped: bool) -> str:
    """What to say where the interpreter has failed with that text."""
    for sign, reason in _REASONS.items():
        if sign in output:
            return reason
    if not _is_same(target):
        return "it has ended"
    if dropped:
        user = user_name(target.uid)
        return (
            f"root does not run the Python of {user} ({target.program}), and {user} may not look "
            "into it (kernel.yama.ptrace_scope has to be 0)"
        )
    lines = output.strip().splitlines() or ["it says nothing"]
    return f"nothing can be loaded into it ({lines[-1]}): {_RECORD}"


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
