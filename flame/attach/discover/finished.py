"""Dumps in the user's folder that no process of this machine has mapped: what has ended."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from flame.attach.discover.dump_counts import Count, Counts, total
from flame.attach.discover.model import Ended
from flame.attach.discover.naming import job_name
from flame.core.errors import InputError
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, piece_of, prefix_errors
from flame.core.readers.fdump.folder import list_dumps
from flame.core.readers.fdump.ids import TextTable
from flame.core.readers.fdump.layout import (
    CHUNK_HEADER,
    HEADER_SIZE,
    RUNNING,
    DumpHeader,
    parse_chunk,
    parse_header,
)
from flame.core.readers.fdump.records import RecordPiece, Records

MOST = 20
"""Recordings that are offered; who wants an older one knows its path."""
_MOST_DUMPS = 500
_PID = re.compile(r"[0-9]{1,10}")
_FIRST_CHUNKS = 64
"""Among these is what a process writes of itself when it begins."""


@dataclass(frozen=True)
class Left:
    """A dump and what its process has said of itself, by key."""

    path: Path
    header: DumpHeader
    facts: dict[str, str]

    @property
    def name(self) -> str:
        """What its process is called."""
        return job_name(self.facts.get("process", ""), self.facts.get("command", "").split())

    @property
    def parent(self) -> int:
        """The pid of the process that started it, 0 if that is unknown."""
        text = self.facts.get("forked_from") or self.facts.get("parent_pid", "")
        return int(text) if _PID.fullmatch(text) else 0

    @property
    def end(self) -> float:
        """When it was last heard of, in seconds since 1970."""
        header = self.header
        alive = max(header.end_monotonic, header.start_monotonic)
        return (header.start_unix + alive - header.start_monotonic) / 1e9


def users_folder() -> Path:
    """Where the library writes if nobody says otherwise to it: FLAME_DIR, or a folder in /tmp."""
    return Path(os.environ.get("FLAME_DIR") or f"/tmp/flame-{os.geteuid()}").absolute()


def distrust(folder: Path) -> str:
    """Why what lies in ``folder`` is not to be believed, empty if nothing speaks against it.

    As the library does: who owns the folder, or can write to it, can change what is in it.
    """
    about = os.lstat(folder)
    if stat.S_ISLNK(about.st_mode):
        return "is a link"
    if os.geteuid() != 0 and about.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    usual = str(folder) == f"/tmp/flame-{os.geteuid()}"
    if usual and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
        return "belongs to another user, or others can write to it"
    return ""


class Folder:
    """The dumps in one folder; what was read of one is kept for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: tuple[str, ...] = ()
        self._known: dict[Path, Left | None] = {}

    def dumps(self) -> list[Left]:
        """All that can be read; ``notes`` says why there is none."""
        paths = self._paths()
        self._known = {path: self._left(path) for path in paths}
        return [one for one in self._known.values() if one]

    def _paths(self) -> list[Path]:
        self.notes = ()
        try:
            if why := distrust(self.path):
                self.notes = (f"{self.path}: {why}: left out",)
                return []
            return list(list_dumps(self.path))[-_MOST_DUMPS:]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.notes = (f"{self.path}: cannot be read: {error.strerror or error}",)
            return []

    def _left(self, path: Path) -> Left | None:
        known = self._known.get(path)
        if known and known.header.state != RUNNING:
            return known
        with suppress(InputError):
            return Left(path, read_header(path), known.facts) if known else read_left(path)
        return None


def read_header(path: Path) -> DumpHeader:
    """The header of a dump; InputError if it is none."""
    with prefix_errors(path), closing(DumpBytes(path)) as data:
        return parse_header(data.read(0, HEADER_SIZE))


def read_left(path: Path) -> Left:
    """The header and the facts of a dump; InputError if it is none."""
    with prefix_errors(path), closing(DumpBytes(path)) as data:
        chunks = Chunks(data)
        return Left(path, chunks.header, _facts(data, chunks))


def _facts(data: DumpBytes, chunks: Chunks) -> dict[str, str]:
    header, keys = chunks.header, {one.type: key for key, one in chunks.layouts.items()}
    pieces: dict[str, list[RecordPiece]] = {}
    for place in range(header.header_size, header.tail, header.chunk_size)[:_FIRST_CHUNKS]:
        chunk = parse_chunk(data.read(place, CHUNK_HEADER), place, header.chunk_size)
        key = keys.get(chunk.type, "") if chunk else ""
        if chunk and key and chunk.record_size == chunks.layouts[key].size:
            pieces.setdefault(key, []).append(piece_of(chunk))
    return _told(chunks.records_in(pieces))


def _told(records: Records) -> dict[str, str]:
    texts = TextTable()
    texts.learn(records)
    table = records.table("meta", ("key", "value"))
    known = texts.look_up(*table.values())
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return {known[key]: known[value] for key, value in rows}


def recordings(left: Sequence[Left], counts: Counts, until: float) -> Iterator[Ended]:
    """What was recorded together, newest first; without what holds nothing at all.

    Counting ends ``until`` then (`time.monotonic`).
    """
    groups = sorted(_groups(left), key=lambda group: -max(one.end for one in group))
    for group in groups[:MOST]:
        counted = counts.count([one.path for one in group], until)
        if not all(one.empty for one in counted.values()):
            yield _ended(group, counted)


def _groups(left: Sequence[Left]) -> list[list[Left]]:
    """Dumps of one job: a process and those that it started, programs that one became, ranks."""
    groups: dict[Hashable, list[Left]] = {}
    keys: dict[int, Hashable] = {}
    for one in sorted(left, key=lambda one: one.header.start_unix):
        pid, parent = one.header.pid, one.parent
        began_it = parent in keys and _alive_at(groups[keys[parent]], one.header.start_unix)
        ranks = ("ranks", parent) if one.facts.get("rank") else None
        again = pid in keys and groups[keys[pid]][-1].parent == parent
        key = keys[parent] if began_it else ranks or (keys[pid] if again else one.path)
        keys[pid] = key
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _alive_at(group: Sequence[Left], unix: int) -> bool:
    return unix / 1e9 <= max(one.end for one in group) + 1


def _ended(group: Sequence[Left], counted: dict[Path, Count]) -> Ended:
    return Ended(
        dumps=tuple(one.path for one in group),
        name=group[0].name,
        pids=tuple(dict.fromkeys(one.header.pid for one in group)),
        age=max(time.time() - max(one.end for one in group), 0.0),
        bytes=sum(one.header.tail for one in group),
        kernels=total(counted.get(one.path, Count()).kernels for one in group),
    )
