"""Carry out ``flame attach`` without the app: list, get at a recording, end it, sample it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.model import FinishedRecording, Job, WatchMethod
from flame.attach.library.control import Control, SamplingReply
from flame.attach.listing import as_json, as_text
from flame.attach.target import (
    AttachTarget,
    not_recorded,
    resolve_target,
    target_of_finished,
    target_of_job,
)
from flame.attach.watch import DumpWatch
from flame.console.terminal import say
from flame.core.errors import InputError, UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.readers.fdump.tally import Tally
from flame.core.units import format_bytes, format_counted

if TYPE_CHECKING:
    from flame.attach.pyspy.feed import CpuFeed
    from flame.core.live.feed import RecordingFeed
    from flame.core.options import LoadOptions

_NOT_SAMPLED = "no GPU work of it is recorded"

_LISTENS = 1.0
"""Seconds until a process listens, at most; its dump is there a moment before."""


@dataclass(frozen=True)
class Attached:
    """Hold what the app follows: a feed, and a watch for its new dumps, if any can come."""

    feed: RecordingFeed | CpuFeed
    watch: DumpWatch | None
    title: str
    ended: bool


def listing(json: bool, width: int, encoding: str) -> str:
    """List what can be attached to, as JSON or as text of ``width`` cells."""
    discovery = ProcessFinder().find()
    return as_json(discovery) if json else as_text(discovery, width, encoding)


def target_of(what: str | Job | FinishedRecording) -> AttachTarget:
    """Return what the user has named, or chosen from the list, as a target.

    Raises as `resolve_target` and `target_of_job`.
    """
    if isinstance(what, str):
        return resolve_target(what, ProcessFinder(count=False))
    return target_of_finished(what) if isinstance(what, FinishedRecording) else target_of_job(what)


def attach(target: AttachTarget, options: LoadOptions) -> Attached:
    """Get at what ``target`` records; a Python without the library is given it, or sampled.

    InputError where that cannot be done, UsageError without a library to give.
    """
    if target.method is WatchMethod.CPU:
        return _sampled(target)
    from flame.core.live.feed import RecordingFeed

    dumps = _loaded(target) if target.method is WatchMethod.REMOTE else target.dumps
    watch = DumpWatch(_watched(target), dumps, target.folder)
    if target.ended:
        say(f"{target.title}: its recording has ended, nothing more will come")
    return Attached(RecordingFeed(options), watch, target.title, target.ended)


def _watched(target: AttachTarget) -> set[int]:
    """The processes whose children belong to it; none where files were named."""
    return {target.root, *target.pids} if target.root else set()


def _loaded(target: AttachTarget) -> tuple[Path, ...]:
    """The dumps of its processes, which load the library; InputError if none of them can."""
    from flame.attach.library.remote_exec import load

    say(f"{target.title}: loading the library: GPU work and Python frames from now on, no NVTX")
    dumps, errors = [], []
    for pid in target.pids:
        try:
            dumps.append(load(pid))
        except InputError as error:
            errors.append(error)
    if not dumps:
        raise errors[0]
    for failure in errors:
        say(f"not recorded: {failure}")
    return tuple(dumps)


def _sampled(target: AttachTarget) -> Attached:
    from flame.attach.pyspy.feed import CpuFeed

    try:
        feed = CpuFeed(target.root)
    except UsageError as error:
        finder = ProcessFinder(count=False)
        finder.find()
        process = finder.candidate(target.root)
        how = not_recorded(process) if process else "it has ended"
        raise InputError(f"{target.root}: {how}; without the GPU, {error}") from None
    say(f"{target.title}: no library is in it: Python stacks only, nothing of the GPU")
    return Attached(feed, None, feed.title, ended=False)


# Ending a recording


def stop(what: str) -> int:
    """End what ``what`` records, and say what that is; the exit code.

    Raises as `resolve_target`.
    """
    target = target_of(what)
    if target.ended:
        say(f"{target.title}: its recording has ended already")
        return 0
    if target.method is not WatchMethod.DUMP or not target.dumps:
        raise InputError(f"{target.title}: records nothing")
    until = time.monotonic() + _LISTENS
    left = [dump for dump in target.dumps if not _stop(dump, until)]
    done = [dump for dump in target.dumps if dump not in left]
    if done:
        say(f"stopped {target.title}: {_recorded(done)}; see it with: {_view(done, target)}")
    if left:
        raise InputError(
            f"{_some(left)}: nobody answers beside it: end the process to end its recording"
        )
    return 0


def _stop(dump: Path, until: float) -> bool:
    control = _open_control(dump, until)
    if control is None:
        return False
    with closing(control):
        return control.stop()


def _open_control(dump: Path, until: float) -> Control | None:
    """Connect to the process that writes ``dump``, which may have just begun to; else None."""
    while (control := Control.open(dump)) is None and time.monotonic() < until:
        time.sleep(0.02)
    return control


def _recorded(dumps: Sequence[Path]) -> str:
    counts = []
    for dump in dumps:
        with closing(Tally(dump, foreign=True)) as tally:
            counts.append(tally.update())
    processes = format_counted(len(dumps), "process", "processes")
    kernels = format_counted(sum(count.kernels for count in counts), "kernel", "kernels")
    ranges = format_counted(sum(count.ranges for count in counts), "range", "ranges")
    size = format_bytes(sum(count.bytes for count in counts))
    return f"{processes}, {kernels}, {ranges}, {size}"


def _view(dumps: Sequence[Path], target: AttachTarget) -> str:
    paths = [target.folder] if target.folder else dumps
    return shlex.join(["flame", "view", *map(str, paths)])


def _some(dumps: Sequence[Path]) -> str:
    return f"{dumps[0]}" + (f" and {len(dumps) - 1} more" if len(dumps) > 1 else "")


# PC sampling


def switch_sampling(target: AttachTarget, mode: str) -> int:
    """Switch the PC sampling of all its processes to ``mode``, and say what came of each.

    The exit code: not 0 where one of them refused, or none records GPU work. InputError where
    nothing is recorded at all.
    """
    if target.ended:
        raise InputError(f"{target.title}: its recording has ended")
    if target.method is not WatchMethod.DUMP or not target.dumps:
        raise InputError(f"{target.title}: records nothing")
    until = time.monotonic() + _LISTENS
    done = [_switch(dump, mode, until) for dump in target.dumps]
    return InputError.exit_code if False in done or True not in done else 0


def _switch(dump: Path, mode: str, until: float) -> bool | None:
    """Whether it was done; None for a process that has nothing to be sampled."""
    control = _open_control(dump, until)
    if control is None:
        say(f"{dump}: nobody answers beside it")
        return False
    with closing(control):
        status = control.status()
        if status is not None and not status.cupti:
            say(f"{control.pid}: {_NOT_SAMPLED}")
            return None
        reply = control.sample(mode)
        say(f"{control.pid}: {_came_of(reply, mode)}")
        return reply is not None and reply.ok


def _came_of(reply: SamplingReply | None, mode: str) -> str:
    if reply is None:
        return "no answer: look again, or it is recorded by another version of flame"
    if not reply.ok:
        return reply.error or "refused"
    if mode == "off":
        return "PC sampling is off"
    if not reply.contexts:
        return f"PC sampling ({mode}) begins with its first launch"
    contexts = format_counted(reply.contexts, "context", "contexts")
    return f"PC sampling ({mode}) in {contexts}"
