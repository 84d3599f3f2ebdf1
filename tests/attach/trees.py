"""Programs to find, and starting them with all that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.model import Candidate, Job
from tests.attach.conftest import wait_until
from tests.cli.programs import KERNELS
from tests.support.waiting import wait_for_exec

Tree = Callable[..., "subprocess.Popen[bytes]"]
Env = dict[str, str]

STEPS = """
import nvtx, time
for _ in range(6000):
    with nvtx.annotate("step"):
        time.sleep(0.01)
"""
"""A minute of ranges."""

LAUNCHES = f"""{KERNELS}
while True:
    launch(gemm)
    time.sleep(0.01)
"""
"""21 launches and more, on the double."""

IDLE = "import time; time.sleep(60)"

RANKS = """
import os, subprocess, sys
count, *words = sys.argv[1:]
ranks = [
    subprocess.Popen(words, env={**os.environ, "RANK": str(rank)}, start_new_session=True)
    for rank in range(int(count))
]
for one in ranks:
    one.wait()
"""
"""As torchrun does it: every worker in a session of its own."""


@pytest.fixture
def tree() -> Iterator[Tree]:
    """Starts programs; these and all that they have started are killed in the end."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        settings: dict[str, Any] = {"start_new_session": True, "stdin": subprocess.DEVNULL}
        started.append(subprocess.Popen(list(map(str, words)), **{**settings, **options}))
        wait_for_exec(started[-1])
        return started[-1]

    yield begin
    for one in started:
        end(one)


@pytest.fixture(autouse=True)
def users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where ended recordings are looked for."""
    folder = tmp_path / "users"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("FLAME_DIR", str(folder))
    return folder


def end(root: subprocess.Popen[bytes]) -> None:
    """Kills a process and all below it, the parents first: they would start others."""
    from flame.attach.discover.proc import all_processes, descendants

    for one in list(descendants([root.pid], all_processes())):
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    root.wait()


def python(code: str, *words: str) -> tuple[str, ...]:
    """The command that runs ``code``."""
    return (sys.executable, "-c", code, *words)


def script(folder: Path, name: str, code: str) -> Path:
    """A file of that name with ``code``."""
    path = folder / name
    path.write_text(code)
    return path


def job_at(pid: int, members: int = 1, finder: ProcessFinder | None = None) -> Job:
    """The job with that root, as soon as so many processes of it record."""
    finder = finder or ProcessFinder()
    found: list[Job] = []

    def look() -> bool:
        found[:] = [job for job in finder.find().jobs if job.root.pid == pid]
        return any(len(dumps_of(job)) >= members for job in found)

    wait_until(look)
    return found[0]


def dumps_of(job: Job) -> list[Path]:
    """All dumps of a job."""
    return [path for one in job.members for path in one.dumps]


def pids_of(members: tuple[Candidate, ...]) -> set[int]:
    """Who they are."""
    return {one.pid for one in members}
