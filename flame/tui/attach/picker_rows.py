"""Compose the rows of jobs and ended recordings, and what choosing one comes to."""

from __future__ import annotations

from flame.attach.discover.model import (
    Candidate,
    FinishedRecording,
    Job,
    WatchMethod,
    short_command,
)
from flame.attach.listing import how
from flame.core.errors import UsageError
from flame.core.model.frames import Kind
from flame.core.units import format_age, format_bytes, format_count, format_counted, format_short
from flame.tui.toolkit.dialog import CURSOR
from flame.tui.toolkit.lines import Line, Piece, line_width
from flame.tui.toolkit.list_screen import Column, fitting, prose, right
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, width_of

Item = Job | FinishedRecording
"""What can be picked."""

ACTIVE, QUIET = "●", "○"
"""A job that records: it has done so within the last second, or not."""

TERMS = (
    (ACTIVE, "has recorded something within the last second"),
    (QUIET, "records, but nothing in the last second"),
    (WatchMethod.DUMP.value, "started with flame record: GPU work is there from its start"),
    (WatchMethod.REMOTE.value, "CPython 3.14 or 3.15: enter loads the library into it"),
    (WatchMethod.CPU.value, "another Python: py-spy samples its stacks, without the GPU"),
    ("nothing yet", "it will record from its first CUDA call or NVTX range on"),
    (WatchMethod.NONE.value, "cannot be watched: start it with flame record -- CMD"),
)
"""What the list says of jobs, and what that means."""

_PID = 9
_NAME = 22
"""Cells that the name keeps when columns are chosen."""

_WATCHED = {
    WatchMethod.REMOTE: (
        "enter loads the library into it: GPU work and Python stacks from now on, no NVTX"
    ),
    WatchMethod.CPU: (
        "enter samples its Python stacks, without the GPU; flame record -- CMD has both"
    ),
}


def members(job: Job) -> tuple[Candidate, ...]:
    """Return all processes of ``job``, its root first."""
    return (job.root, *(process for process in job.members if process.pid != job.root.pid))


def pids_of(item: Item) -> tuple[int, ...]:
    """Return the processes of ``item``, the first one first."""
    if isinstance(item, FinishedRecording):
        return item.pids
    return tuple(process.pid for process in members(item))


def refusal(item: Item) -> str:
    """Tell why ``item`` cannot be attached to; empty where it can."""
    if isinstance(item, FinishedRecording) or item.begun or any(map(_is_open, members(item))):
        return ""
    reasons = [process.denied for process in members(item) if process.denied]
    return reasons[0] if reasons else "not recorded: start it with flame record -- CMD"


def _is_open(process: Candidate) -> bool:
    return process.method is not WatchMethod.NONE and not process.denied


def matches(item: Item, text: str) -> bool:
    """Tell whether all words of ``text`` stand somewhere in the row of ``item``."""
    if isinstance(item, FinishedRecording):
        parts = [item.name, "ended", *map(str, item.dumps)]
    else:
        parts = [how(item)]
        for process in members(item):
            parts += [process.name, process.command, process.user]
    row = " ".join([*map(str, pids_of(item)), *parts]).lower()
    return all(word in row for word in text.lower().split())


# Rows


def heads(width: int) -> Line:
    """Return the titles of the columns that fit ``width``."""
    titles = "".join(column.title.rjust(column.width) for column in _columns(width))
    name = "name".ljust(width - _PID - 3 - len(titles))
    return [Piece(cut_start(f"{'pid':>{_PID}}   {name}{titles}", width), "dim")]


def row(item: Item, selected: bool, palette: Palette, width: int) -> Line:
    """Return one line of ``width`` cells."""
    columns = _columns(width)
    cells = "".join(right(column.cell(item), column.width) for column in columns)
    pid = str(next(iter(pids_of(item)), ""))
    line = [
        Piece(f"{CURSOR if selected else ' '}{pid:>{_PID - 1}} "),
        _light(item, palette),
        Piece(" "),
    ]
    line += _named(item, width - line_width(line) - width_of(cells))
    line.append(Piece(cells))
    if selected:
        return [piece._replace(tone=palette.cursor) for piece in line]
    tone = "dim" if refusal(item) else ""
    return [piece._replace(tone=piece.tone or tone) for piece in line]


