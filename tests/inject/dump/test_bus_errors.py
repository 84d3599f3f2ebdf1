"""A dump that is cut off ends no program, whatever handlers of SIGBUS the program has."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.programs import KERNELS
from tests.inject.recorded_program import Program, until
from tests.inject.scenes import Bench, program
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header

OFTEN = 20  # ms between two looks of the helper thread


@pytest.fixture
def bench(buildable: None, tmp_path: Path) -> Bench:
    return Bench(program(), tmp_path / "dumps")


def test_a_dump_that_is_cut_off_ends_no_program(bench: Bench) -> None:
    bench.run("cut_off")
    # It may grow once more before it is found out, by zeros.
    assert not bench.dump().read_bytes()[:8].strip(b"\0")


@pytest.mark.parametrize("scene", ["cut_off_with_handler", "cut_off_with_little_memory"])
def test_nor_does_it_with_a_handler_that_came_later(bench: Bench, scene: str) -> None:
    bench.run(scene, FLAME_FLUSH_MS=OFTEN)


def test_who_takes_room_in_the_file_looks_at_the_handler_too(bench: Bench) -> None:
    bench.run("cut_off_while_growing", FLAME_FLUSH_MS=60_000)


def test_without_memory_for_it_the_program_ends_and_does_not_fault_for_ever(bench: Bench) -> None:
    command = [str(bench.program), "cut_off_without_memory"]
    done = subprocess.run(command, env=bench.env(), timeout=PATIENCE)
    assert done.returncode == -signal.SIGBUS


@pytest.mark.parametrize("scene", ["own_bus_error", "changing_handlers"])
def test_other_bus_errors_are_the_programs(bench: Bench, scene: str) -> None:
    command = [str(bench.program), scene]
    env = bench.env(FLAME_FLUSH_MS=OFTEN)
    assert subprocess.run(command, env=env, timeout=PATIENCE).returncode == 42


@pytest.mark.parametrize("scene", ["usual_bus_error", "handlers_in_a_row", "handlers_that_defer"])
def test_other_bus_errors_end_the_program_as_ever(bench: Bench, scene: str) -> None:
    bench.run(scene, FLAME_FLUSH_MS=OFTEN)


def wait_for_flush(dump: Path) -> None:
    """The helper thread says in the header when it was last there."""
    last = header(dump)["end_monotonic"]
    until(lambda: header(dump)["end_monotonic"] != last)


def test_the_faulthandler_of_python_may_be_enabled_at_any_time(
    tmp_path: Path, injected_env: Callable[..., dict[str, str]]
) -> None:
    env = injected_env(tmp_path / "dumps", FLAME_FLUSH_MS=str(OFTEN))
    with Program(KERNELS, env) as running:
        dump = running.heard()
        for switch in ("enable", "disable", "enable"):
            running.run(f"import faulthandler; faulthandler.{switch}()")
            for _ in range(2):
                wait_for_flush(dump)
        os.truncate(dump, 0)
        assert running.do("[launch(gemm) for _ in range(100)].count(None)") == 100
        assert running.end() == 0
