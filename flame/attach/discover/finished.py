"""List finished recordings: dumps in the user's folder that no process has mapped."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from flame.attach.discover.dump_counts import DumpCount, DumpCounter, total
from flame.attach.discover.model import FinishedRecording, job_name
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, piece_of, prefix_errors
from flame.core.readers.fdump.folder import list_dumps
from flame.core.readers.fdump.ids import DumpTextTable
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
_PID = lazy_regex(r"[0-9]{1,10}")
_FIRST_CHUNKS = 64
"""Among these is what a process writes of itself when it begins."""


@dataclass(frozen=True)
class DumpInfo:
    """Hold the header of a dump and what its process has said of itself, by key."""

    path: Path
    header: DumpHeader
    facts: dict[str, str]

    @property
    def name(self) -> str:
        """Return what its process is called."""
        return job_name(self.facts.get("process", ""), self.facts.get("command", "").split())

    @property
    def parent(self) -> int:
        """Return the pid of the process that started it, 0 if that is unknown."""
        text = self.facts.get("forked_from") or self.facts.get("parent_pid", "")
        return int(text) if _PID.fullmatch(text) else 0

    @property
    def end(self) -> float:
        """Return when it was last heard of, in seconds since 1970."""
        header = self.header
        alive = max(header.end_monotonic, header.start_monotonic)
        return (header.start_unix + alive - header.start_monotonic) / 1e9


def default_dump_folder() -> Path:
    """Return where the library writes by itself: FLAME_DIR, or a folder in /tmp.

    Where somebody else has made that folder, the library makes one with a name of its own.
    """
    if named := os.environ.get("FLAME_DIR"):
        return Path(named).absolute()
    usual = Path(f"/tmp/flame-{os.geteuid()}")
    with suppress(OSError):
        if reason_to_distrust(usual):
            return min(_private_folders(usual), default=usual)
    return usual


def _private_folders(usual: Path) -> Iterator[Path]:
    """What the library has made of its own beside ``usual``: its name, and six more characters."""
    for folder in usual.parent.glob(f"{usual.name}.??????"):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and _is_only_ours(status):
                yield folder


def _is_only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def reason_to_distrust(folder: Path) -> str:
    """Say why what lies in ``folder`` is not to be believed, empty if nothing speaks against it.

    As the library does: who owns the folder, or can write to it, can change what is in it.
    """
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    if os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if str(folder) == f"/tmp/flame-{os.geteuid()}" and not _is_only_ours(status):
        return "belongs to another user, or others can write to it"
    return ""


class DumpFolder:
    """List the dumps in a folder, keeping what was read of each for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: tuple[str, ...] = ()
        self._known: dict[Path, DumpInfo | None] = {}

    def dumps(self) -> list[DumpInfo]:
        """Return the dumps that can be read; ``notes`` says why there are none."""
        paths = self._paths()
        self._known = {path: self._info(path) for path in paths}
        return [info for info in self._known.values() if info]

    def _paths(self) -> list[Path]:
        self.notes = ()
        try:
            if why := reason_to_distrust(self.path):
                self.notes = (f"{self.path}: {why}: left out",)
                return []
            return list(list_dumps(self.path))[-_MOST_DUMPS:]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.notes = (f"{self.path}: cannot be read: {error.strerror or error}",)
            return []

    def _info(self, path: Path) -> DumpInfo | None:
        known = self._known.get(path)
        if known and known.header.state != RUNNING:
            return known
        with suppress(InputError):
            return DumpInfo(path, read_header(path), known.facts) if known else read_dump_info(path)
        return None


def read_header(path: Path) -> DumpHeader:
    """Read the header of a dump; InputError if it is none, packed, or a link."""
    with prefix_errors(path), closing(DumpBytes(path, foreign=True)) as data:
        return parse_header(data.read(0, HEADER_SIZE))


def read_dump_info(path: Path) -> DumpInfo:
    """Read the header and the facts of a dump; raises as `read_header`."""
    with prefix_errors(path), closing(DumpBytes(path, foreign=True)) as data:
        chunks = Chunks(data)
        return DumpInfo(path, chunks.header, _facts(data, chunks))


def _facts(data: DumpBytes, chunks: Chunks) -> dict[str, str]:
    header, keys = chunks.header, {layout.type: key for key, layout in chunks.layouts.items()}
    pieces: dict[str, list[RecordPiece]] = {}
    for place in range(header.header_size, header.tail, header.chunk_size)[:_FIRST_CHUNKS]:
        chunk = parse_chunk(data.read(place, CHUNK_HEADER), place, header.chunk_size)
        key = keys.get(chunk.type, "") if chunk else ""
        if chunk and key and chunk.record_size == chunks.layouts[key].size:
            pieces.setdefault(key, []).append(piece_of(chunk))
    return _meta(chunks.records_in(pieces))


def _meta(records: Records) -> dict[str, str]:
    texts = DumpTextTable()
    texts.learn(records)
    table = records.table("meta", ("key", "value"))
    known = texts.look_up(*table.values())
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return {known[key]: known[value] for key, value in rows}


def finished_recordings(
    dumps: Sequence[DumpInfo], counter: DumpCounter, until: float
) -> Iterator[FinishedRecording]:
    """Yield what was recorded together, newest first; without what holds nothing at all.

    Counting ends ``until`` then (`time.monotonic`).
    """
    groups = sorted(_groups(dumps), key=lambda group: -max(dump.end for dump in group))
    for group in groups[:MOST]:
        counted = counter.count([dump.path for dump in group], until)
        if not all(count.empty for count in counted.values()):
            yield _recording(group, counted)


def _groups(dumps: Sequence[DumpInfo]) -> list[list[DumpInfo]]:
    """Dumps of one job: a process and those that it started, programs that one became, ranks."""
    groups: dict[Hashable, list[DumpInfo]] = {}
    keys: dict[int, Hashable] = {}
    for dump in sorted(dumps, key=lambda dump: dump.header.start_unix):
        pid, parent = dump.header.pid, dump.parent
        began_it = parent in keys and _alive_at(groups[keys[parent]], dump.header.start_unix)
        ranks = ("ranks", parent) if dump.facts.get("rank") else None
        again = pid in keys and groups[keys[pid]][-1].parent == parent
        key = keys[parent] if began_it else ranks or (keys[pid] if again else dump.path)
        keys[pid] = key
        groups.setdefault(key, []).append(dump)
    return list(groups.values())


def _alive_at(group: Sequence[DumpInfo], unix: int) -> bool:
    return unix / 1e9 <= max(dump.end for dump in group) + 1


def _recording(group: Sequence[DumpInfo], counted: dict[Path, DumpCount]) -> FinishedRecording:
    return FinishedRecording(
        dumps=tuple(dump.path for dump in group),
        name=group[0].name,
        pids=tuple(dict.fromkeys(dump.header.pid for dump in group)),
        age=max(time.time() - max(dump.end for dump in group), 0.0),
        bytes=sum(dump.header.tail for dump in group),
        kernels=total(counted.get(dump.path, DumpCount()).kernels for dump in group),
    )
