"""List what can be attached to, as a table for people and as JSON for scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from flame.attach.discover.dump_counts import UNKNOWN
from flame.attach.discover.model import (
    Candidate,
    Discovery,
    FinishedRecording,
    Job,
    WatchMethod,
    short_command,
)
from flame.core.shown_text import cells, cut, printable
from flame.core.units import format_age, format_bytes, format_count

_METHODS = {
    WatchMethod.DUMP: "recording",
    WatchMethod.REMOTE: "loadable",
    WatchMethod.CPU: "cpu",
    WatchMethod.NONE: "none",
}
"""As scripts read them."""
_LONGEST = 30
_NOTHING = """\
nothing here records, and nothing runs that could be watched.
record a program with: flame record -- CMD
"""
_JOB = ("", "pid", "name", "user", "age", "processes", "kernels", "size", "how", "command")
_FINISHED = ("", "pid", "ended", "age", "processes", "kernels", "size", "dump")
_RIGHT = {"pid", "age", "processes", "kernels", "size"}


def as_json(discovery: Discovery) -> str:
    """Return the contract of ``flame attach --list --json``."""
    facts = {
        "jobs": [_job(job) for job in discovery.jobs],
        "ended": [_finished(recording) for recording in discovery.finished],
        "notes": list(discovery.notes),
    }
    return json.dumps(facts, indent=2) + "\n"


def _job(job: Job) -> dict[str, object]:
    root = job.root
    return {
        **_process(root),
        "command": root.command,
        "active": job.active,
        "kernels": _known(job.kernels),
        "launches": _known(job.launches),
        "bytes": job.bytes,
        "folder": None if job.folder is None else str(job.folder),
        "processes": [_process(process) for process in job.members],
    }


def _process(process: Candidate) -> dict[str, object]:
    return {
        "pid": process.pid,
        "parent": process.parent,
        "name": process.name,
        "user": process.user,
        "age_s": round(process.age, 1),
        "way": _METHODS[process.method],
        "denied": process.denied,
        "dumps": list(map(str, process.dumps)),
    }


def _finished(recording: FinishedRecording) -> dict[str, object]:
    return {
        "name": recording.name,
        "pids": list(recording.pids),
        "age_s": round(recording.age, 1),
        "kernels": _known(recording.kernels),
        "bytes": recording.bytes,
        "dumps": list(map(str, recording.dumps)),
    }


def _known(count: int) -> int | None:
    return None if count == UNKNOWN else count


def as_text(discovery: Discovery, width: int, encoding: str) -> str:
    """Write tables of at most ``width`` cells, and the notes below."""
    plain = os.environ.get("FLAME_ASCII") == "1" or "utf" not in encoding.lower()
    dot = "*" if plain else "●"
    parts = []
    if discovery.jobs:
        parts.append(_table(_JOB, [_row(job, dot) for job in discovery.jobs], width))
    if discovery.finished:
        parts.append(_table(_FINISHED, list(map(_finished_row, discovery.finished))))
    if not parts:
        parts.append(_NOTHING)
    if discovery.notes:
        parts.append("".join(f"note: {printable(note)}\n" for note in discovery.notes))
    return "\n".join(parts)


def _row(job: Job, dot: str) -> list[str]:
    root, records = job.root, job.begun
    return [
        dot if job.active else "",
        str(root.pid),
        root.name,
        root.user,
        format_age(root.age),
        format_count(len(job.members)),
        _count(job.kernels) if records else "",
        format_bytes(job.bytes) if records else "",
        how(job),
        short_command(root.command),
    ]


def how(job: Job) -> str:
    """Say in two words how a job can be watched, or why not."""
    if job.method is not WatchMethod.DUMP or job.begun:
        return job.method.value
    return "out of reach" if any(process.denied for process in job.members) else "nothing yet"


def _finished_row(recording: FinishedRecording) -> list[str]:
    pid = str(recording.pids[0])
    number = format_count(len(recording.dumps))
    size = format_bytes(recording.bytes)
    age = f"{format_age(recording.age)} ago"
    return [
        "",
        pid,
        recording.name,
        age,
        number,
        _count(recording.kernels),
        size,
        _dump(recording.dumps),
    ]


def _count(number: int) -> str:
    return "?" if number == UNKNOWN else format_count(number)


def _dump(dumps: Sequence[Path]) -> str:
    return str(dumps[0]) + (f" and {len(dumps) - 1} more" if len(dumps) > 1 else "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> str:
    """Lines with a head; the last column gets what room there is in ``width``."""
    shown = [[printable(cell) for cell in row] for row in [heads, *rows]]
    for row in shown:
        row[:-1] = [cut(cell, _LONGEST) for cell in row[:-1]]
    widths = [max(map(cells, column)) for column in zip(*shown, strict=True)]
    if width is not None:
        rest = sum(widths[:-1]) + 2 * len(widths[:-1])
        widths[-1] = max(width - rest, 0)
    return "".join(f"{_line(heads, row, widths)}\n" for row in shown)


def _line(heads: Sequence[str], row: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for head, cell, width in zip(heads, row, widths, strict=True):
        text = cut(cell, width) if width else ""
        gap = " " * (width - cells(text))
        padded.append(gap + text if head in _RIGHT else text + gap)
    return "  ".join(padded).rstrip()
