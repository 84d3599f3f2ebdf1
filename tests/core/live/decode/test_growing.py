"""Dumps read while they grow: however their growth is cut, the same rows come, each one once."""

from __future__ import annotations

import io
import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import InputError
from flame.core.live.decode import growing
from flame.core.live.decode.batch import DumpBatch, NewCalls
from flame.core.live.decode.growing import GrowingDump
from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, Process
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from flame.core.readers.fdump.layout import RUNNING
from tests.core.readers.fdump.test_oracle import rows_of
from tests.support.oracles.naive_fdump import NONE, Dump, PyFrame, RangeFrame, Row
from tests.support.tiers import deep_except, examples
from tests.support.writers.fdumpfile import API, DEVICE, SIZE, START, THREAD, DumpFile
from tests.support.writers.fdumprecords import records, stack, text
from tests.support.writers.fdumpscripts import Step, recorded, scripts

SECOND = 10**9
ALL_AT_ONCE = 1 << 40
CHUNK_START = 24  # offset in the header of a chunk


class Put(NamedTuple):
    """A record as it is written, and the latest time in the records so far."""

    key: str
    data: bytes
    tid: int
    latest: int


class Film(DumpFile):
    """A dump that can be written as it was after any number of records; chunks know their times."""

    def __init__(self, rows: int | None = None) -> None:
        super().__init__(rows=rows)
        self.puts: list[Put] = []
        self._latest = START
        self._made: list[int] = []

    def record(self, key: str, /, **fields: int) -> None:
        self._latest = max([self._latest, *(fields.get(k, 0) for k in ("start", "end", "time"))])
        super().record(key, **fields)

    def put(self, key: str, data: bytes, tid: int = 0) -> None:
        # Two threads write the vocabulary by turns.
        tid = tid or 1 + len(self.puts) % 2
        self.puts.append(Put(key, data, tid, self._latest))
        super().put(key, data, tid)
        self._made += [self._latest] * (len(self._chunks) - len(self._made))

    def data(self) -> bytes:
        data = bytearray(super().data())
        for number, made in enumerate(self._made):
            struct.pack_into("<Q", data, SIZE * (number + 1) + CHUNK_START, made)
        return bytes(data)

    def after(self, count: int, ended: bool = False) -> bytes:
        """The file after so many records."""
        film = Film(self._rows)
        for one in self.puts[:count]:
            film._latest = one.latest
            film.put(one.key, one.data, one.tid)
        film.ended = ended
        return film.data()

    def with_late_calls(self, late: Sequence[bool]) -> Film:
        """The same, but some calls are written last thing before the next one of their thread."""
        film, waiting = Film(self._rows), dict[int, Put]()
        film._ids = self._ids
        choices = iter(late)
        for one in self.puts:
            before = waiting.pop(one.tid, None) if one.key == "launch" else None
            now = () if one.key == "launch" and next(choices, False) else (one,)
            if not now:
                waiting[one.tid] = one
            for each in (*((before,) if before else ()), *now):
                film._latest = one.latest
                film.put(each.key, each.data, each.tid)
        for one in waiting.values():
            film.put(one.key, one.data, one.tid)
        return film


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


def filmed(script: list[Step], rows: int | None, late: Sequence[bool] = ()) -> Film:
    film = Film(rows)
    recorded(script, film)
    return film.with_late_calls(late)


cuts = st.lists(st.floats(0, 1), max_size=6)


