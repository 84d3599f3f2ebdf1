"""What can be attached to, as a table for people and as JSON for scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from flame.attach.discover.dump_counts import UNKNOWN
from flame.attach.discover.model import Candidate, Ended, Found, Job, Way, short_command
from flame.console.terminal import cells, cut, printable
from flame.core.units import format_age, format_bytes, format_count

_WAYS = {Way.DUMP: "recording", Way.REMOTE: "loadable", Way.CPU: "cpu", Way.NONE: "none"}
"""As scripts read them."""
_LONGEST = 30
_NOTHING = """\
nothing here records, and nothing runs that could be watched.
record a program with: flame record -- CMD
"""
_JOB = ("", "pid", "name", "user", "age", "processes", "kernels", "size", "how", "command")
_ENDED = ("", "pid", "ended", "age", "processes", "kernels", "size", "dump")
_RIGHT = {"pid", "age", "processes", "kernels", "size"}


def as_json(found: Found) -> str:
    """The contract of ``flame attach --list --json``."""
    facts = {
        "jobs": [_job(job) for job in found.jobs],
        "ended": [_ended(one) for one in found.ended],
        "notes": list(found.notes),
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
        "processes": [_process(one) for one in job.members],
    }


def _process(one: Candidate) -> dict[str, object]:
    return {
        "pid": one.pid,
        "parent": one.parent,
        "name": one.name,
        "user": one.user,
        "age_s": round(one.age, 1),
        "way": _WAYS[one.way],
        "denied": one.denied,
        "dumps": list(map(str, one.dumps)),
    }


def _ended(one: Ended) -> dict[str, object]:
    return {
        "name": one.name,
        "pids": list(one.pids),
        "age_s": round(one.age, 1),
        "kernels": _known(one.kernels),
        "bytes": one.bytes,
        "dumps": list(map(str, one.dumps)),
    }


def _known(count: int) -> int | None:
    return None if count == UNKNOWN else count


def as_text(found: Found, width: int, encoding: str) -> str:
    """Tables of at most ``width`` cells, and the notes below."""
    plain = os.environ.get("FLAME_ASCII") == "1" or "utf" not in encoding.lower()
    dot = "*" if plain else "●"
    parts = []
    if found.jobs:
        parts.append(_table(_JOB, [_row(job, dot) for job in found.jobs], width))
    if found.ended:
        parts.append(_table(_ENDED, list(map(_ended_row, found.ended))))
    if not parts:
        parts.append(_NOTHING)
    if found.notes:
        parts.append("".join(f"note: {printable(note)}\n" for note in found.notes))
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
    """In two words how it can be watched, or why not."""
    if job.way is not Way.DUMP or job.begun:
        return job.way.value
    return "out of reach" if any(one.denied for one in job.members) else "nothing yet"


def _ended_row(one: Ended) -> list[str]:
    pid = str(one.pids[0])
    number = format_count(len(one.dumps))
    size = format_bytes(one.bytes)
    age = f"{format_age(one.age)} ago"
    return ["", pid, one.name, age, number, _count(one.kernels), size, _dump(one.dumps)]


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
