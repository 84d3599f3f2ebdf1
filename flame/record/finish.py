"""What a recording holds, in a few lines on stderr: the command has ended, its exit code stands."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from flame.console.terminal import cut, printable, say
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.units import format_bytes, format_count, format_ns, format_percent
from flame.record.options import Plan
from flame.record.totals import Dumps, Totals

if TYPE_CHECKING:
    from flame.core.model.profile import Profile
    from flame.core.sampling.attach import SampleTotals

_LARGEST = 500_000_000
"""Bytes: 4 s of reading, which is as long as a person waits for five lines."""
_LEAST = 1_000_000
"""Bytes that every dump takes at once, and something more."""
_MOST_NAMES = 3
_LONGEST_NAME = 40
_MOST_NOTES = 3
_MOST_PIDS = 8
_DETACHED = {
    "sudo": "sudo flame record",
    "su": "su -c 'flame record …'",
    "docker": "docker run … flame record",
    "podman": "podman run … flame record",
    "ssh": "ssh HOST flame record",
}
"""Programs that do not hand their environment on, and where flame has to stand instead."""


def tell(plan: Plan, folder: Path, elapsed: int) -> None:
    """Say what lies in ``folder`` after ``elapsed`` ns; with ``--quiet`` only what went wrong."""
    with closing(Dumps(folder)) as dumps:
        totals = dumps.update()
    left = [pid for pid in totals.open if _records_to(pid, folder)]
    if totals.empty:
        say(_nothing(plan, folder, totals, goes_on=bool(left)))
    elif not plan.quiet:
        say(f"recorded {folder}: {totals.text}, in {format_ns(elapsed)}")
    elif totals.dropped or totals.full:
        say(f"{folder} is not all: {totals.text}")
    if left:
        some = ", ".join(map(str, left[:_MOST_PIDS])) + ", …" * (len(left) > _MOST_PIDS)
        say(f"processes that the command left behind still record (pid {some})")
    notes = [] if totals.empty else _keep_instructions(folder, plan.quiet)
    if not totals.empty and not plan.quiet:
        _tell_content(folder, totals, notes)


def _nothing(plan: Plan, folder: Path, totals: Totals, goes_on: bool) -> str:
    program = Path(plan.command[0]).name
    if totals.dropped or _is_full(folder):
        return f"nothing was recorded: there was no room for it in {folder}"
    if goes_on:
        return "nothing was recorded so far"
    if totals.dumps:
        what = "CUDA or NVTX was loaded, but nothing was launched and no range was opened"
        if totals.stopped:
            what += " before the time was over"
    elif program in _DETACHED:
        what = f"{program} does not hand the environment on: use '{_DETACHED[program]} …' instead"
    else:
        what = (
            "no process of the command called CUDA or NVTX, or none could load the library "
            "(static, setuid, in a container, with an injection of its own)"
        )
    return f"nothing was recorded: {what}; 'flame doctor' checks this machine"


def _is_full(folder: Path) -> bool:
    """Whether a dump could not even be begun there."""
    try:
        return shutil.disk_usage(folder).free < _LEAST
    except OSError:
        return False


def _records_to(pid: int, folder: Path) -> bool:
    """Whether the process lives and has a dump in ``folder`` mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text("utf-8", "surrogateescape")
    except OSError:
        return False
    return f"{folder.resolve()}/" in maps


def _keep_instructions(folder: Path, quiet: bool) -> list[str]:
    from flame.console.progress import progress_on_stderr
    from flame.record.instructions import keep_instructions

    if quiet:
        return keep_instructions(folder)
    with progress_on_stderr() as progress:
        return keep_instructions(folder, progress)


def _tell_content(folder: Path, totals: Totals, notes: Sequence[str]) -> None:
    """Say what is in it; ``notes`` are what reading it says as well."""
    view = f"flame view {shlex.quote(str(folder))}"
    if totals.bytes > _LARGEST:
        for note in notes:
            say(f"note: {note}")
        say(f"{format_bytes(totals.bytes)} are too much for a quick summary; see: {view}")
        return
    for line in _lines(_load(folder), folder):
        say(line)
    say(f"see it with: {view}")


def _load(folder: Path) -> Profile:
    from flame.console.progress import progress_on_stderr
    from flame.core.loading.many import load_all

    with progress_on_stderr() as progress:
        return load_all([folder], progress=progress)


def _lines(profile: Profile, folder: Path) -> Iterator[str]:
    from flame.core.sampling.attach import count_samples

    yield _amount(profile)
    if top := _top(profile):
        yield f"most of it: {', '.join(top)}"
    if profile.gpu_time:
        yield f"coverage of GPU time: {', '.join(_coverage(profile))}"
    if (found := count_samples(profile)) is not None:
        yield _sampled(found)
    notes = profile.warnings
    yield from (f"note: {note}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        rest = len(notes) - _MOST_NOTES
        what = "note" if rest == 1 else "notes"
        yield f"{rest} more {what}: flame info {shlex.quote(str(folder))}"


def _amount(profile: Profile) -> str:
    from flame.console.info import gpus

    number = len(profile.activities)
    if not number:
        return (
            f"nothing ran on a GPU; host time in ranges and calls {format_ns(_host_time(profile))}"
        )
    where = f" on {gpus(profile.devices)}" if profile.devices else ""
    return f"GPU time {format_ns(profile.gpu_time)} in {format_count(number)} activities{where}"


def _sampled(found: SampleTotals) -> str:
    samples, places = format_count(found.samples), format_count(found.instructions)
    return f"{samples} PC samples at {places} instructions"


def _host_time(profile: Profile) -> int:
    return int(profile.host.duration.sum())


def _top(profile: Profile) -> list[str]:
    """The names with most GPU time (host time in ranges where no GPU was used), with shares."""
    if len(profile.activities):
        tree = project(profile, select("kernel", metric="gpu"))
    else:
        tree = project(profile, select("nvtx", metric="host"))
    whole = int(tree.total[0])
    own: dict[str, int] = {}
    for node in range(1, len(tree)):
        own[tree.name(node)] = own.get(tree.name(node), 0) + int(tree.own[node])
    names = sorted(own, key=lambda name: -own[name])[:_MOST_NAMES]
    return [f"{_short(name)} {format_percent(own[name], whole)}" for name in names if own[name]]


def _short(name: str) -> str:
    return cut(printable(name), _LONGEST_NAME)


def _coverage(profile: Profile) -> Sequence[str]:
    from flame.core.analysis.wording import coverage_of

    shares = coverage_of(profile).values()
    return [f"{title} {format_percent(share.ns, profile.gpu_time)}" for title, share in shares]