@examples(0.8)
@given(
    scripts, st.sampled_from([None, 1, 3]), cuts, st.lists(st.booleans()), st.sampled_from([1, 700])
)
def test_however_growth_is_cut_the_rows_are_those_of_the_plain_reading(
    script: list[Step], rows: int | None, cuts: list[float], late: list[bool], most: int
) -> None:
    film = filmed(script, rows, late)
    places = sorted(int(cut * len(film.puts)) for cut in cuts)
    with viewed(film.after(0)) as viewer:
        for place in places:
            viewer.write(film.after(place))
            viewer.read(most)
        viewer.write(film.after(len(film.puts), ended=True))
        viewer.read(most)
        assert viewer.seen.work() == sorted(Dump(viewer.path).rows())
        assert viewer.seen.work() == sorted(rows_of(load(viewer.path)))
        assert viewer.seen.calls() == expected_calls(viewer.path)
        assert viewer.seen.others() == expected_calls(viewer.path, "call")
        assert viewer.seen.ended() == expected_ranges(viewer.path, "range")
        assert viewer.seen.open() == expected_ranges(viewer.path, "open_range")
        assert viewer.dump.warnings() == load(viewer.path).warnings[: len(viewer.dump.warnings())]


@examples(0.6)
@given(scripts, cuts, st.lists(st.booleans()), st.sampled_from([1, 300]))
def test_work_never_comes_before_its_call(
    script: list[Step], cuts: list[float], late: list[bool], most: int
) -> None:
    film = filmed(script, 2, late)
    places = sorted(int(cut * len(film.puts)) for cut in cuts)
    with viewed(film.after(0)) as viewer:
        for place in places:
            viewer.write(film.after(place))
            viewer.read(most)
        viewer.write(film.after(len(film.puts), ended=True))
        viewer.read(most)
        assert_work_follows_its_calls(viewer.seen, viewer.path)


def assert_work_follows_its_calls(seen: Seen, path: Path) -> None:
    exist = {int(row["correlation"]) for row in records(path)["launch"]}
    known: set[int] = set()
    for batch in seen.batches:
        known |= set(batch.calls.correlation.tolist())
        assert set(batch.work.correlation.tolist()) & exist <= known


class Racing(DumpBytes):
    """A dump that goes on growing while it is read, by some records with every access."""

    def __init__(self, film: Film, path: Path, speed: int) -> None:
        super().__init__(film.write(path))
        self._film, self._speed, self._count = film, speed, 0
        self._states: dict[int, bytes] = {}

    def size(self) -> int:
        return len(self._now())

    def read(self, offset: int, size: int) -> bytes:
        data = self._now()[offset : offset + size]
        self._count += self._speed
        return data

    def _now(self) -> bytes:
        count = min(self._count // 4, len(self._film.puts))
        if count not in self._states:
            self._states = {count: self._film.after(count, ended=self.over)}
        return self._states[count]

    @property
    def over(self) -> bool:
        return self._count // 4 >= len(self._film.puts)


@examples(0.6)
@given(
    scripts,
    st.sampled_from([None, 1, 3]),
    st.integers(1, 12),
    st.sampled_from([1, 300, 1 << 30]),
    st.lists(st.booleans()),
)
def test_it_may_grow_while_it_is_read(
    script: list[Step], rows: int | None, speed: int, most: int, late: list[bool]
) -> None:
    film = filmed(script, rows, late)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.fdump"
        data = Racing(film, path, speed)
        dump = GrowingDump(data, str(path), 0, SharedTables(), LoadOptions())
        seen = Seen(dump.shared)
        while dump.header.state == RUNNING or dump.unread_bytes():
            seen.add(dump.read(most))
        dump.close()
        film.ended = True
        film.write(path)
        assert seen.work() == sorted(Dump(path).rows())
        assert seen.calls() == expected_calls(path)
        assert seen.others() == expected_calls(path, "call")
        assert seen.ended() == expected_ranges(path, "range")
        assert dump.warnings() == ()
        assert_work_follows_its_calls(seen, path)


def test_in_a_long_dump_all_threads_get_on_together() -> None:
    film = Film(rows=20)
    for row in range(500):
        for tid in (100, 101):
            # One thread launches every time, the other seldom: its chunk lasts for long.
            if tid == 100 or row % 50 == 0:
                film.launch(10 * row, 10 * row + 1, 10 * row + tid, tid=tid)
                film.kernel("k", 10 * row + 2, 10 * row + 3, 10 * row + tid, tid=tid)
    film.ended = False
    with viewed(film.data()) as viewer:
        viewer.read(most=2000)
        given = [b.calls.start for b in viewer.seen.batches if len(b.calls)]
        assert len(given) > 10
        assert all(one.max() <= other.min() for one, other in itertools.pairwise(given))
        assert len(viewer.seen.work()) == 510


def test_where_chunks_have_wrong_times_not_all_waits_for_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "_MOST_WAITING", 100)
    file = DumpFile(rows=20)
    for row in range(500):
        file.launch(10 * row, 10 * row + 1, row + 1)
        file.kernel("k", 10 * row + 2, 10 * row + 3, row + 1, tid=100)
    with viewed(file.data()) as viewer:
        viewer.read(most=2000)
        assert sum(not batch.empty for batch in viewer.seen.batches) > 5
        assert len(viewer.seen.work()) == len(viewer.seen.calls()) == 500


