"""Dumps that somebody has made to do harm, followed: bounded memory and time, and one line."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.live.decode import growing
from flame.core.live.feed import RecordingFeed
from flame.core.live.status import SourceState
from flame.core.live.sums import groups
from flame.core.live.window import SECOND, WINDOWS
from flame.core.options import LoadOptions
from tests.support.tiers import deep_except
from tests.support.waiting import wait_until
from tests.support.writers.fdumpfile import SIZE, START, TEXT, DumpFile
from tests.support.writers.fdumprecords import CHUNK, MAGIC

HOLES = 1_000
"""Chunks: 64 MB of a file that takes no room on the disk."""
MOST = 24 << 20
TAIL, BEGAN = 40, 32  # offsets in the header
FLIPS = 60


@pytest.fixture
def feed() -> Iterator[RecordingFeed]:
    with closing(RecordingFeed(LoadOptions(), lambda: START)) as one:
        yield one


def growing_dump(pid: int = 100) -> DumpFile:
    dump = DumpFile(pid)
    dump.ended = False
    return dump


def said(feed: RecordingFeed) -> str:
    """Why no more is read."""
    (note,) = feed.status().notes
    (source,) = feed.status().sources
    assert source.state is SourceState.UNREADABLE
    return note.partition(".fdump: ")[2]


def with_holes(path: Path, dump: DumpFile, key: str) -> Path:
    """Chunks that say they are full of records, and hold nothing."""
    number = TEXT if key == "text" else dump.records[key][0]
    size = 0 if key == "text" else sum(int(kind[1]) for _, kind in dump.records[key][1])
    data = dump.data()
    full = (SIZE - 64) // max(size, 1) * max(size, 1)
    with path.open("wb") as file:
        file.write(data)
        for place in range(len(data), len(data) + HOLES * SIZE, SIZE):
            file.seek(place)
            file.write(CHUNK.pack(MAGIC, number, size, SIZE, 1, full, 1, START))
        file.truncate(len(data) + HOLES * SIZE)
        file.seek(TAIL)
        file.write(struct.pack("<Q", len(data) + HOLES * SIZE))
    return path


@pytest.mark.parametrize(
    "key",
    [
        *("text", "frame", "range_name", "node", "name", "meta", "graph_node", "launch", "kernel"),
        *("graph_exec", "module", "module_end", "sample"),
    ],
)
def test_holes_take_no_memory(feed: RecordingFeed, tmp_path: Path, key: str) -> None:
    feed.add(with_holes(tmp_path / "1.fdump", growing_dump(), key))
    tracemalloc.start()
    for _ in range(3):
        feed.update(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST
    assert feed.status().behind > 0


def test_more_open_ranges_than_in_any_program(feed: RecordingFeed, tmp_path: Path) -> None:
    feed.add(with_holes(tmp_path / "1.fdump", growing_dump(), "open_range"))
    feed.update()
    assert said(feed) == "damaged: more ranges are open than in any program"


def test_more_gpus_than_in_any_machine(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = growing_dump()
    for number in range(2_000):
        dump.kernel("gemm", number, number + 1, 0, device=number)
    feed.add(dump.write(tmp_path / "1.fdump"))
    feed.update()
    assert said(feed) == "damaged: it names more than 1,024 GPUs"


def threads(dump: DumpFile) -> None:
    for number in range(1, 200):
        dump.launch(number, number + 1, number, tid=number)


def symbols(dump: DumpFile) -> None:
    for number in range(200):
        dump.kernel(f"gemm{number}", number, number + 1, 0)


def configs(dump: DumpFile) -> None:
    for number in range(200):
        dump.kernel("gemm", number, number + 1, 0, grid_x=number)


def stacks(dump: DumpFile) -> None:
    for number in range(200):
        dump.python(("main", "a.py", 1), ("main", "a.py", number % 20), ("f", "a.py", number // 20))


def names(dump: DumpFile) -> None:
    for number in range(200):
        dump.name(3, number, "worker")


@pytest.mark.parametrize("things", [threads, symbols, configs, stacks, names])
def test_more_names_than_there_is_memory_for(
    feed: RecordingFeed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    things: Callable[[DumpFile], None],
) -> None:
    monkeypatch.setattr(growing, "_MOST_NAMED", 150)
    dump = growing_dump()
    things(dump)
    feed.add(dump.write(tmp_path / "1.fdump"))
    feed.update()
    assert said(feed) == "too much: it names more than 150 different things"


def test_more_combinations_than_there_is_memory_for(
    feed: RecordingFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "_MOST", 150)
    dump = growing_dump()
    for number in range(200):
        dump.kernel("gemm", number, number + 1, 0, stream=number)
    feed.add(dump.write(tmp_path / "1.fdump"))
    feed.update()
    assert said(feed) == "too much: more than 150 combinations of stack, stream and thread"
    assert len(feed.snapshot(WINDOWS[0]).profile.activities) == 0


def test_one_bad_dump_leaves_the_others_alone(feed: RecordingFeed, tmp_path: Path) -> None:
    good = growing_dump(101)
    good.kernel("gemm", 0, 10, 0)
    feed.add(good.write(tmp_path / "2.fdump"))
    feed.add(with_holes(tmp_path / "1.fdump", growing_dump(), "open_range"))
    feed.update()
    states = {one.pid: one.state for one in feed.status().sources}
    assert states == {101: SourceState.RUNNING, 100: SourceState.UNREADABLE}
    assert len(feed.snapshot(WINDOWS[0]).profile.activities) == 1


def test_a_beginning_that_is_no_time(feed: RecordingFeed, tmp_path: Path) -> None:
    data = bytearray(growing_dump().data())
    struct.pack_into("<Q", data, BEGAN, 1 << 63)
    (tmp_path / "1.fdump").write_bytes(data)
    with pytest.raises(InputError, match=r"1\.fdump: damaged: it says that it began at no time"):
        feed.add(tmp_path / "1.fdump")


def test_a_million_notes_are_a_few(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = growing_dump()
    for number in range(30):
        dump.meta("note", f"{number} " + "x" * 3_000)
    for _ in range(1_000):
        dump.meta("note", "again")
    dump.kernel("gemm", 0, 10, 0)
    feed.add(dump.write(tmp_path / "1.fdump"))
    feed.update()
    warnings = feed.snapshot(WINDOWS[0]).profile.warnings
    notes = [one for one in warnings if one.endswith("x…")]
    assert len(notes) == 20 and max(map(len, notes)) == 1_001
    assert "11 more notes in the dump: left out" in warnings


def test_what_found_no_room_is_told_while_it_goes_on(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = growing_dump()
    dump.flags, dump.dropped = 1, 7
    feed.add(dump.write(tmp_path / "1.fdump"))
    feed.update()
    warnings = feed.snapshot(WINDOWS[0]).profile.warnings
    assert "7 records could not be written: there was no more room for them" in warnings


def a_recorded_program(dump: DumpFile) -> DumpFile:
    dump.meta("process", "python")
    dump.name(3, 100, "worker")
    for number in range(1, 9):
        place = ("main", "train.py", number % 3)
        nodes = {"python": dump.python(place), "nvtx": dump.nvtx("epoch", f"step {number % 2}")}
        dump.launch(number * 1000, number * 1000 + 100, number, **nodes)
        dump.graph_node(number, number // 2, number * 1000, tid=100, **nodes)
        dump.kernel(
            "gemm", number * 1000 + 200, number * 1000 + 700, number, graph_node=number, **nodes
        )
        dump.memop(number * 1000 + 200, number * 1000 + 300, number, bytes=8)
        dump.range(("epoch",), number * 1000, number * 1000 + 900)
    dump.open_range(("epoch",), 500)
    return dump


def damaged(data: bytes, chance: random.Random) -> bytes:
    """``data`` with a few numbers that are others."""
    result = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        chunk = chance.randrange(len(data) // SIZE)
        place = chunk * SIZE + 8 * chance.randrange(80 if chunk else 10)
        if chance.random() < 0.5:
            result[place] ^= 1 << chance.randrange(8)
        else:
            edges = (0, 1, (1 << 31) - 1, (1 << 32) - 1, 1 << 53, (1 << 63) - 1, (1 << 64) - 1)
            struct.pack_into("<Q", result, place, chance.choice(edges))
    return bytes(result[: chance.randrange(len(data))] if chance.random() < 0.1 else result)


@pytest.mark.parametrize("seed", deep_except(range(10), range(FLIPS)))
def test_whatever_becomes_of_it_while_it_is_watched_nothing_breaks(
    tmp_path: Path, seed: int
) -> None:
    chance, path = random.Random(seed), tmp_path / "1.fdump"
    data = a_recorded_program(growing_dump()).data()
    with closing(RecordingFeed(LoadOptions(), lambda: START + SECOND)) as feed:
        for turn in range(4):
            # The same file goes on: it is not replaced.
            with path.open("r+b" if turn else "wb") as file:
                file.write(data if turn == 0 and seed % 2 else damaged(data, chance))
                file.truncate()
            with suppress(InputError):
                feed.add(path)
            feed.update()
            for window in WINDOWS:
                profile = feed.snapshot(window).profile
                assert len(profile.activities.start) == len(profile.activities)
            feed.status()


def about(pid: int) -> list[str]:
    """What the kernel says of a process after its name: the state, the parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def state_of(pid: int) -> str:
    """T: stopped by a signal, which takes a moment after it was sent."""
    return about(pid)[0]


def test_a_process_that_is_halted(tmp_path: Path) -> None:
    path = tmp_path / "1.fdump"
    path.write_bytes(growing_dump().data())
    code = "import mmap, sys; file = open(sys.argv[1], 'r+b'); here = mmap.mmap(file.fileno(), 0)"
    command = [sys.executable, "-c", f"{code}; print(flush=True); input()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        started = about(process.pid)[19]
        dump = DumpFile(process.pid, start=int(started) * 10_000_000)
        dump.ended = False
        with path.open("r+b") as file:
            file.write(dump.data())
        now = dump.start + SECOND
        with closing(RecordingFeed(LoadOptions(), lambda: now)) as feed:
            feed.add(path)
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: state_of(process.pid) == "T")
            for _ in range(2):
                feed.update()
                now += 10 * SECOND
            feed.update()
            halted = feed.status()
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: state_of(process.pid) != "T")
            now += 10 * SECOND
            feed.update()
            going_on = feed.status()
        process.communicate(b"\n")
    assert halted.halted and halted.running == 1
    assert "stopped by a signal" in halted.notes[0]
    assert not going_on.halted and not going_on.notes
