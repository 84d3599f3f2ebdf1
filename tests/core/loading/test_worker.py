"""A process that reads traces, when it is stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.core.loading.worker import EndedError, LoadProcess
from flame.core.options import LoadOptions, Progress
from tests.support.waiting import PATIENCE


def _is_stopped_as_it_closes() -> Iterator[None]:
    try:
        yield
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _go_on(path: Path, options: LoadOptions, progress: Progress) -> None:
    steps = _is_stopped_as_it_closes()
    next(steps)
    del steps  # Python prints, and ignores, what is raised now.
    while True:
        progress("going on", 0, 0)
        time.sleep(0.001)


def test_a_process_ends_though_python_has_ignored_that_it_was_stopped(tmp_path: Path) -> None:
    end = time.monotonic() + PATIENCE

    def progress(stage: str, done: int, expected: int) -> None:
        assert time.monotonic() < end, "it goes on"

    process = LoadProcess()
    try:
        with pytest.raises(EndedError):
            process.run(_go_on, tmp_path / "file", LoadOptions(), progress)
    finally:
        process.kill(0)
        process.close()