def test_not_very_much_work_waits_for_calls_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "_MOST_WAITING", 100)
    file = DumpFile()
    file.ended = False
    for row in range(101):
        file.kernel("k", 0, 1, row + 1, tid=100)
    with viewed(file.data()) as viewer:
        assert [len(viewer.read().work) for _ in range(2)] == [0, 101]


@pytest.fixture
def film() -> Film:
    """A dump that has not ended, in which call 307 has a name."""
    dump = Film()
    dump.name(API, 307, "cuLaunchKernel")
    dump.ended = False
    return dump


def test_nothing_new_is_nothing(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    with viewed(film.data()) as viewer:
        assert not viewer.read().empty
        assert viewer.read().empty
        assert viewer.read().newest == START + 1


def test_all_columns_are_filled(film: Film) -> None:
    film.name(DEVICE, 1, "NVIDIA H100")
    film.launch(1, 3, 7, api=307)
    film.kernel("gemm", 5, 9, 7, tid=100, device=1, stream=3, grid_x=8, grid_y=1, grid_z=1)
    film.memop(10, 12, 8, kind=1, bytes=64, graph_node=5)
    with viewed(film.data()) as viewer:
        work = viewer.read(last=True).work
        kernel, copied = table(work)
        assert (kernel["start"], kernel["end"], kernel["stream"]) == (START + 5, START + 9, 3)
        assert viewer.shared.devices[kernel["device"]] == Device(1, "NVIDIA H100", 0)
        assert viewer.shared.configs[kernel["config"]].blocks == 8
        assert (kernel["bytes"], copied["bytes"], copied["config"]) == (-1, 64, -1)
        assert (kernel["graph"], copied["graph"]) == (False, True)
        assert work.bytes.dtype == np.int64
        assert work.kind.tolist() == [Kind.KERNEL, Kind.MEMSET]


def test_times_are_of_the_monotonic_clock_and_0_where_the_gpu_said_none(film: Film) -> None:
    film.record("kernel", start=0, end=0)
    film.record("kernel", start=START + 8, end=0)
    with viewed(film.data()) as viewer:
        work = viewer.read().work
        assert list(zip(work.start.tolist(), work.end.tolist(), strict=True)) == [
            (0, 0),
            (START + 8, START + 8),
        ]
        assert [r for r in viewer.dump.warnings() if "2 GPU activities were recorded without" in r]


def test_dumps_share_one_vocabulary(tmp_path: Path) -> None:
    shared = SharedTables()
    viewers = []
    for pid in (100, 200):
        film = Film()
        film.pid = pid
        film.meta("process", f"rank{pid}")
        film.kernel("gemm", 0, 5, 0, python=film.python(("f", "f.py", 1)), tid=pid, grid_x=3)
        viewers.append(Viewer(tmp_path / f"{pid}.fdump", film.data(), shared))
    first, second = (viewer.read() for viewer in viewers)
    assert first.work.frame == second.work.frame
    assert first.work.python == second.work.python
    assert first.work.config == second.work.config
    assert (first.source, second.source) == (0, 1)
    assert shared.processes == [Process(100, "rank100", 0), Process(200, "rank200", 1)]
    assert [thread.process for thread in shared.threads] == [0, 1]
    assert first.work.thread.tolist() + second.work.thread.tolist() == [0, 1]
    assert isinstance(shared.configs[0], LaunchConfig)
    for viewer in viewers:
        viewer.dump.close()


def test_names_may_come_late(film: Film) -> None:
    film.launch(0, 1, 1, api=40, tid=101)
    film.kernel("k", 1, 2, 1, tid=101)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.name(API, 40, "cuMemcpy")
        film.name(THREAD, 101, "loader")
        film.name(DEVICE, 0, "H100")
        film.meta("process", "train")
        film.meta("rank", "3")
        film.launch(3, 4, 2, api=40, tid=101)
        viewer.write(film.data())
        batch = viewer.read()
        assert viewer.shared.frames[batch.calls.frame[0]].name == "cuMemcpy"
        assert [thread.name for thread in viewer.shared.threads] == ["loader"]
        assert viewer.shared.devices == [Device(0, "H100", 0)]
        assert viewer.shared.processes[viewer.dump.process].name == "train"
        assert (viewer.dump.meta().rank, viewer.dump.meta().label) == (3, "train [100]")


# Work and its call


def test_work_waits_until_its_call_has_returned(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    film.kernel("a", 2, 3, 1, tid=100)
    film.kernel("b", 4, 5, 2, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [1]
        film.launch(3, 9, 2, api=307)
        viewer.write(film.data())
        batch = viewer.read()
        assert (batch.work.correlation.tolist(), batch.calls.correlation.tolist()) == ([2], [2])


def test_work_whose_call_was_a_part_of_another_waits_for_a_later_one(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    film.kernel("nested", 4, 5, 3, tid=100)
    with viewed(film.data()) as viewer:
        assert not len(viewer.read().work)
        film.launch(2, 6, 2, api=307)
        viewer.write(film.data())
        assert not len(viewer.read().work)
        film.launch(7, 8, 4, api=307)
        viewer.write(film.data())
        assert viewer.read().work.correlation.tolist() == [3]


def test_correlation_ids_begin_anew(film: Film) -> None:
    film.launch(0, 1, (1 << 32) - 1, api=307)
    film.kernel("k", 4, 5, 2, tid=100)
    with viewed(film.data()) as viewer:
        assert not len(viewer.read().work)
        film.launch(2, 6, 2, api=307)
        viewer.write(film.data())
        assert viewer.read().work.correlation.tolist() == [2]


def test_any_correlation_id_may_be_the_first(film: Film) -> None:
    film.launch(0, 1, 3 << 30, api=307)
    film.kernel("a", 2, 3, 3 << 30, tid=100)
    film.kernel("b", 4, 5, (3 << 30) + 1, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [3 << 30]


@pytest.mark.parametrize("ended", [True, False])
def test_work_that_the_library_saw_no_call_of_waits_for_none(film: Film, ended: bool) -> None:
    film.ended = ended
    film.kernel("unseen", 0, 5, 7)
    film.kernel("without", 5, 8, 0, tid=100)
    film.kernel("waits", 8, 9, 9, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == ([7, 0, 9] if ended else [7, 0])
        assert viewer.read(last=True).work.correlation.tolist() == ([] if ended else [9])


def test_work_does_not_wait_for_ever_and_what_was_too_late_is_said(film: Film) -> None:
    film.kernel("k", 0, 5, 7, tid=100)
    film.launch(3 * SECOND, 3 * SECOND + 1, 3, tid=101, api=307)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [7]
        assert viewer.dump.warnings() == ()
        film.launch(-5, 4 * SECOND, 7, api=307)
        viewer.write(film.data())
        viewer.read()
        assert viewer.dump.warnings() == (
            "1 GPU activity is shown without its call, which took very long",
        )


def test_what_is_read_late_has_not_waited_for_long() -> None:
    film = Film(rows=1)
    film.ended, film.end = False, 9 * SECOND
    film.name(API, 307, "cuLaunchKernel")
    film.launch(0, 1, 1, api=307)
    film.kernel("k", 2, 3, 2, tid=100)
    film.kernel("other", SECOND, SECOND + 1, 0)
    film.launch(1, SECOND + 2, 2, api=307)
    film.launch(9 * SECOND, 9 * SECOND + 1, 3, tid=101, api=307)
    with viewed(film.data()) as viewer:
        viewer.read(most=1)
        assert_work_follows_its_calls(viewer.seen, viewer.path)
        assert viewer.dump.warnings() == ()


# Ranges


def open_ranges(film: Film, *spans: tuple[str, int]) -> Film:
    """``film``, and in its first chunk the ranges that are open now, each in the one before."""
    paths = [[name for name, _ in spans[: depth + 1]] for depth in range(len(spans))]
    known = [(film.range_name(path[-1]), film.nvtx(*path)) for path in paths]
    now = Film()
    now.ended = False
    now.record("open_range", tid=100)
    for (_, start), (name, node) in zip(spans, known, strict=True):
        now.record("open_range", start=START + start, tid=100, name=name, node=node)
    del now._chunks[0][3][0]
    for one in film.puts:
        now.put(one.key, one.data, one.tid)
    return now


def test_open_ranges_are_those_of_now(film: Film) -> None:
    first = open_ranges(film, ("step", 1), ("attn", 2))
    with viewed(first.data()) as viewer:
        viewer.read()
        assert viewer.seen.open() == [(1, 100, ("step",)), (2, 100, ("step", "attn"))]
        # The same number of them, in the same place.
        film.range(["step", "attn"], 2, 5)
        viewer.write(open_ranges(film, ("step", 1), ("mlp", 6)).data())
        viewer.read()
        assert viewer.seen.open() == [(1, 100, ("step",)), (6, 100, ("step", "mlp"))]
        assert viewer.seen.ended() == [(2, 5, 100, ("step", "attn"))]
        viewer.write(open_ranges(film).data())
        viewer.read()
        assert viewer.seen.open() == []


def test_a_range_that_has_ended_is_open_no_more(film: Film) -> None:
    """The library writes a range as ended first, and a moment later it is seen open no more."""
    film.range(["step", "attn"], 2, 5)
    seen = open_ranges(film, ("step", 1), ("attn", 2))
    with viewed(seen.data()) as viewer:
        for _ in range(3):
            viewer.read()
            assert viewer.seen.open() == [(1, 100, ("step",))]


def test_only_push_pop_ranges_come(film: Film) -> None:
    film.range(["pushed"], 0, 5)
    film.range(["started"], 0, 5, kind=1, node=0)
    film.range(["mark"], 3, 3, kind=2, node=0)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert viewer.seen.ended() == [(0, 5, 100, ("pushed",))]


def test_ranges_without_a_path_of_their_own_count_in_those_around_them(film: Film) -> None:
    names = ["r"] * 250
    film.range(names[:249], 0, 9)
    film.range(names, 1, 8)
    # The library gives what is in the 250th range the path of that one.
    film.range(names, 2, 7)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert [len(path) for *_, path in viewer.seen.ended()] == [249]
        assert viewer.dump.warnings() == (
            "2 NVTX ranges are nested too deep: their time counts in the range around them",
        )


def test_ranges_without_times_are_counted_once(film: Film) -> None:
    film.range(["r"], 0, 5)
    film.record("range", start=1 << 60, end=(1 << 60) + 5, tid=100)
    with viewed(film.data()) as viewer:
        for _ in range(2):
            viewer.read()
        assert len(viewer.seen.ended()) == 1
        assert viewer.dump.warnings() == ("1 NVTX range has no time that makes sense: left out",)


def test_payloads_are_kept_as_examples(film: Film) -> None:
    film.range(["r"], 0, 5, payload=7, payload_type=2)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert list(viewer.shared.frames.build().examples.values()) == [("int64 7",)]


# Graphs


def test_a_clone_may_be_seen_before_what_it_was_cloned_from(film: Film) -> None:
    film.graph_node(11, 10, 2, tid=100)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.graph_node(10, 0, 1, tid=100, python=film.python(("capture", "f.py", 1)))
        film.kernel("k", 3, 4, 0, graph_node=11)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["captured_python"])] == ["capture"]


def test_nodes_that_lead_nowhere_have_no_capture(film: Film) -> None:
    film.graph_node(1, 2, 1)
    film.graph_node(2, 1, 2)
    for time, original in ((3, 5), (4, 6)):
        film.graph_node(3, original, time)
    film.graph_node(3, 0, 1, python=film.python(("no", "f.py", 1)))
    for node in (1, 3, 99):
        film.kernel("k", 3, 4, 0, graph_node=node)
    with viewed(film.data()) as viewer:
        work = viewer.read().work
        assert work.graph.all()
        assert not work.captured_python.any()
        assert not work.captured_nvtx.any()


# Files


def test_a_node_may_be_seen_before_its_parent(film: Film) -> None:
    """Where one thread writes the parent and another the child."""
    item = film.frame(("f", "f.py", 1))
    film.record("node", id=8, parent=7, item=item)
    film.record("node", id=9, parent=8, item=item)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.record("node", id=7, parent=0, item=item)
        film.kernel("k", 0, 1, 0, python=9, tid=100)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["python"])] == ["f", "f", "f"]
        assert viewer.dump.warnings() == ()


def test_a_parent_that_never_comes_is_lost(film: Film) -> None:
    film.record("node", id=9, parent=8, item=film.frame(("f", "f.py", 1)))
    with viewed(film.data()) as viewer:
        viewer.read()
        viewer.read()
        assert viewer.dump.warnings() == (
            "1 stack is not whole: [lost] stands for what is missing",
        )
        film.kernel("k", 0, 1, 0, python=9, tid=100)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["python"])] == ["[lost]", "f"]


