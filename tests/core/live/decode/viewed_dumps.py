"""What has been read of a dump that grows, and what a plain reading of it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flame.core.live.decode.batch import DumpBatch, NewCalls
from flame.core.live.decode.growing import GrowingDump
from flame.core.model.frames import Frame, Kind
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from tests.support.oracles.naive_fdump import NONE, Dump, PyFrame, RangeFrame, Row
from tests.support.writers.fdumpfile import API, SIZE, START
from tests.support.writers.fdumprecords import records, stack, text

ALL_AT_ONCE = 1 << 40


class Seen:
    """All rows that a growing dump has given, as the plain reader spells them."""

    def __init__(self, shared: SharedTables, start: int = START) -> None:
        self.shared = shared
        self.start = start
        self._stacks = shared.stacks.build()
        self.batches: list[DumpBatch] = []
        self._calls: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, batch: DumpBatch) -> None:
        """One batch; of the calls with one id the earliest launches."""
        self.batches.append(batch)
        for row in table(batch.calls):
            key = batch.source, row["correlation"]
            known = self._calls.get(key)
            order = (row["start"], -row["end"])
            if known is None or order < (known["start"], -known["end"]):
                self._calls[key] = row

    def work(self) -> list[Row]:
        """GPU activities."""
        return sorted(self._row(b.source, row) for b in self.batches for row in table(b.work))

    def _row(self, source: int, row: dict[str, Any]) -> Row:
        shared = self.shared
        call = self._calls.get((source, row["correlation"])) if row["correlation"] else None
        origin = row if call is None else call
        kind = Kind(row["kind"])
        return Row(
            kind.title,
            shared.frames[row["frame"]].name,
            row["start"] - self.start if row["start"] else 0,
            max(row["end"] - row["start"], 0),
            shared.threads[origin["thread"]].tid if origin["thread"] >= 0 else 0,
            "[no launch recorded]" if call is None else shared.frames[call["frame"]].name,
            tuple(map(python_frame, self.path(origin["python"], row["captured_python"]))),
            tuple(map(range_frame, self.path(origin["nvtx"], row["captured_nvtx"]))),
            shared.devices[row["device"]].id if row["device"] >= 0 else NONE,
            row["stream"],
        )

    def calls(self) -> list[tuple[Any, ...]]:
        """API calls that launch."""
        return self._call_rows([batch.calls for batch in self.batches])

    def others(self) -> list[tuple[Any, ...]]:
        """API calls that launch nothing, without the number that they have not."""
        rows = self._call_rows([batch.others for batch in self.batches])
        return [(*row[:3], *row[4:]) for row in rows]

    def _call_rows(self, tables: Sequence[NewCalls]) -> list[tuple[Any, ...]]:
        return sorted(
            (
                row["start"] - self.start,
                row["end"] - self.start,
                self.shared.threads[row["thread"]].tid,
                row["correlation"],
                self.shared.frames[row["frame"]].name,
                tuple(map(python_frame, self.path(row["python"]))),
                tuple(map(range_frame, self.path(row["nvtx"]))),
            )
            for calls in tables
            for row in table(calls)
        )

    def ended(self) -> list[tuple[int, int, int, tuple[str, ...]]]:
        """Ranges that have ended."""
        found = [self._span(row) for batch in self.batches for row in table(batch.ended)]
        return sorted((start, row["end"] - self.start, *rest) for row, start, *rest in found)

    def open(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Ranges that are open now."""
        return sorted(self._span(row)[1:] for row in table(self.batches[-1].open))

    def _span(self, row: dict[str, Any]) -> tuple[Any, ...]:
        names = tuple(frame.name for frame in self.path(row["nvtx"]))
        return row, row["start"] - self.start, self.shared.threads[row["thread"]].tid, names

    def path(self, *stacks: int) -> list[Frame]:
        """The frames of stacks, one on top of the other."""
        if len(self._stacks) < len(self.shared.stacks):
            self._stacks = self.shared.stacks.build()
        return [self.shared.frames[frame] for one in stacks for frame in self._stacks.path(one)]


def table(rows: Any) -> list[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in vars(rows).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def python_frame(frame: Frame) -> PyFrame:
    return frame.name, frame.file, frame.line, bool(frame.get("captured"))


def range_frame(frame: Frame) -> RangeFrame:
    return frame.name, bool(frame.get("captured"))


class Viewer:
    """Reads the dump at ``path``, which the test writes as it grows."""

    def __init__(self, path: Path, data: bytes, shared: SharedTables | None = None) -> None:
        path.write_bytes(data)
        self.path = path
        self.shared = shared or SharedTables()
        source = len(self.shared.processes)
        self.dump = GrowingDump(DumpBytes(path), str(path), source, self.shared, LoadOptions())
        self.seen = Seen(self.shared)

    def write(self, data: bytes) -> None:
        """As the library does: into the same file, the header last."""
        with self.path.open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), data[SIZE:], SIZE)
            os.pwrite(file.fileno(), data[:SIZE], 0)

    def read(self, most: int = ALL_AT_ONCE, last: bool = False) -> DumpBatch:
        """Read until there is no more; the last batch."""
        while True:
            batch = self.dump.read(most, last)
            self.seen.add(batch)
            if not batch.rest:
                assert self.dump.unread_bytes() == 0
                return batch


@contextmanager
def viewed(data: bytes, shared: SharedTables | None = None) -> Iterator[Viewer]:
    with TemporaryDirectory() as folder:
        viewer = Viewer(Path(folder) / "x.fdump", data, shared)
        try:
            yield viewer
        finally:
            viewer.dump.close()


def expected_calls(path: Path, key: str = "launch") -> list[tuple[Any, ...]]:
    of = records(path)
    apis = {int(r["id"]): text(of, int(r["text"])) for r in of["name"] if r["kind"] == API}
    plain = Dump(path)
    return sorted(
        (
            int(row["start"]) - START,
            int(row["end"]) - START,
            int(row["tid"]),
            *((int(row["correlation"]),) if key == "launch" else ()),
            apis[int(row["api"])],
            plain._python(int(row["python"]), False),
            tuple((name, False) for name, *_ in stack(of, int(row["nvtx"]))),
        )
        for row in of[key]
    )


def expected_ranges(path: Path, key: str) -> list[tuple[Any, ...]]:
    of = records(path)
    return sorted(
        (
            int(row["start"]) - START,
            *((int(row["end"]) - START,) if key == "range" else ()),
            int(row["tid"]),
            tuple(name for name, *_ in stack(of, int(row["node"]))),
        )
        for row in of[key]
    )


def assert_work_follows_its_calls(seen: Seen, path: Path) -> None:
    exist = {int(row["correlation"]) for row in records(path)["launch"]}
    known: set[int] = set()
    for batch in seen.batches:
        known |= set(batch.calls.correlation.tolist())
        assert set(batch.work.correlation.tolist()) & exist <= known
