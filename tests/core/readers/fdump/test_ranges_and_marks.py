"""Ranges and marks of a dump, their payloads and categories; those that are open."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import Chunks
from flame.core.readers.fdump.records import AT_ONCE
from tests.core.readers.fdump.read_dumps import SYMBOL, names, read, stack
from tests.support.writers.fdumpfile import CATEGORY, SIZE, THREAD, DumpFile

OPEN_RANGE, COMMITTED_AT = 9, 16
"""A type of chunks; the place of a field in their headers."""


def test_marks_and_start_end_ranges_are_events(file: DumpFile, tmp_path: Path) -> None:
    file.name(THREAD, 7, "loader")
    file.launch(20, 30, 1, api=307)
    file.kernel(SYMBOL, 40, 50, 1)
    file.range(["Python GC"], 10, 50, kind=1)
    file.range(["epoch"], 15, 15, kind=2, tid=7)
    file.range(["step"], 0, 90)
    before = read(file, tmp_path)
    assert before.events is not None and not before.events.in_ranges
    found = before.events
    rows = zip(found.style.tolist(), found.name, found.thread, found.start, found.end, strict=True)
    assert [
        (style, *found.names[name], found.threads[thread].tid, int(start), int(end))
        for style, name, thread, start, end in rows
    ] == [(1, "Python GC", "", 100, 10, 50), (0, "epoch", "", 7, 15, 15)]
    threads = {thread.tid: thread for thread in found.threads}
    assert (threads[7].name, threads[7].thread, threads[100].thread) == ("loader", -1, 0)
    assert [thread.tid for thread in before.threads] == [100]
    both = read(file, tmp_path, LoadOptions(nvtx_start_end=True)).events
    assert both is not None and both.in_ranges


def test_without_marks_there_are_no_events(file: DumpFile, tmp_path: Path) -> None:
    file.range(["step"], 0, 90)
    assert read(file, tmp_path).events is None


def test_events_without_a_time_are_left_out(file: DumpFile, tmp_path: Path) -> None:
    file.range(["mark"], -file.start, 5, kind=2)
    file.range(["mark"], 7, 3, kind=1, tid=(1 << 32) - 1)
    found = read(file, tmp_path).events
    assert found is not None
    assert (found.start.tolist(), found.end.tolist()) == ([7], [7])


def test_marks_are_no_ranges_and_start_end_ranges_only_on_request(
    file: DumpFile, tmp_path: Path
) -> None:
    file.range(["free"], 10, 50, kind=1)
    file.range(["mark"], 15, 15, kind=2)
    file.launch(20, 22, 1, api=307)
    file.kernel("a", 30, 40, 1, tid=100)
    assert names(read(file, tmp_path), "nvtx") == []
    assert not read(file, tmp_path).host.nvtx.any()
    assert names(read(file, tmp_path, LoadOptions(nvtx_start_end=True)), "nvtx") == ["free"]


def test_an_open_range_is_not_taken_for_one_of_another_thread(
    file: DumpFile, tmp_path: Path
) -> None:
    file.range(["step"], 10, 50)
    file.open_range(["step"], 10, tid=101)
    file.launch(90, 91, 1)
    host = read(file, tmp_path).host
    assert int(host.duration[host.nvtx > 0].sum()) == 40 + 81


def test_a_range_that_ends_between_two_looks_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DumpFile()
    file.ended = False
    file.open_range(["step"], 10)
    path, look = file.write(tmp_path / "x.fdump"), Chunks.update
    file.range(["step"], 10, 50)
    closed = bytearray(file.data())
    [place] = (at for at in range(SIZE, len(closed), SIZE) if closed[at + 4] == OPEN_RANGE)
    struct.pack_into("<I", closed, place + COMMITTED_AT, 0)

    def look_and_go_on(chunks: Chunks, beyond_tail: bool = False) -> None:
        look(chunks, beyond_tail)
        path.write_bytes(closed)

    monkeypatch.setattr(Chunks, "update", look_and_go_on)
    assert load(path).host.duration.tolist() == [40]


def test_no_chunk_is_left_out(tmp_path: Path) -> None:
    file, count = DumpFile(rows=1), 2 * AT_ONCE + 1
    for at in range(count):
        file.kernel("a", at, at + 1, 0)
    assert read(file, tmp_path).activities.start.tolist() == list(range(count))


def test_a_range_that_ended_while_the_dump_was_read_is_one(file: DumpFile, tmp_path: Path) -> None:
    file.range(["step"], 10, 50)
    file.open_range(["step"], 10)
    file.launch(90, 91, 1)
    host = read(file, tmp_path).host
    assert int(host.duration[host.nvtx > 0].sum()) == 40


@pytest.mark.parametrize(
    ("kind", "bits", "shown"),
    [
        (1, 7, "uint64 7"),
        (2, struct.unpack("<Q", struct.pack("<q", -7))[0], "int64 -7"),
        (3, struct.unpack("<Q", struct.pack("<d", 0.5))[0], "double 0.5"),
        (5, 0xFFFFFFFE, "int32 -2"),
        (6, struct.unpack("<I", struct.pack("<f", 1.5))[0], "float 1.5"),
    ],
)
def test_payloads_are_examples(
    file: DumpFile, tmp_path: Path, kind: int, bits: int, shown: str
) -> None:
    file.range(["r"], 0, 5, payload_type=kind, payload=bits)
    frames = read(file, tmp_path).frames
    assert list(frames.examples.values()) == [(shown,)]


def test_extended_payloads_are_examples(file: DumpFile, tmp_path: Path) -> None:
    file.range(["r"], 0, 5, payload_text=file.text('{"batch": 3}'))
    frames = read(file, tmp_path).frames
    assert list(frames.examples.values()) == [('{"batch": 3}',)]


def test_categories_belong_to_their_domain(file: DumpFile, tmp_path: Path) -> None:
    file.name(CATEGORY, 3, "io", scope=1)
    file.name(CATEGORY, 3, "other", scope=2)
    node = file.node(0, file.range_name("r", 1, 3), 1)
    file.kernel("a", 0, 1, 0, nvtx=node)
    assert stack(read(file, tmp_path), "nvtx")[0].get("category") == "io"
