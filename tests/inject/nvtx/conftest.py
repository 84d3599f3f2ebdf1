"""Runs programs that use NVTX with the library."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

Recording = Callable[..., str]


@pytest.fixture
def run(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Recording:
    """Runs a program with the library, recording into ``tmp_path``; gives what it printed."""

    def run(*command: str | Path, status: int = 0) -> str:
        done = subprocess.run(
            list(map(str, command)),
            env=injected_env(tmp_path, fake=False),
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


@pytest.fixture
def python(run: Recording) -> Callable[..., str]:
    """Runs a Python script that uses the nvtx package."""
    pytest.importorskip("nvtx")

    def python(script: str, status: int = 0) -> str:
        return run(sys.executable, "-c", "import nvtx\n" + textwrap.dedent(script), status=status)

    return python


@pytest.fixture
def calls(run: Recording, compiled: Callable[..., Path]) -> Callable[..., list[int]]:
    """Runs a part of nvtx_calls.cpp; gives the numbers that it printed."""

    def calls(*which: str) -> list[int]:
        return [int(line) for line in run(compiled("nvtx_calls.cpp"), *which).split()]

    return calls
