"""``flame attach`` without the app: the list, ending a recording, and what the app then follows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flame.attach.discover.finder import Finder
from flame.attach.discover.model import Ended, Job, Way
from flame.attach.library.control import Control
from flame.attach.listing import as_json, as_text
from flame.attach.target import Target, choose, not_recorded, of_ended, of_job
from flame.attach.watch import Watch
from flame.console.terminal import say
from flame.core.errors import InputError, UsageError
from flame.core.readers.fdump.tally import Tally
from flame.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from flame.attach.pyspy.feed import CpuFeed
    from flame.core.live.feed import LiveFeed
    from flame.core.options import LoadOptions


@dataclass(frozen=True)
class Attached:
    """What the app follows: ``watch`` finds what comes to the ``feed``; None where nothing does."""

    feed: LiveFeed | CpuFeed
    watch: Watch | None
    title: str
    ended: bool


def listing(json: bool, width: int, encoding: str) -> str:
    """What can be attached to, as JSON or as text of ``width`` cells."""
    found = Finder()()
    return as_json(found) if json else as_text(found, width, encoding)


def target_of(what: str | Job | Ended) -> Target:
    """What the user has named, or chosen from the list; raises as `choose` and `of_job`."""
    if isinstance(what, str):
        return choose(what, Finder(count=False))
    return of_ended(what) if isinstance(what, Ended) else of_job(what)


def attach(target: Target, options: LoadOptions) -> Attached:
    """Get at what ``target`` records; a Python without the library is given it, or sampled.

    InputError where that cannot be done, UsageError without a library to give.
    """
    if target.way is Way.CPU:
        return _sampled(target)
    from flame.core.live.feed import LiveFeed

    dumps = _loaded(target) if target.way is Way.REMOTE else target.dumps
    watch = Watch(_watched(target), dumps, target.folder)
    if target.ended:
        say(f"{target.title}: its recording has ended, nothing more will come")
    return Attached(LiveFeed(options), watch, target.title, target.ended)


def _watched(target: Target) -> set[int]:
    """The processes whose children belong to it; none where files were named."""
    return {target.root, *target.pids} if target.root else set()


def _loaded(target: Target) -> tuple[Path, ...]:
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
    for one in errors:
        say(f"not recorded: {one}")
    return tuple(dumps)


def _sampled(target: Target) -> Attached:
    from flame.attach.pyspy.feed import CpuFeed

    try:
        feed = CpuFeed(target.root)
    except UsageError as error:
        finder = Finder(count=False)
        finder()
        one = finder.candidate(target.root)
        how = not_recorded(one) if one else "it has ended"
        raise InputError(f"{target.root}: {how}; without the GPU, {error}") from None
    say(f"{target.title}: no library is in it: Python stacks only, nothing of the GPU")
    return Attached(feed, None, feed.title, ended=False)


# Ending a recording


def stop(what: str) -> int:
    """End what ``what`` records, and say what that is; the exit code. Raises as `choose`."""
    target = target_of(what)
    if target.ended:
        say(f"{target.title}: its recording has ended already")
        return 0
    if target.way is not Way.DUMP or not target.dumps:
        raise InputError(f"{target.title}: records nothing")
    left = [dump for dump in target.dumps if not _stop(dump)]
    done = [dump for dump in target.dumps if dump not in left]
    if done:
        say(f"stopped {target.title}: {_recorded(done)}; see it with: {_view(done, target)}")
    if left:
        raise InputError(
            f"{_some(left)}: nobody answers beside it: end the process to end its recording"
        )
    return 0


def _stop(dump: Path) -> bool:
    control = Control.open(dump)
    if control is None:
        return False
    with closing(control):
        return control.stop()


def _recorded(dumps: Sequence[Path]) -> str:
    counts = []
    for dump in dumps:
        with closing(Tally(dump)) as tally:
            counts.append(tally.update())
    processes = "1 process" if len(dumps) == 1 else f"{len(dumps):,} processes"
    kernels = format_count(sum(one.kernels for one in counts))
    ranges = format_count(sum(one.ranges for one in counts))
    size = format_bytes(sum(one.bytes for one in counts))
    return f"{processes}, {kernels} kernels, {ranges} ranges, {size}"


def _view(dumps: Sequence[Path], target: Target) -> str:
    paths = [target.folder] if target.folder else dumps
    return shlex.join(["flame", "view", *map(str, paths)])


def _some(dumps: Sequence[Path]) -> str:
    return f"{dumps[0]}" + (f" and {len(dumps) - 1} more" if len(dumps) > 1 else "")
