"""Reading ranks in processes of this machine."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from flame.core.loading.worker import EndedError
from flame.core.memory import PER_BYTE, MemoryShortError
from flame.core.rank_summary.collective_table import no_collectives
from flame.core.ranks.job import RankFile, lost_part
from flame.core.ranks.summarise import USUAL, RankOptions
from flame.engines.local import LocalEngine
from flame.engines.progress import RankMeter
from tests.engines.conftest import Ranks, room_for
from tests.support.waiting import wait_until
from tests.support.writers.fake_nsys import descendants
from tests.support.writers.gated_nsys import gate, rank_report, write_rank

Read = Callable[..., Any]


def run(read: Read, files: Sequence[RankFile], workers: int, memory: int | None) -> list[str]:
    """Read ``files`` by a function in place of a process; what is lost of them, in order."""
    engine = LocalEngine(workers, memory)
    engine._read_one = read  # type: ignore[method-assign]
    meter = RankMeter(files, lambda stage, done, expected: None)
    with closing(engine):
        parts = [part for parts in engine.read(files, USUAL, meter) for part in parts]
    return [f"{one.path}: {one.reason}" for part in parts for one in part.lost]


class Readings:
    """Knows which files are being read at a time."""

    def __init__(self, fails: Callable[[str], None] = lambda name: None) -> None:
        self.together: list[set[str]] = []
        self._now: set[str] = set()
        self._lock, self._fails = Lock(), fails

    def __call__(self, file: RankFile, options: object, meter: RankMeter) -> Any:
        with self._lock:
            self._now = self._now | {file.path}
            self.together.append(self._now)
        try:
            Event().wait(0.01)
            self._fails(file.path)
            return lost_part(file.path, "read")
        finally:
            with self._lock:
                self._now = self._now - {file.path}


def files_of(**sizes: int) -> list[RankFile]:
    return [RankFile(name, size) for name, size in sizes.items()]


def test_no_more_is_read_at_a_time_than_fits() -> None:
    files = files_of(huge=100, a=6, b=5, c=4, d=4, e=1)
    memory, readings = 10 * PER_BYTE, Readings()
    assert len(run(readings, files, 8, memory)) == 6
    sizes = {file.path: file.size for file in files}
    assert {"huge"} in readings.together
    for names in readings.together:
        assert sum(sizes[name] for name in names) <= 10 or names == {"huge"}
    assert max(map(len, readings.together)) > 1


def test_no_more_are_read_at_a_time_than_there_are_workers() -> None:
    readings = Readings()
    run(readings, files_of(a=1, b=1, c=1, d=1, e=1), 2, None)
    assert max(map(len, readings.together)) == 2


@pytest.mark.parametrize("error", [EndedError, MemoryShortError])
def test_what_fails_beside_others_is_read_once_more_alone(error: type[EndedError]) -> None:
    tries: list[str] = []

    def fail(name: str) -> None:
        tries.append(name)
        if name == "bad" or (name == "unlucky" and tries.count(name) == 1):
            raise error(f"{name}: killed")

    readings = Readings(fail)
    found = run(readings, files_of(bad=9, unlucky=8, a=1, b=1), 4, None)
    assert sorted(found) == ["a: read", "b: read", "bad: killed", "unlucky: read"]
    assert sorted(tries) == ["a", "b", "bad", "bad", "unlucky", "unlucky"]
    assert sorted(map(sorted, readings.together[-2:])) == [["bad"], ["unlucky"]]


def test_the_second_pass_has_what_each_rank_arrived_at() -> None:
    def read(file: RankFile, *_: object) -> Any:
        arrivals: Any = (file.path, file.path * 2)
        return lost_part(file.path, "")._replace(arrivals=arrivals)

    files, engine = files_of(a=1, b=1), LocalEngine(1, None)
    engine._read_one = read  # type: ignore[method-assign, assignment]
    meter: Any = SimpleNamespace(end=lambda file: None)
    with closing(engine):
        list(engine.read(files, USUAL, meter))
        table = no_collectives()
        found = engine.second_pass(lambda one, of: (str(one), of is table), table)
    assert sorted(found) == [("a", True), ("aa", True), ("b", True), ("bb", True)]


def test_collectives_that_have_no_room_end_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def read(file: RankFile, *_: object) -> Any:
        arrivals: Any = (bytes(5_000),)
        return lost_part(file.path, "")._replace(arrivals=arrivals)

    monkeypatch.setattr("flame.engines.local._IN_MEMORY", 1)
    files, engine = files_of(a=1, b=1, c=1), LocalEngine(1, None)
    engine._read_one = read  # type: ignore[method-assign, assignment]
    meter: Any = SimpleNamespace(end=lambda file: None)
    with closing(engine), room_for(9_000):
        assert len([one for one in engine.read(files, RankOptions(), meter) if one]) == 3
        assert list(engine.second_pass(lambda *_: 1, no_collectives())) == []
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert "no room for collectives: File too large" in said[0]


def test_progress_is_told_in_files_and_bytes() -> None:
    told: list[tuple[str, int, int]] = []
    files = files_of(a=3000, b=1000)
    meter = RankMeter(files, lambda *one: told.append(one))
    meter.note(files[0], 0.5)
    meter.note(files[0], 0.4)  # It never goes back.
    meter.tell()
    meter.end(files[0])
    meter.end(files[0])
    meter.say("waiting for workers")
    meter.tell()
    assert told == [
        ("reading 2 files: 0 done, 1.50 kB of 4.00 kB", 1500, 4000),
        ("reading 2 files: 1 done, 3.00 kB of 4.00 kB; waiting for workers", 3000, 4000),
    ]


# Real processes


@pytest.mark.deep
def test_files_that_cannot_be_read_are_named_and_the_rest_is_written(
    ranks: Ranks, tmp_path: Path
) -> None:
    good = [write_rank(tmp_path / f"rank{rank}.sqlite", rank) for rank in range(9)]
    (tmp_path / "empty.sqlite").touch()
    (tmp_path / "text.sqlite").write_text("no trace")
    (tmp_path / "cut.sqlite").write_bytes(good[0].read_bytes()[:5000])
    rank_report(tmp_path / "ends_reader.nsys-rep", 77)
    bad = ["cut.sqlite", "empty.sqlite", "ends_reader.nsys-rep", "missing.sqlite", "text.sqlite"]
    words = ["*.sqlite", "ends_reader.nsys-rep", "missing.sqlite"]
    code, said = ranks(*words, "-o", "x.flamesum", "--strict")
    assert code == 3
    assert [line.split(": ")[1] for line in said[:-1]] == bad
    assert said[-1] == "flame: 5 files cannot be read: x.flamesum is not written (--strict)"
    assert not (tmp_path / "x.flamesum").exists()
    code, told = ranks(*words, "-o", "x.flamesum")
    # What the reader that ended has left behind has the number of another.
    assert "rank0.sqlite are both rank 0" in told.pop(-2)
    assert (code, told[:-1]) == (7, said[:-1])
    assert told[-1] == "flame: wrote x.flamesum: 10 ranks, without 5 files"
    assert ranks(*bad, "-o", "y.flamesum")[0] == 3
    assert not (tmp_path / "y.flamesum").exists()


@pytest.mark.deep
def test_ctrl_c_keeps_what_was_read_and_ends_all(ranks: Ranks, tmp_path: Path) -> None:
    files = [write_rank(tmp_path / f"rank{rank}.sqlite", rank).name for rank in range(9)]
    files.append(rank_report(tmp_path / "gated.nsys-rep", 9).name)
    process = ranks.start(*files, "-o", "x.flamesum", "--workers", "2")
    partial = tmp_path / "x.flamesum.partial"
    wait_until(lambda: any(_is_nsys(one) for one in descendants(process.pid)))
    wait_until(lambda: not any(_reads_a_rank(one) for one in descendants(process.pid)))
    below = descendants(process.pid)
    os.kill(process.pid, signal.SIGINT)
    code, said = ranks.ended(process)
    hint = "name it, too, to go on from there"
    assert (code, said) == (
        130,
        [f"flame: stopped: what has been read is in {partial.name}; {hint}"],
    )
    wait_until(lambda: not any(one.is_running() for one in below))
    code, said = ranks(*files, "-o", "x.flamesum")
    assert (code, len(said)) == (2, 1)
    assert said[0].endswith(f"{hint}, or --force")
    gate(tmp_path).touch()
    assert ranks(*files, partial.name, "-o", "x.flamesum")[0] == 0
    assert not partial.exists()
    assert ranks(*files, "-o", "y.flamesum")[0] == 0
    written = [(tmp_path / name).read_bytes() for name in ("x.flamesum", "y.flamesum")]
    assert written[0] == written[1]


def _is_nsys(process: Any) -> bool:
    with suppress(psutil.NoSuchProcess):  # it may end between two looks
        return bool(process.name() == "nsys")
    return False


def _reads_a_rank(process: Any) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any(str(file.path).endswith(".sqlite") for file in process.open_files())
    return False


@pytest.mark.deep
def test_a_disk_without_room_is_told_before_the_work(ranks: Ranks, tmp_path: Path) -> None:
    paths = [write_rank(tmp_path / f"rank{rank}.sqlite", rank).name for rank in range(3)]
    process = ranks.start(*paths, "-o", "x.flamesum")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (5000, 5000))
    code, said = ranks.ended(process)
    assert (code, said) == (3, ["flame: x.flamesum: cannot be written: File too large"])
