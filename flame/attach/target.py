"""Resolve what a user names (a pid, a name, a file, a folder) into what to attach to."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.finished import read_header
from flame.attach.discover.model import Candidate, Discovery, FinishedRecording, Job, WatchMethod
from flame.attach.discover.permission import explain
from flame.attach.discover.proc import command_of
from flame.core.errors import InputError, UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.names.secrets import mask_secrets
from flame.core.readers.fdump.folder import SUFFIX, list_dumps
from flame.core.units import format_age
from flame.record.folder import SUFFIX as RECORDING

_LIST = "flame attach --list shows what there is"
_MOST = 8
_PID = lazy_regex(r"[0-9]{1,10}")
_SCRIPT = lazy_regex(r"\.(py|sh)$")


@dataclass(frozen=True)
class AttachTarget:
    """Name what to attach to.

    ``pids`` have the dumps, or get what it takes to be watched, ``root`` first if it is one of
    them. All dumps in ``folder`` belong to it. ``ended``: nothing more will come.
    """

    title: str
    method: WatchMethod
    root: int = 0
    pids: tuple[int, ...] = ()
    dumps: tuple[Path, ...] = ()
    folder: Path | None = None
    ended: bool = False


def target_of_job(job: Job) -> AttachTarget:
    """Return a job as a target; InputError where it can be watched in no way."""
    method = job.method
    if method is WatchMethod.NONE:
        raise InputError(f"{job.root.pid}: {not_recorded(job.root)}")
    if method is WatchMethod.DUMP:
        return _recorded(job.root, job.members)
    pids = tuple(process.pid for process in job.members if process.method is method)
    return AttachTarget(_title(job.root), method, job.root.pid, pids)


def _recorded(root: Candidate, members: Sequence[Candidate]) -> AttachTarget:
    dumps = tuple(path for process in members for path in process.dumps)
    denied = next((process.denied for process in members if process.denied), "")
    if denied and not dumps:
        raise InputError(f"{root.pid}: {denied}")
    pids = tuple(process.pid for process in members)
    return AttachTarget(_title(root), WatchMethod.DUMP, root.pid, pids, dumps)


def target_of_finished(recording: FinishedRecording) -> AttachTarget:
    """Return a finished recording as a target."""
    return AttachTarget(
        recording.name, WatchMethod.DUMP, pids=recording.pids, dumps=recording.dumps, ended=True
    )


def _title(process: Candidate) -> str:
    return f"{process.name} [{process.pid}]"


def not_recorded(process: Candidate) -> str:
    """Say what to do about a process that records nothing."""
    # Which are its user's own; of others nothing is known.
    words = command_of(process.pid) if process.command else ()
    command = shlex.join(mask_secrets(words)) if words else "CMD"
    return f"nothing records it ({process.name}); start it with: flame record -- {command}"


def resolve_target(text: str, finder: ProcessFinder) -> AttachTarget:
    """Resolve ``text``: a pid, a dump or the folder of a recording, else a name.

    Raises InputError where there is no such thing, or nothing can be seen of it, and UsageError
    where it means several.
    """
    if _PID.fullmatch(text):
        return _by_pid(int(text), finder)
    path = Path(text)
    kind = _kind(path)
    if stat.S_ISDIR(kind) and (_is_recording(path) or "/" in text):
        return _by_folder(path, finder)
    if text.endswith(SUFFIX) or (stat.S_ISREG(kind) and ("/" in text or _is_dump(path))):
        return _by_file(path, finder)
    if "/" in text:
        raise InputError(f"{text}: no such file or folder, and no process is called so; {_LIST}")
    return _by_name(text, finder)


# By pid


def _by_pid(pid: int, finder: ProcessFinder) -> AttachTarget:
    discovery, process = finder.find(), finder.candidate(pid)
    if process and (members := finder.recorded_below(pid)):
        return _recorded(process, members)
    if job := _distant(pid, discovery):
        return target_of_job(job)
    if pid == os.getpid() or finder.is_flame(pid):
        raise UsageError(f"{pid}: is flame itself; {_LIST}")
    if process and (stopped := finder.stopped(pid)):
        return AttachTarget(_title(process), WatchMethod.DUMP, pid, (pid,), stopped, ended=True)
    if reason := explain(pid):
        raise InputError(f"{pid}: {reason}")
    if process is None:
        raise InputError(f"{pid}: it has ended")
    if process.method is WatchMethod.NONE:
        raise InputError(f"{pid}: {not_recorded(process)}")
    return AttachTarget(_title(process), process.method, pid, finder.loadable(pid))


def _distant(pid: int, discovery: Discovery) -> Job | None:
    """The job of the process if all that is known of it is its dump."""
    return next((job for job in discovery.jobs if job.root.pid == pid and job.root.dumps), None)


# By path


def _kind(path: Path) -> int:
    """The mode of what is there, 0 without anything; InputError where nobody may look."""
    try:
        return path.stat().st_mode
    except PermissionError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (OSError, ValueError):
        return 0


def _is_recording(folder: Path) -> bool:
    """Whether there are dumps in it, or will be: ``flame record`` has made it."""
    return folder.suffix == RECORDING or next(_dumps(folder), None) is not None


def _is_dump(path: Path) -> bool:
    with suppress(InputError):
        return bool(read_header(_followed(path)))
    return False


def _followed(path: Path) -> Path:
    """Where a link leads that the user has named: nobody else's is followed when it is opened."""
    is_link = os.path.islink(path) and path.parts[:2] != ("/", "proc")  # noqa: PTH114 (no errors)
    return Path(os.path.realpath(path)) if is_link else path


