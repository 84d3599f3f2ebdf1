"""Describe what can be attached to: processes grouped into jobs, and finished recordings."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from flame.core.lazy_dataclass import dataclass
from flame.record.folder import recording_name

_FLAME = "flame"
_WITH_VALUE = ("-W", "-X")


class WatchMethod(Enum):
    """Name how a process can be watched."""

    DUMP = "recording"
    """It has the library, and a dump that grows."""
    REMOTE = "can be loaded"
    """CPython 3.14 or 3.15: the library can be loaded into it."""
    CPU = "CPU only"
    """Another Python: py-spy can sample it, without the GPU."""
    NONE = "not recorded"


@dataclass(frozen=True)
class Candidate:
    """Describe a process that might be watched.

    ``dumps`` are those that it is writing, as paths that this process can open (``/proc/PID/fd/N``
    where the file has another name here, or none); of one that will record as soon as it uses CUDA
    or NVTX there are none yet. ``command`` is empty for processes of other users. ``age`` in
    seconds, ``denied``: why nothing more is known of it, empty if nothing is in the way.
    """

    pid: int
    name: str
    command: str
    user: str
    age: float
    method: WatchMethod
    dumps: tuple[Path, ...] = ()
    parent: int = 0
    denied: str = ""


@dataclass(frozen=True)
class Job:
    """Group what was started as one command: ``root`` and all below it that can be watched.

    ``kernels``, ``launches`` and ``bytes`` are of all dumps so far, -1 where counting would take
    too long (the next look may have them). ``active``: it has recorded something within the last
    second. ``folder`` is where its dumps lie, None where that is unknown here.
    """

    root: Candidate
    members: tuple[Candidate, ...]
    kernels: int = 0
    launches: int = 0
    bytes: int = 0
    active: bool = False
    folder: Path | None = None

    @property
    def method(self) -> WatchMethod:
        """Return the best method by which any of its processes can be watched."""
        methods = [process.method for process in (self.root, *self.members)]
        return next(method for method in WatchMethod if method in methods)

    @property
    def begun(self) -> bool:
        """Tell whether any of its processes has recorded anything that can be read."""
        return any(process.dumps for process in (self.root, *self.members))


@dataclass(frozen=True)
class FinishedRecording:
    """Describe a recording in FLAME_DIR that no process writes any more: the dumps of one job.

    ``kernels``: -1 where counting would take too long.
    """

    dumps: tuple[Path, ...]
    name: str
    pids: tuple[int, ...]
    age: float
    bytes: int
    kernels: int


@dataclass(frozen=True)
class Discovery:
    """Hold all that was discovered to attach to: jobs that record first, newest first.

    ``notes``: what could not be looked at, a line each.
    """

    jobs: tuple[Job, ...]
    finished: tuple[FinishedRecording, ...]
    notes: tuple[str, ...] = ()


# What processes are called


def job_name(process: str, command: Sequence[str]) -> str:
    """Name a job: by its script or module, else by what its first process calls itself.

    ``process`` is that as the system has it, ``command`` the words it was started with, or a single
    title that it has given itself.
    """
    if not command:
        return process
    title = command[0].split(maxsplit=1)
    if len(title) > 1:  # "nginx: master process /usr/sbin/nginx"
        return title[0].rstrip(":")
    return recording_name(command)


def is_flame(command: Sequence[str]) -> bool:
    """Tell whether these words run flame: a Python with its script, or with ``-m flame``."""
    words = iter(command[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif word in ("-c", "-m"):
            return word == "-m" and next(words, "") == _FLAME
        elif not word.startswith("-"):
            return word.rpartition("/")[2] == _FLAME
    return False


def short_command(command: str) -> str:
    """Write ``command`` on one line, its program without the folder."""
    program, *words = command.split() or [""]
    return " ".join([program.rpartition("/")[2], *words])
