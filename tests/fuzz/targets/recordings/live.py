"""Dumps that are followed while they grow, chunk by chunk and within chunks."""

from __future__ import annotations

from contextlib import closing

from flame.core.errors import InputError
from flame.core.live.feed import RecordingFeed
from flame.core.live.window import WINDOWS
from flame.core.options import LoadOptions
from tests.fuzz import dump_pieces
from tests.fuzz.checks import FoundError, folder, sum_of_leaves
from tests.fuzz.dump_pieces import CELL, HEADER_ROOM
from tests.fuzz.target import Target
from tests.fuzz.targets.recordings import fdump
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumpfile import START
from tests.support.writers.fdumprecords import HEADER

_STATE = 11
"""Field of the header; 0: the program is still running."""


def check(data: bytes) -> None:
    pieces = dump_pieces.unpack(data)
    with closing(RecordingFeed(LoadOptions(), lambda: START + 10**9)) as feed:
        stages = [*(_growing(pieces[:count]) for count in range(1, len(pieces))), pieces]
        for stage in stages[-6:]:
            _follow(feed, dump_pieces.build(stage))
        for window in WINDOWS if feed.sources else ():
            profile = feed.snapshot(window).profile
            for metric in profile.metrics:
                sum_of_leaves(project_tree(profile, metric=metric.key))
        _check_notes(feed)


def _growing(pieces: list[bytes]) -> list[bytes]:
    """The pieces so far of a program that runs; the last one is half there."""
    head, last = pieces[0], pieces[-1]
    if len(head) >= HEADER.size:
        fields = list(HEADER.unpack_from(head))
        fields[7], fields[_STATE] = HEADER_ROOM + CELL * (len(pieces) - 1), 0
        head = HEADER.pack(*fields) + head[HEADER.size :]
    return [head, *pieces[1:-1], *([last[: len(last) // 2]] if len(pieces) > 1 else [])]


def _follow(feed: RecordingFeed, data: bytes) -> None:
    path = folder() / "growing.fdump"
    with path.open("r+b" if feed.sources else "wb") as file:
        file.write(data)
        file.truncate()
    try:
        feed.add(path)
    except InputError as error:
        if not str(error).startswith(f"{path}: ") or len(str(error).splitlines()) != 1:
            raise FoundError(str(error)) from error
    feed.update()


def _check_notes(feed: RecordingFeed) -> None:
    status = feed.status()
    for note in (*status.notes, *(note for one in feed.sources for note in one.warnings())):
        if len(note.splitlines()) != 1:
            raise FoundError(f"not one line: {note!r}")


def room(data: bytes) -> int:
    """All stages are written and read."""
    return 6 * fdump.room(data)


TARGET = Target("live", fdump.seeds, check, dump_pieces.mutate, 1 << 13, room)
