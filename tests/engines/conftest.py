"""What runs of `flame ranks` need: traces, a folder, processes that tests end."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.ranks.cluster import DaskCluster, started_cluster
from tests.support.waiting import PATIENCE
from tests.support.writers.gated_nsys import gated_nsys

_PROGRAM = """\
import sys
from flame.cli.main import main
if "--dask" in sys.argv:
    from flame.engines import dask_cluster, dask_engine
    from flame.engines.cluster import Patience
    dask_cluster.USUAL = Patience{patience}
    dask_cluster._CONNECT = {connect}
    dask_engine._SHORT = {short}
sys.exit(main())
"""


class Ranks:
    """Runs ``flame ranks`` as a process, where ``nsys`` is one that tests hold up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**gated_nsys(folder), "PYTHONPATH": str(ROOT)}

    def start(
        self, *words: str | Path, patience: tuple[int, int] = (60, 60), connect: int = 10
    ) -> subprocess.Popen[str]:
        """Begin a run, with so many seconds of patience for the first worker, and the next."""
        program = _PROGRAM.format(patience=patience, connect=connect, short=PATIENCE)
        return subprocess.Popen(
            [sys.executable, "-c", program, "ranks", *map(str, words)],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str | Path) -> tuple[int, list[str]]:
        """Run to the end: the exit code, and the lines on stderr."""
        return self.ended(self.start(*words))

    def ended(self, process: subprocess.Popen[str]) -> tuple[int, list[str]]:
        """Wait for the end of a run."""
        with process:
            try:
                _, said = process.communicate(timeout=2 * PATIENCE)
            finally:
                process.kill()
        return process.returncode, said.splitlines()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files can have so many bytes in the block."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, before)


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    return Ranks(tmp_path)


@pytest.fixture
def cluster(ranks: Ranks, tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler that no worker has come to."""
    with started_cluster(tmp_path, ranks.environment) as started:
        yield started
