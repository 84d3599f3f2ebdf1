"""What the engine makes of what a cluster says, told by one that does as tests want."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from flame.core.loading.worker import EndedError
from flame.core.memory import MemoryShortError
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.job import RankFile, without_found
from flame.core.ranks.summarise import RankPart
from tests.support.ranks.random_ranks import random_summary

pytest.importorskip("distributed")
pytestmark = pytest.mark.deep

GONE = "gone"
"""In place of what a file is read as: its part is lost with the worker that had it."""


class FakeFuture:
    """Has ended, by a result or by an error."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.status = "finished"
        if isinstance(found, BaseException):
            self.status = "error"
        elif found == GONE:
            self.status = "cancelled"

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)

    def exception(self, timeout: float) -> BaseException:
        found: BaseException = self.found
        return found

    def result(self) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found

    def cancel(self) -> None: ...


class FakeCluster:
    """Reads each file as ``reads`` says, one try after another, then well; so it merges."""

    def __init__(self, threads: int = 2, **reads: Sequence[Any]) -> None:
        from flame.engines.cluster import Workers

        self.workers = Workers(threads, {"w": 1e9})
        self.run = "run"
        self.tries: list[str] = []
        self.in_hand: list[int] = []
        self.merges = 0
        self.bad_merges = 0
        self.looks = 1_000
        self.engine: Any = None
        self._reads = defaultdict(list, {name: list(found) for name, found in reads.items()})

    def prepare(self) -> None: ...

    def close(self) -> None: ...

    def look(self) -> None:
        from flame.engines.cluster import ClusterLostError

        self.looks -= 1
        if self.looks < 0:
            raise ClusterLostError("no worker is left")

    def submit(self, work: Any, *arguments: Any, memory: int = 0) -> FakeFuture:
        if work.__name__ == "read":
            return self._read(arguments[1])
        if work.__name__ == "arrivals_of":
            return FakeFuture(tuple(f"{rank} of two" for rank in range(2)))
        if work.__name__ in ("same", "apply"):
            known = (one.found if isinstance(one, FakeFuture) else one for one in arguments)
            return FakeFuture(work(*known))
        assert work.__name__ == "merge"
        self.merges += 1
        if self.merges <= self.bad_merges:
            return FakeFuture(ValueError("the merge failed"))
        return FakeFuture(work(*(one.found for one in arguments)))

    def _read(self, name: str) -> FakeFuture:
        self.tries.append(name)
        self.in_hand.append(len(self.engine._reads) + 1)
        script = self._reads[name]
        return FakeFuture(script.pop(0) if script else RankPart(summary_of(name), ()))


def summary_of(name: str) -> RankSummary:
    return random_summary(1, int(re.sub(r"\D", "", name)), 5)


class Meter:
    def __init__(self) -> None:
        self.ended: list[str] = []

    def note(self, file: RankFile, share: float) -> None: ...
    def say(self, text: str) -> None: ...
    def tell(self) -> None: ...
    def end(self, file: RankFile) -> None:
        self.ended.append(file.path)


def read(cluster: FakeCluster, *names: str) -> RankSummary:
    """What the engine tells of these files: each once, read or lost."""
    from flame.engines.dask_engine import DaskEngine

    engine: Any = DaskEngine(cluster)  # type: ignore[arg-type]
    cluster.engine = engine
    files = [RankFile(name, 1) for name in names]
    parts = [part for parts in engine.read(files, None, Meter()) for part in parts]
    return without_found(merge_summaries(parts))


def lost(found: RankSummary) -> dict[str, str]:
    """Why files are lost, without those that random summaries have lost."""
    return {one.path: one.reason for one in found.lost if not one.path.startswith("lost ")}


def names(number: int) -> list[str]:
    return [f"f{at}" for at in range(number)]


def killed() -> BaseException:
    from distributed import KilledWorker

    return KilledWorker("task", None, 3)  # type: ignore[no-any-return]


@pytest.mark.parametrize("number", [1, 7, 8, 9, 64, 70, 150])
def test_all_files_are_read_and_merged(number: int) -> None:
    cluster = FakeCluster()
    found = read(cluster, *names(number))
    assert sorted(cluster.tries) == sorted(names(number))
    expected = merge_summaries([summary_of(name) for name in names(number)])
    assert pack_summary(found) == pack_summary(expected)


def test_two_files_are_in_the_hands_of_each_thread() -> None:
    cluster = FakeCluster(threads=3)
    read(cluster, *names(40))
    assert max(cluster.in_hand) == 6


@pytest.mark.parametrize("error", ["killed", EndedError("x: e"), MemoryShortError("x: m")])
def test_suspects_are_read_again_when_nothing_else_is(error: Any) -> None:
    fault = killed() if error == "killed" else error
    cluster = FakeCluster(f3=[fault], f5=[fault, fault], f7=[fault])
    found = read(cluster, *names(12))
    assert list(lost(found)) == ["f5"]
    assert sorted(found.rank.tolist()) == [at for at in range(12) if at != 5]
    assert cluster.tries[-3:] == ["f3", "f5", "f7"], "after all others"
    assert cluster.in_hand[-3:] == [1, 1, 1], "and each alone"


def test_what_a_worker_had_is_read_again_three_times_at_most() -> None:
    cluster = FakeCluster(f1=[GONE], f2=[GONE, GONE], f4=[GONE] * 3)
    found = read(cluster, *names(9))
    assert lost(found) == {"f4": "it was lost with the worker that had it"}
    assert [cluster.tries.count(f"f{at}") for at in (0, 1, 2, 4)] == [1, 2, 3, 3]


def test_other_errors_are_final() -> None:
    cluster = FakeCluster(f1=[OSError("no such thing")])
    assert lost(read(cluster, *names(3))) == {"f1": "OSError: no such thing"}
    assert cluster.tries.count("f1") == 1


@pytest.mark.parametrize(("bad", "tries"), [(2, 1), (3, 2), (6, 3), (9, 3)])
def test_a_merge_is_tried_three_times_and_then_its_files_are_read_again(
    bad: int, tries: int
) -> None:
    cluster = FakeCluster()
    cluster.bad_merges = bad
    found = read(cluster, *names(4))
    assert {cluster.tries.count(name) for name in names(4)} == {tries}
    assert set(lost(found)) == (set(names(4)) if bad == 9 else set())


def test_of_a_cluster_that_is_lost_the_copies_are_left() -> None:
    from flame.engines.dask_engine import DaskEngine

    cluster = FakeCluster(threads=1)
    engine: Any = DaskEngine(cluster)  # type: ignore[arg-type]
    cluster.engine = engine
    files = [RankFile(name, 1) for name in names(9)]
    reading = engine.read(files, None, Meter())
    while len(engine._held) < 3:
        next(reading)
    copied = merge_summaries(engine.unfinished())
    there = len(copied)
    assert there >= 3
    cluster.looks = 0
    found = merge_summaries([part for parts in reading for part in parts])
    assert found.rank.tolist() == copied.rank.tolist()
    assert set(lost(found)) == set(names(9)[there:])
    assert set(lost(found).values()) == {"no worker is left"}


def test_the_second_pass_has_all_ranks_of_each_file() -> None:
    from flame.engines.dask_engine import DaskEngine

    cluster = FakeCluster()
    engine: Any = DaskEngine(cluster)  # type: ignore[arg-type]
    cluster.engine = engine
    list(engine.read([RankFile(name, 1) for name in names(3)], None, Meter()))
    found = engine.second_pass(lambda one, table: (one, table), "table")
    assert sorted(found) == sorted([("0 of two", "table"), ("1 of two", "table")] * 3)
