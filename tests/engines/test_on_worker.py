"""What a worker does for a run, and how much memory that takes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from flame.core.loading.processes import LoadProcesses
from flame.core.loading.worker import EndedError
from flame.core.memory import MemoryShortError
from flame.core.ranks.summarise import RankOptions
from flame.engines import on_worker
from tests.support.ranks.rank_traces import write_ranks
from tests.support.writers.gated_nsys import write_rank

RUN = "run"


BEGUN: list[LoadProcesses] = []


@pytest.fixture
def run() -> Iterator[str]:
    """The name of a run, which ends with the test."""
    yield RUN
    on_worker.end(RUN)
    while BEGUN:
        BEGUN.pop().close()


def begin(run: str, memory: int) -> None:
    on_worker.begin(run, memory)
    BEGUN.append(on_worker._runs[run].processes)


@pytest.mark.deep
def test_a_file_that_needs_more_memory_than_the_worker_has_is_not_begun(
    run: str, tmp_path: Path
) -> None:
    path = write_ranks(tmp_path, 1, steps=10, layers=20).paths[0]
    begin(run, 10_000)
    with pytest.raises(MemoryShortError, match=r"needs about .* of memory, and 1\.00 MB are free"):
        on_worker.read(run, path.name, str(path), 900_000_000, RankOptions())


@pytest.mark.deep
def test_the_readers_of_a_run_end_with_it(run: str, tmp_path: Path) -> None:
    path = write_rank(tmp_path / "rank1.sqlite", 1)
    begin(run, 0)
    assert len(on_worker.read(run, path.name, str(path), 1, RankOptions()).summary) == 1
    [reader] = on_worker._runs[run].processes._processes
    on_worker.end(run)
    assert reader._process.poll() is not None
    with pytest.raises(EndedError, match="the run has ended"):
        on_worker.read(run, "r", str(path), 1, RankOptions())


def test_a_file_that_the_worker_does_not_see_is_lost(run: str) -> None:
    [lost] = on_worker.read(run, "given", "/nowhere/x", 1, RankOptions()).summary.lost
    assert lost.path == "given"
    assert lost.reason.startswith("no such file on ")


def test_files_that_do_not_fit_together_wait_for_each_other() -> None:
    readers, most = on_worker._Readers(10), list[int]()

    def take(size: int) -> None:
        with readers.room(size):
            most.append(sum(readers._taken))
            Event().wait(0.003)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, [4, 3, 25, 5, 2, 4, 4, 1] * 3))
    assert max(one for one in most if one < 25) <= 10
    assert most.count(25) == 3, "one that needs more than all is alone"
    assert readers._taken == []


@pytest.mark.deep
def test_a_file_goes_to_workers_that_have_the_memory() -> None:
    pytest.importorskip("distributed")
    from flame.engines.cluster import Workers

    workers = Workers(3, {"a": 10, "b": 20, "c": 30})
    assert workers.with_room(5) is None
    assert workers.with_room(15) == ["b", "c"]
    assert workers.with_room(99) == ["c"], "else to the largest: it may do all the same"