def test_a_copy_is_the_dump(film: Film) -> None:
    recorded([("push", 100, "step", 0), ("launch", 100, "gemm", 3, False, True)] * 4, film)
    for ended in (False, True):
        film.ended = ended
        with viewed(film.data()) as viewer:
            viewer.path.unlink()
            copy = io.BytesIO()
            viewer.dump.copy_to(copy)
            assert copy.getvalue() == film.data()


def test_a_copy_has_no_room_made_ahead_and_nothing_that_is_not_committed(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    data = film.data()
    with viewed(data + bytes(20 * SIZE)) as viewer:
        with viewer.path.open("r+b") as file:
            file.seek(len(data) - 100)
            file.write(b"half a record")
        copy = io.BytesIO()
        viewer.dump.copy_to(copy)
        assert copy.getvalue() == data


class Rewritten(DumpBytes):
    """A dump that changes after some accesses."""

    def __init__(self, path: Path, before: bytes, after: bytes, count: int) -> None:
        path.write_bytes(before)
        super().__init__(path)
        self._next, self._left = after, count

    def read(self, offset: int, size: int) -> bytes:
        self._left -= 1
        if self._left == 0:
            with os.fdopen(os.open(f"/proc/self/fd/{self._file}", os.O_RDWR), "wb") as file:
                file.write(self._next)
        return super().read(offset, size)


def test_a_copy_knows_what_its_open_ranges_are_called(film: Film, tmp_path: Path) -> None:
    before = open_ranges(film, ("step", 1)).data()
    after = open_ranges(film, ("evaluation", 6)).data()
    found: set[tuple[Any, ...]] = set()
    for count in range(100):
        data = Rewritten(tmp_path / "x.fdump", before, after, count)
        dump = GrowingDump(data, "x.fdump", 0, SharedTables(), LoadOptions())
        copy = io.BytesIO()
        dump.copy_to(copy)
        dump.close()
        with viewed(copy.getvalue()) as viewer:
            viewer.read()
            found.add(*viewer.seen.open())
    assert found == {(1, 100, ("step",)), (6, 100, ("evaluation",))}


def test_damage_stays_in_a_copy(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    film.ended = True
    data = bytearray(film.data())
    data[SIZE : SIZE + 2] = b"XX"
    with viewed(bytes(data)) as viewer:
        copy = io.BytesIO()
        viewer.dump.copy_to(copy)
        assert copy.getvalue() == bytes(data)


def test_a_descriptor_is_enough(film: Film, tmp_path: Path) -> None:
    film.kernel("k", 0, 5, 0)
    path = film.write(tmp_path / "x.fdump")
    descriptor = os.open(path, os.O_RDONLY)
    data = DumpBytes(path, descriptor)
    os.close(descriptor)
    path.unlink()
    dump = GrowingDump(data, str(path), 0, SharedTables(), LoadOptions())
    assert len(dump.read().work) == 1
    dump.close()


@pytest.mark.parametrize("content", [b"", b"FLAMEDMP", b"SQLite format 3\0" * 100])
def test_what_is_no_dump_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.fdump"
    path.write_bytes(content)
    data, shared = DumpBytes(path), SharedTables()
    with pytest.raises(InputError, match=r"x\.fdump: "):
        GrowingDump(data, str(path), 0, shared, LoadOptions())
    assert shared.processes == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        data.size()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.fdump")
    with pytest.raises(InputError, match="not a regular file"):
        DumpBytes(tmp_path / "x.fdump")


def test_a_dump_written_over_by_another_is_refused(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    with viewed(film.data()) as viewer:
        viewer.read()
        other = DumpFile(101, start=START + 5)
        viewer.path.write_bytes(other.data())
        with pytest.raises(InputError, match="another dump has been written over it"):
            viewer.read()


def test_a_dump_that_is_cut_off_is_told_so(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.kernel("k", 5, 7, 0)
        size = len(film.data()) - SIZE
        viewer.write(film.data())
        os.truncate(viewer.path, size)
        assert viewer.read().empty
        assert [one for one in viewer.dump.warnings() if one.startswith("cut off: ")]
        os.truncate(viewer.path, 10)
        with pytest.raises(InputError, match="cut off within its header"):
            viewer.read()


@pytest.mark.parametrize("seed", deep_except([0], range(4)))
def test_whatever_bits_flip_while_it_grows_it_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    choose = np.random.default_rng(seed)
    film = filmed([("launch", 100, "gemm", 3, False, True), ("capture", 100, 2, 2)] * 6, 3)
    for number in range(30):
        viewer = Viewer(tmp_path / f"{number}.fdump", film.after(20))
        viewer.read(100)
        data = bytearray(film.after(len(film.puts)))
        ends = [at + more for at in range(SIZE, len(data), SIZE) for more in range(64 + 96)]
        places = choose.choice([*range(12, 80), *ends], size=choose.integers(1, 20))
        for place in places.tolist():
            data[place] ^= 1 << int(choose.integers(8))
        viewer.write(bytes(data))
        try:
            viewer.read(100, last=True)
        except InputError as error:
            assert "\n" not in str(error)
        viewer.dump.close()


def test_a_file_of_endless_nothing_is_soon_read(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    film.ended = True
    with viewed(film.data()) as viewer:
        os.truncate(viewer.path, 1 << 42)
        viewer.read()
        assert len(viewer.seen.work()) == 1
