"""Starts recorded programs, for the tests of the socket beside a dump."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.programs import KERNELS
from tests.inject.recorded_program import Program

Start = Callable[..., Program]


@pytest.fixture
def start(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Iterator[Start]:
    """Starts a program that launches on the double, or does what ``script`` says."""
    with ExitStack() as stack:

        def run(
            script: str = KERNELS, folder: Path = tmp_path / "dumps", **more: str | Path
        ) -> Program:
            return stack.enter_context(Program(script, injected_env(folder, **more)))

        yield run