def _dumps(folder: Path) -> Iterator[Path]:
    try:
        yield from map(_followed, list_dumps(folder))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _by_folder(folder: Path, finder: ProcessFinder) -> AttachTarget:
    dumps = tuple(_dumps(folder))
    if not dumps and next(folder.iterdir(), None) is not None:
        raise InputError(f"{folder}: is a folder with no dump (*{SUFFIX}) in it; {_LIST}")
    title, ended = folder.absolute().name or str(folder), bool(dumps)
    if dumps:
        finder.find()
        ended = not _any_written(dumps, finder)
    return AttachTarget(title, WatchMethod.DUMP, dumps=dumps, folder=folder, ended=ended)


def _any_written(dumps: Sequence[Path], finder: ProcessFinder) -> bool:
    """Whether one of ``dumps`` is still written; InputError where none of them is one."""
    errors = []
    for path in dumps:
        try:
            if finder.is_written(path):
                return True
        except InputError as error:
            errors.append(error)
    if len(errors) == len(dumps):
        raise errors[0]
    return False


def _by_file(path: Path, finder: ProcessFinder) -> AttachTarget:
    dump = _followed(path)
    header = read_header(dump)
    finder.find()
    ended = not finder.is_written(dump)
    return AttachTarget(path.name, WatchMethod.DUMP, pids=(header.pid,), dumps=(dump,), ended=ended)


# By name


def _by_name(text: str, finder: ProcessFinder) -> AttachTarget:
    jobs = finder.find().jobs
    for matches in (_is_called, _mentions):
        for recorded in (True, False):
            named = [
                job
                for job in jobs
                if (job.root.method is WatchMethod.DUMP) is recorded
                and any(matches(process, text) for process in (job.root, *job.members))
            ]
            if named:
                return target_of_job(_only(text, named))
    pids = finder.called(text)
    if not pids:
        raise InputError(f"{text}: no process is called so, and there is no such file; {_LIST}")
    if len(pids) > 1:
        raise UsageError(f"{text}: {len(pids)} processes are called so: name one by its pid")
    return _by_pid(pids[0], finder)


def _is_called(process: Candidate, text: str) -> bool:
    program = process.command.partition(" ")[0].rpartition("/")[2]
    return text in (process.name, program) or _SCRIPT.sub("", text) == process.name


def _mentions(process: Candidate, text: str) -> bool:
    return text.lower() in process.name.lower()


def _only(text: str, jobs: Sequence[Job]) -> Job:
    if len(jobs) == 1:
        return jobs[0]
    roots = [job.root for job in jobs[:_MOST]]
    listed = ", ".join(f"{root.pid} ({root.name}, {format_age(root.age)})" for root in roots)
    more = ", …" if len(jobs) > _MOST else ""
    raise UsageError(f"{text}: {len(jobs)} jobs are called so, name one by its pid: {listed}{more}")
