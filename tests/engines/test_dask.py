"""Reading ranks on a Dask cluster, whose processes die."""

from __future__ import annotations

import os
import signal
import socketserver
from pathlib import Path
from shutil import rmtree
from threading import Event, Thread
from typing import Any

import pytest

from tests.engines.conftest import Ranks
from tests.support.ranks.cluster import DaskCluster, worker_of
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.gated_nsys import gate, rank_report, write_rank

pytest.importorskip("distributed")
pytestmark = pytest.mark.deep

RANKS = 20


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Traces of ranks, two of which are held up when they are read."""
    paths = [write_rank(tmp_path / f"rank{rank}.sqlite", rank) for rank in range(RANKS - 2)]
    gated = range(RANKS - 2, RANKS)
    paths += [rank_report(tmp_path / f"gated{rank}.nsys-rep", rank) for rank in gated]
    return [path.name for path in paths]


def local(ranks: Ranks, files: list[str]) -> bytes:
    """What this machine makes of the files."""
    gate(ranks.folder).touch()
    assert ranks(*files, "-o", "local.flamesum")[0] == 0
    gate(ranks.folder).unlink()
    rmtree(ranks.folder / "cache")  # It has what was made of the reports.
    return (ranks.folder / "local.flamesum").read_bytes()


def held_up(cluster: DaskCluster) -> None:
    """Wait until both files that are held up are being read."""
    wait_until(lambda: sum(1 for one in cluster.readers() if one.children()) == 2)


def test_a_cluster_makes_the_same_file(
    ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    expected = local(ranks, files)
    gate(ranks.folder).touch()
    cluster.start_workers(2)
    assert ranks(*files, "-o", "x.flamesum", "--dask", cluster.file)[0] == 0
    assert (ranks.folder / "x.flamesum").read_bytes() == expected
    wait_until(lambda: not cluster.readers())
    assert all(worker.poll() is None for worker in cluster.workers)


@pytest.mark.parametrize("nanny", [False, True])
def test_a_worker_that_is_killed_costs_nothing(
    nanny: bool, ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    expected = local(ranks, files)
    cluster.start_workers(2, nanny=nanny)
    run = ranks.start(*files, "-o", "x.flamesum", "--dask", cluster.file)
    held_up(cluster)
    worker_of(cluster.readers()[0]).kill()
    gate(ranks.folder).touch()
    assert ranks.ended(run) == (0, ["flame: wrote x.flamesum: 20 ranks"])
    assert (ranks.folder / "x.flamesum").read_bytes() == expected


def lost_files(said: list[str], files: list[str]) -> set[str]:
    """The files that are named, each once."""
    named = [line.removeprefix("flame: ").partition(":")[0] for line in said]
    found = [name for name in named if name in files]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("who", ["workers", "scheduler"])
def test_what_is_left_of_a_cluster_that_dies_is_told(
    who: str, ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    cluster.start_workers(2)
    run = ranks.start(*files, "-o", "x.flamesum", "--dask", cluster.file, patience=(30, 2))
    held_up(cluster)
    for process in cluster.workers if who == "workers" else [cluster.scheduler]:
        process.kill()
    code, said = ranks.ended(run)
    assert code in (3, 7)
    assert lost_files(said, files) == set(files)
    assert len(said) == len(files) + 1, "and nothing of Dask's own"
    assert (ranks.folder / "x.flamesum").exists() == (code == 7)


def test_a_cluster_that_hangs_is_given_up(
    ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    run = ranks.start(*files, "-o", "x.flamesum", "--dask", cluster.file, patience=(1, 1))
    code, said = ranks.ended(run)
    assert code == 3
    assert all("no worker has come to the cluster" in line for line in said[:-1])


def test_a_file_that_ends_its_reader_is_the_only_one_lost(
    ranks: Ranks, cluster: DaskCluster, files: list[str], tmp_path: Path
) -> None:
    gate(ranks.folder).touch()
    bad = rank_report(tmp_path / "ends_reader99.nsys-rep", 99).name
    cluster.start_workers(2)
    code, said = ranks(*files, bad, "-o", "x.flamesum", "--dask", cluster.file)
    assert code == 7
    assert said == [
        f"flame: {bad}: the process reading it was ended: Killed: is there enough memory?",
        "flame: wrote x.flamesum: 20 ranks, without 1 file",
    ]
    assert ranks(*files, bad, "-o", "y.flamesum") == (7, [said[0], said[1].replace("x.", "y.")])
    assert (tmp_path / "x.flamesum").read_bytes() == (tmp_path / "y.flamesum").read_bytes()


def test_a_file_that_ends_its_worker_is_the_only_one_lost(
    ranks: Ranks, cluster: DaskCluster, files: list[str], tmp_path: Path
) -> None:
    gate(ranks.folder).touch()
    bad = rank_report(tmp_path / "ends_worker99.nsys-rep", 99).name
    cluster.start_workers(2, nanny=True)
    code, said = ranks(*files, bad, "-o", "x.flamesum", "--dask", cluster.file)
    assert said == [
        f"flame: {bad}: its worker was killed each time: is there enough memory?",
        "flame: wrote x.flamesum: 20 ranks, without 1 file",
    ]
    assert code == 7


def test_ctrl_c_keeps_what_was_read(ranks: Ranks, cluster: DaskCluster, files: list[str]) -> None:
    expected = local(ranks, files)
    cluster.start_workers(3)
    run = ranks.start(*files, "-o", "x.flamesum", "--dask", cluster.file)
    held_up(cluster)
    os.kill(run.pid, signal.SIGINT)
    code, said = ranks.ended(run)
    assert (code, len(said)) == (130, 1)
    assert "x.flamesum.partial" in said[0]
    wait_until(lambda: not cluster.readers())
    gate(ranks.folder).touch()
    again = ranks(*files, "x.flamesum.partial", "-o", "x.flamesum")
    assert again[0] == 0
    assert (ranks.folder / "x.flamesum").read_bytes() == expected
    assert not (ranks.folder / "x.flamesum.partial").exists()


def test_workers_of_another_version_are_refused(
    ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    cluster.start_workers(1, before="import flame._version as v; v.__version__ = '0.0'")
    code, said = ranks(*files, "-o", "x.flamesum", "--dask", cluster.file)
    assert (code, len(said)) == (3, 1)
    assert "runs flame 0.0, and this is" in said[0]


def test_workers_without_flame_are_refused(
    ranks: Ranks, cluster: DaskCluster, files: list[str]
) -> None:
    cluster.start_workers(1, before="sys.modules['flame'] = None")
    code, said = ranks(*files, "-o", "x.flamesum", "--dask", cluster.file)
    assert (code, len(said)) == (3, 1)
    assert "cannot run flame: " in said[0]


def test_dask_here_needs_no_cluster(ranks: Ranks, files: list[str]) -> None:
    expected = local(ranks, files)
    gate(ranks.folder).touch()
    code, _ = ranks(*files, "-o", "x.flamesum", "--dask", "local", "--workers", "2")
    assert code == 0
    assert (ranks.folder / "x.flamesum").read_bytes() == expected


@pytest.mark.parametrize("where", ["tcp://127.0.0.1:9", "nowhere.json"])
def test_no_scheduler_is_one_line(where: str, ranks: Ranks, files: list[str]) -> None:
    code, said = ranks.ended(ranks.start(*files, "-o", "x.flamesum", "--dask", where, connect=3))
    assert (code, len(said)) == (3, 1)
    assert said[0].startswith(f"flame: --dask {where}: ")


class _NoScheduler(socketserver.BaseRequestHandler):
    """Says what its server has to say, and hangs."""

    def handle(self) -> None:
        server: Any = self.server
        self.request.sendall(server.answer)
        server.ended.wait(PATIENCE)


_ANSWERS = {"nothing": b"", "http": b"HTTP/1.0 400 Bad request\r\n\r\n", "zeros": bytes(64)}


@pytest.mark.parametrize("answer", _ANSWERS.values(), ids=_ANSWERS)
def test_a_server_that_is_no_scheduler_is_one_line(
    answer: bytes, ranks: Ranks, files: list[str]
) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _NoScheduler) as server:
        server.daemon_threads = True
        server.answer, server.ended = answer, Event()  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        where = f"tcp://127.0.0.1:{server.server_address[1]}"
        run = ranks.start(*files, "-o", "x.flamesum", "--dask", where, connect=3)
        code, said = ranks.ended(run)
        server.ended.set()  # type: ignore[attr-defined]
        server.shutdown()
    assert (code, len(said)) == (3, 1)
    assert said[0].startswith(f"flame: --dask {where}: no ")
    assert not (ranks.folder / "x.flamesum").exists()


def test_files_that_cannot_be_read_are_named_as_on_one_machine(
    ranks: Ranks, cluster: DaskCluster, files: list[str], tmp_path: Path
) -> None:
    gate(ranks.folder).touch()
    (tmp_path / "empty.sqlite").touch()
    (tmp_path / "text.sqlite").write_text("no trace")
    (tmp_path / "cut.sqlite").write_bytes((tmp_path / files[0]).read_bytes()[:5000])
    bad = ["empty.sqlite", "text.sqlite", "cut.sqlite"]
    cluster.start_workers(2)
    code, said = ranks(*files[:5], *bad, "-o", "x.flamesum", "--dask", cluster.file)
    assert (code, len(said)) == (7, 4)
    assert ranks(*files[:5], *bad, "-o", "y.flamesum") == (
        7,
        [line.replace("x.f", "y.f") for line in said],
    )
    assert (tmp_path / "x.flamesum").read_bytes() == (tmp_path / "y.flamesum").read_bytes()
