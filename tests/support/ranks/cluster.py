"""A Dask cluster of processes on this machine, which tests end one by one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until

_PROGRAM = "import sys; {before}; from distributed.cli.dask_{what} import main; main()"


class DaskCluster:
    """A scheduler and its workers; ``file`` is where the scheduler says its address."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._environment = {**environment, "PYTHONPATH": str(ROOT)}
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.scheduler = self._start("scheduler", *words)
        wait_until(lambda: self.file.exists() and self.file.read_bytes().endswith(b"}"))

    def _start(self, what: str, *words: str, before: str = "pass") -> subprocess.Popen[bytes]:
        log = (self._folder / f"{what}.log").open("ab")
        file = ("--scheduler-file", str(self.file))
        program = _PROGRAM.format(what=what, before=before)
        command = [sys.executable, "-c", program, *words, *file]
        with log:
            return subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, cwd=self._folder
            )

    def start_workers(
        self, number: int, *, nanny: bool = False, memory: str = "1GB", before: str = "pass"
    ) -> None:
        """Start workers of one thread each, which run ``before`` first."""
        words = ["--nthreads", "1", "--no-dashboard", "--memory-limit", memory]
        words += ["--nanny" if nanny else "--no-nanny", "--local-directory", str(self._folder)]
        for _ in range(number):
            self.workers.append(self._start("worker", *words, before=before))

    def readers(self) -> list[psutil.Process]:
        """The processes below workers that read a file."""
        below = [one for worker in self.workers for one in _below(worker.pid)]
        return [one for one in below if "loading.worker" in _words(one)]

    def stop(self) -> None:
        """End all, whatever state they are in."""
        processes = [self.scheduler, *self.workers]
        below = [one for process in processes for one in _below(process.pid)]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(PATIENCE)
        for one in below:
            _kill(one)


def worker_of(reader: psutil.Process) -> psutil.Process:
    """The worker that a reader belongs to."""
    parent = reader.parent()
    assert parent is not None
    return parent


def _below(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


@contextmanager
def started_cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[DaskCluster]:
    """A cluster without workers, until the end of the block."""
    cluster = DaskCluster(folder, environment)
    try:
        yield cluster
    finally:
        cluster.stop()
