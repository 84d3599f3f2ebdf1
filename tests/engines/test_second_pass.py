"""Measuring waits where the collectives of ranks are: here, and on a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.readers.signs.nsys import MAGIC
from tests.engines.conftest import Ranks
from tests.support.ranks.cluster import DaskCluster, worker_of
from tests.support.ranks.rank_traces import RankRun, write_ranks
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.gated_nsys import gate

pytestmark = pytest.mark.deep

_PROGRAM = """\
import json, sys
from contextlib import closing
from pathlib import Path
from flame.core.ranks.job import RankFile, RankJob
from flame.engines.local import LocalEngine
from flame.engines.progress import RankMeter

where, *paths = sys.argv[1:]
if where == "here":
    opened = closing(LocalEngine(2, None))
else:
    from flame.engines.dask_cluster import dask_engine
    opened = dask_engine(where, 2)
with opened as engine:
    engine = engine if where == "here" else engine[0]
    files = [RankFile(path, Path(path).stat().st_size) for path in paths]
    job = RankJob(engine, (), lambda summary: None)
    whole = job.run(files, RankMeter(files, lambda *one: None))
    waits = whole.waits
    print(json.dumps([whole.rank.tolist(), waits.wait.tolist(), waits.group_wait.tolist()]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RankRun:
    return write_ranks(tmp_path_factory.mktemp("ranks"), 10, straggler=3)


def waits(ranks: Ranks, run: RankRun, where: str | Path) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, where, *map(str, run.paths)],
        env=ranks.environment,
        cwd=ranks.folder,
        stdout=subprocess.PIPE,
        check=True,
        timeout=2 * PATIENCE,
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


def check(found: list[list[int]], run: RankRun) -> None:
    """Compare with what the simulation waited; it rounds each collective's ends."""
    ranks, waits, by_group = found
    assert ranks == list(range(10))
    for mine, wait in zip(waits, run.waits, strict=True):
        assert abs(mine - wait) <= 2 * run.collectives
    assert sum(by_group) == sum(waits)


def test_waits_are_measured_here(ranks: Ranks, run: RankRun) -> None:
    check(waits(ranks, run, "here"), run)


def test_waits_are_measured_on_a_cluster(ranks: Ranks, run: RankRun, cluster: DaskCluster) -> None:
    pytest.importorskip("distributed")
    cluster.start_workers(2)
    check(waits(ranks, run, cluster.file), run)


def written(ranks: Ranks, name: str, *words: str | Path) -> bytes:
    code, said = ranks(*words, "-o", name)
    assert (code, len(said)) == (0, 1)
    return (ranks.folder / name).read_bytes()


def test_every_engine_writes_the_same_file(
    ranks: Ranks, run: RankRun, cluster: DaskCluster
) -> None:
    """Of shares that were read apart and then merged all but what the second pass measures."""
    pytest.importorskip("distributed")
    cluster.start_workers(2)
    paths = run.paths
    whole = written(ranks, "whole", *paths, "--workers", "3")
    assert written(ranks, "backwards", *reversed(paths), "--workers", "1") == whole
    assert written(ranks, "here", *paths, "--here") == whole
    assert written(ranks, "cluster", *paths, "--dask", cluster.file) == whole
    for share in range(3):
        written(ranks, f"share{share}", "--here", "--share", f"{share}/3", *paths)
    merged = written(ranks, "merged", "share2", "share0", "share1")
    without = replace(unpack_summary(whole, "whole"), waits=None)
    assert merged == pack_summary(without) != whole


@pytest.fixture
def gated(tmp_path: Path) -> list[Path]:
    """Traces of ranks that wait for each other; two are held up when they are read."""
    paths = write_ranks(tmp_path / "gated", 10, straggler=3).paths
    for at in (8, 9):
        report = paths[at].with_name(f"gated{at}.nsys-rep")
        report.write_bytes(MAGIC + report.name.encode())
        paths[at] = paths[at].rename(f"{report}.sqlite").with_name(report.name)
    return paths


@pytest.mark.parametrize("nanny", [False, True])
def test_what_a_killed_worker_had_measured_is_measured_again(
    nanny: bool, ranks: Ranks, gated: list[Path], cluster: DaskCluster
) -> None:
    pytest.importorskip("distributed")
    cluster.start_workers(2, nanny=nanny)
    run = ranks.start(*gated, "-o", "x", "--dask", cluster.file)
    wait_until(lambda: sum(1 for one in cluster.readers() if one.children()) == 2)
    worker_of(cluster.readers()[0]).kill()
    gate(ranks.folder).touch()
    assert ranks.ended(run) == (0, ["flame: wrote x: 10 ranks"])
    rmtree(ranks.folder / "cache")
    found = (ranks.folder / "x").read_bytes()
    assert found == written(ranks, "local", *gated)
    waits = unpack_summary(found, "x").waits
    assert waits is not None and (waits.wait >= 0).all() and (waits.error >= 0).all()
