"""Finish a recording when its command has ended: keep instructions, say what was recorded."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flame.console.terminal import say
from flame.core.errors import InputError
from flame.core.options import silent
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.shown_text import cut, printable
from flame.core.units import format_bytes, format_counted, format_ns, format_percent
from flame.record.plan import Plan
from flame.record.totals import RecordedDumps, RecordingTotals

if TYPE_CHECKING:
    from flame.core.analysis.trace_summary import TraceSummary
    from flame.core.model.profile import Profile
    from flame.core.sass.module_lives import Cubins

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


def report_recording(plan: Plan, folder: Path, elapsed: int) -> None:
    """Report what lies in ``folder`` after ``elapsed`` ns; if quiet, only what went wrong."""
    totals = _totals(folder)
    left = _left_behind(totals, folder)
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


def sum_up_ranks(plan: Plan, folder: Path) -> None:
    """Write a summary beside each dump of a rank; if quiet, say only what went wrong."""
    from flame.console.progress import progress_on_stderr
    from flame.record.rank_summaries import dumps_of_ranks, write_summaries

    dumps = dumps_of_ranks(folder, _left_behind(_totals(folder), folder))
    if not dumps:
        return
    with nullcontext(silent) if plan.quiet else progress_on_stderr() as progress:
        found = write_summaries(dumps, progress)
    for line in found.lines:
        say(line)
    if found.written and not plan.quiet:
        ranks = format_counted(found.written, "rank", "ranks")
        output = shlex.quote(f"{folder.stem}.flamesum")
        say(f"{ranks} summed up; see all with: flame ranks {shlex.quote(str(folder))} -o {output}")


def _totals(folder: Path) -> RecordingTotals:
    with closing(RecordedDumps(folder)) as dumps:
        return dumps.update()


def _left_behind(totals: RecordingTotals, folder: Path) -> list[int]:
    """List the processes that still record."""
    return [pid for pid in totals.open if _records_to(pid, folder)]


def _nothing(plan: Plan, folder: Path, totals: RecordingTotals, goes_on: bool) -> str:
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
            "(static, setuid, in a container, with an injection of its own) or make its file "
            "(FLAME_DEBUG=1 says why)"
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
    within = os.fsencode(f"{folder.resolve()}/")
    with suppress(OSError), Path(f"/proc/{pid}/maps").open("rb") as lines:
        return any(within in line for line in lines)
    return False


def _keep_instructions(folder: Path, quiet: bool) -> list[str]:
    """Put the text of sampled instructions beside their cubins, so that any machine can show them.

    Return notes on instructions that have no text.
    """
    from flame.console.progress import progress_on_stderr
    from flame.core.sass.disassembly import CUBINS, store_codes

    if not (folder / CUBINS).is_dir():
        return []
    try:
        with nullcontext(silent) if quiet else progress_on_stderr() as progress:
            return store_codes(folder, _sampled_functions(folder), progress)
    except OSError as error:
        reason = error.strerror or error
        return [f"instructions cannot be kept in {folder / CUBINS}: {reason}"]


def _sampled_functions(folder: Path) -> dict[Cubins, set[str]]:
    """The functions that the dumps in ``folder`` have sampled, by the cubins they may be of."""
    from flame.core.readers.fdump.folder import list_dumps
    from flame.core.readers.fdump.samples import read_sampled_functions

    functions: dict[Cubins, set[str]] = {}
    for dump in list_dumps(folder):
        with suppress(InputError):  # Whoever opens it is told.
            for cubins, names in read_sampled_functions(dump).items():
                functions.setdefault(cubins, set()).update(names)
    return functions


def _tell_content(folder: Path, totals: RecordingTotals, notes: Sequence[str]) -> None:
    """Say what is in it; ``notes`` are what reading it says as well."""
    view = f"flame view {shlex.quote(str(folder))}"
    if totals.bytes > _LARGEST:
        for note in notes:
            say(f"note: {note}")
        say(f"{format_bytes(totals.bytes)} are too much for a quick summary; see: {view}")
        return
    for line in _lines(_load(folder), folder):
        say(line)
    if totals.memory:
        say(f"whose memory it was at the peak: {view} --metric peak")
    say(f"see it with: {view}")


def _load(folder: Path) -> Profile:
    from flame.console.progress import progress_on_stderr
    from flame.core.loading.many import load_all

    with progress_on_stderr() as progress:
        return load_all([folder], progress=progress)


def _lines(profile: Profile, folder: Path) -> Iterator[str]:
    from flame.core.analysis.trace_summary import summarize

    summary = summarize(profile)
    yield _amount(profile, summary)
    if top := _top(profile):
        yield f"most of it: {', '.join(top)}"
    if summary.gpu_time:
        yield f"coverage of GPU time: {', '.join(_coverage(summary))}"
    if (samples := summary.pc_samples) is not None:
        number = format_counted(samples.samples, "PC sample", "PC samples")
        places = format_counted(samples.instructions, "instruction", "instructions")
        yield f"{number} at {places}"
    notes = summary.warnings
    yield from (f"note: {note}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        rest = len(notes) - _MOST_NOTES
        more = format_counted(rest, "more note", "more notes")
        yield f"{more}: flame info {shlex.quote(str(folder))}"


def _amount(profile: Profile, summary: TraceSummary) -> str:
    from flame.console.trace_words import gpus

    number = format_counted(summary.activities, "activity", "activities")
    if not summary.activities:
        host_time = format_ns(_host_time(profile))
        return f"nothing ran on a GPU; host time in ranges and calls {host_time}"
    devices = f" on {gpus(summary.devices)}" if summary.devices else ""
    return f"GPU time {format_ns(summary.gpu_time)} in {number}{devices}"


def _host_time(profile: Profile) -> int:
    return int(profile.host.duration.sum())


def _top(profile: Profile) -> list[str]:
    """The names with most GPU time (host time in ranges where no GPU was used), with shares."""
    if len(profile.activities):
        tree = project(profile, select("kernel", metric="gpu", kernel_names="short"))
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


def _coverage(summary: TraceSummary) -> Sequence[str]:
    shares = summary.titled_coverage.values()
    return [f"{title} {format_percent(share.ns, summary.gpu_time)}" for title, share in shares]
