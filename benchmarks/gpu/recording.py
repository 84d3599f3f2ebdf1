"""Read what `flame record` has written, as flame does and plainly, record by record."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import flame
from flame.core.model.profile import Profile
from tests.support.writers import fdumprecords

Rows = npt.NDArray[Any]

CHUNK_HEADER = 64
TEXT = struct.Struct("<II")
"""Before each text: its number, and its size in bytes."""
DROP_CAUSES = {1: "disk full", 2: "size limit", 3: "CUPTI", 4: "memory", 5: "names"}
"""See DropCause in inject/dump/dump.h."""
MAXIMA = ("most_", "longest_")
"""How the names of counters begin that are not sums."""


@dataclass(frozen=True)
class Done:
    """Hold how a program ended; a negative ``code`` is a signal."""

    code: int
    out: str
    errors: str
    seconds: float

    def json(self) -> Any:
        """Decode its last line."""
        return json.loads(self.out.strip().splitlines()[-1])


class NothingRecordedError(Exception):
    """A recording has no dump."""


class Recording:
    """What `flame record` has written, below ``folder``; ``done`` says how it ended."""

    def __init__(self, folder: Path, done: Done) -> None:
        self.folder, self.done = folder, done

    @cached_property
    def profile(self) -> Profile:
        """The recording as flame reads it."""
        return flame.load(self.folder).profile

    @property
    def dumps(self) -> list[Path]:
        """Its files, one for each process."""
        return sorted(self.folder.glob("*.fdump"))

    @property
    def size(self) -> int:
        """Bytes of all dumps."""
        return sum(path.stat().st_size for path in self.dumps)

    def rows(self, key: str) -> Rows:
        """Read all records of a kind, of all processes; inject/dump/dump.h has their fields.

        NothingRecordedError where there is no dump.
        """
        if not self.dumps:
            raise NothingRecordedError("nothing was recorded")
        return np.concatenate([rows_of(dump, key) for dump in self.dumps])

    def count(self, key: str) -> int:
        """Count the records of a kind without reading them: they may be gigabytes."""
        return sum(count_of(dump, key) for dump in self.dumps)

    def dropped(self) -> dict[str, int]:
        """Count the records that the library says it could not keep, by cause."""
        found: Counter[str] = Counter()
        for row in self.rows("drop"):
            cause = int(row["cause"])
            found[DROP_CAUSES.get(cause, f"cause {cause}")] += int(row["count"])
        return dict(found)

    def counters(self) -> dict[str, int]:
        """Read the counters that the library keeps of itself, added up over processes.

        Of those that are of the longest or the most, the largest is taken.
        """
        found: dict[str, int] = {}
        for text in self.facts("counters"):
            for key, value in json.loads(text).items():
                most = key.startswith(MAXIMA)
                found[key] = max(found.get(key, 0), value) if most else found.get(key, 0) + value
        return found

    def notes(self) -> list[str]:
        """Read what the library says went wrong."""
        return self.facts("note")

    def facts(self, key: str) -> list[str]:
        """Read the metadata of that key, of all processes."""
        return [value for dump in self.dumps for name, value in metadata(dump) if name == key]


def places(dump: Path, key: str) -> Iterator[tuple[int, int]]:
    """Find the records of a kind: offset and size in bytes of each piece."""
    head, kind = fdumprecords.header(dump), fdumprecords.schema(dump)[key]["type"]
    chunk = fdumprecords.CHUNK
    with dump.open("rb", buffering=0) as file:
        end = min(head["tail"], dump.stat().st_size)
        for at in range(head["header_size"], end, head["chunk_size"]):
            file.seek(at)
            first = file.read(chunk.size)
            if len(first) < chunk.size:
                break
            magic, found, _, _, _, committed, _, _ = chunk.unpack(first)
            if magic == fdumprecords.MAGIC and found == kind:
                yield at + CHUNK_HEADER, committed


def count_of(dump: Path, key: str) -> int:
    """Count the records of a kind."""
    width: int = fdumprecords.schema(dump)[key]["size"]
    return sum(size // width for _, size in places(dump, key))


def pieces(dump: Path, key: str) -> Iterator[bytes]:
    """Read the records of a kind."""
    with dump.open("rb", buffering=0) as file:
        for at, size in places(dump, key):
            file.seek(at)
            yield file.read(size)


def rows_of(dump: Path, key: str) -> Rows:
    """Read the records of a kind as a structured array."""
    layout = fdumprecords.schema(dump)[key]
    fields = [(name, f"<{kind}") for name, kind in layout["fields"]]
    return np.frombuffer(b"".join(pieces(dump, key)), np.dtype(fields))


def metadata(dump: Path) -> Iterator[tuple[str, str]]:
    """Read the facts about the process, as (key, value); a key may come again."""
    texts: dict[int, str] = {}
    for piece in pieces(dump, "text"):
        at = 0
        while at < len(piece):
            number, size = TEXT.unpack_from(piece, at)
            at += TEXT.size
            texts[number] = piece[at : at + size].decode("utf-8", "replace")
            at += (size + 7) // 8 * 8
    for row in rows_of(dump, "meta"):
        yield texts.get(int(row["key"]), ""), texts.get(int(row["value"]), "")
