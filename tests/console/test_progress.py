"""A long load shows its progress on a terminal; a short one shows and imports nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

REPORT = """
import sys
from types import SimpleNamespace
import flame.console.progress
now = 100.0
flame.console.progress.time = SimpleNamespace(monotonic=lambda: now)
with flame.console.progress.progress_on_stderr() as progress:
    progress("reading", 1, 4)
    now += {patiences} * flame.console.progress.DELAY
    progress("attributing", 3, 4)
print("rich" in sys.modules)
"""


def reported(patiences: float, stderr: int) -> str:
    """What a load prints on stdout that lasts this many patiences and reports to ``stderr``."""
    code = REPORT.format(patiences=patiences)
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=stderr, timeout=PATIENCE, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A pseudo-terminal: the side to read from, the side to write to."""
    controller, terminal = pty.openpty()
    os.set_blocking(controller, False)
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


def test_a_long_load_shows_its_progress(terminal: tuple[int, int]) -> None:
    controller, stderr = terminal
    assert reported(1.2, stderr) == "True\n"
    said = os.read(controller, 1 << 16).decode()
    assert "attributing" in said
    assert "75%" in said
    assert "reading" not in said


def test_a_short_load_shows_and_imports_nothing(terminal: tuple[int, int]) -> None:
    controller, stderr = terminal
    assert reported(0.2, stderr) == "False\n"
    with pytest.raises(BlockingIOError):
        os.read(controller, 1)


def test_a_load_without_a_terminal_shows_nothing(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w+b") as stderr:
        assert reported(1.2, stderr.fileno()) == "False\n"
        assert stderr.tell() == 0