def _light(item: Item, palette: Palette) -> Piece:
    if isinstance(item, FinishedRecording) or item.method is not WatchMethod.DUMP:
        return Piece(" ")
    return Piece(ACTIVE, palette.ink(Kind.NVTX)) if item.active else Piece(QUIET, "dim")


def _named(item: Item, width: int) -> Line:
    """The name, and behind it the command as far as there is room, without its middle."""
    name, command = (item.name, "") if isinstance(item, FinishedRecording) else _called(item.root)
    first = cut(name, width)
    rest = width - width_of(first) - 2
    second = "  " + cut(command, rest) if command and rest > 0 else ""
    line = [Piece(first), Piece(second, "dim")]
    return [*line, Piece(" " * max(width - line_width(line), 0))]


def _called(process: Candidate) -> tuple[str, str]:
    """Its name and command, the program without its folder; one of them if they say the same."""
    command = short_command(process.command)
    named = process.name and process.name != command.partition(" ")[0]
    return (process.name, command) if named else (command, "")


def _columns(width: int) -> list[Column[Item]]:
    """Those that fit ``width`` cells, left to right."""
    return fitting(_COLUMNS, _WANTED, width - _PID - 3 - _NAME)


def _user(item: Item) -> str:
    return "" if isinstance(item, FinishedRecording) else item.root.user


def _age(item: Item) -> str:
    return format_age(item.age if isinstance(item, FinishedRecording) else item.root.age)


def _processes(item: Item) -> str:
    return format_count(len(pids_of(item)))


def _kernels(item: Item) -> str:
    recorded = isinstance(item, FinishedRecording) or item.begun
    return format_short(item.kernels) if recorded and item.kernels >= 0 else ""


def _way(item: Item) -> str:
    return format_bytes(item.bytes) if isinstance(item, FinishedRecording) else how(item)


_COLUMNS: tuple[Column[Item], ...] = (
    Column("user", 10, _user),
    Column("age", 9, _age),
    Column("procs", 7, _processes),
    Column("kernels", 9, _kernels),
    Column("way", 15, _way),
)
_WANTED = (4, 3, 1, 2, 0)
"""The columns, the one that a narrow screen keeps longest first."""


# In words


def about(item: Item) -> str:
    """Return what choosing ``item`` comes to."""
    if isinstance(item, FinishedRecording):
        dumps = format_counted(len(item.dumps), "dump", "dumps")
        return f"enter opens it: {dumps}, {item.dumps[0].parent}"
    if item.method is not WatchMethod.DUMP:
        return _WATCHED[item.method]
    if not item.begun:
        return "enter waits for its first CUDA call or NVTX range: nothing is recorded before"
    launches = format_counted(item.launches, "launch", "launches")
    recorded = [launches] if item.launches >= 0 else []
    place = f" in {item.folder}" if item.folder else ""
    return f"enter watches it: {', '.join([*recorded, format_bytes(item.bytes)])} so far{place}"


def nothing(width: int) -> list[Line]:
    """Return what to do where there is nothing to attach to."""
    from flame.record.environment import INJECTIONS, library_path

    text = "Nothing to attach to: no program here records, and there is no Python to sample."
    lines = prose(text, "", width, 3)
    lines += [[], *prose("flame record -- CMD", "key", width)]
    lines += prose("runs CMD, and records it from its start on", "dim", width)
    try:
        library = library_path()
    except UsageError as error:
        return [*lines, [], *prose(str(error), "warning", width, 4)]
    how = "Where the command cannot change, set in its environment before it starts:"
    lines += [[], *prose(how, "", width), []]
    for name in INJECTIONS:
        lines += prose(f"{name}={library}", "key", width, 3)
    return lines
