"""Memory for activity records: when it is used up, CUPTI must live with what it gets."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inject.cupti.cupti_recorded import PRELUDE
from tests.inject.system.test_failing_calls import failing_library
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta, records

LIMIT = 512  # kMaxBuffers
CUPTI_DROPPED, NO_MEMORY = 3, 4
PROGRAM = """
context()
function = kernel("one", 10)
for _ in range(int(sys.argv[1])): check(launch(function))
synchronize()
"""
FULL = "hoard,per_buffer:1"
"""As behind a long queue: CUPTI takes a buffer for every kernel and gives none back."""

Run = Callable[..., Path]


@pytest.fixture
def run(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Run:
    """Launch kernels with a CUPTI of the API ``version``; return the dump."""

    def do(kernels: int, version: int, **more: str | Path) -> Path:
        faults = f"version:{version},{FULL}"
        env = injected_env(tmp_path / "dumps", FAKE_CUPTI=faults, FLAME_PYTHON="0", **more)
        command = [sys.executable, "-c", PRELUDE + PROGRAM, str(kernels)]
        subprocess.run(command, env=env, check=True, timeout=PATIENCE)
        (dump,) = tmp_path.glob("dumps/*.fdump")
        return dump

    return do


def dropped(dump: Path) -> dict[int, int]:
    """How many records were dropped, by cause."""
    counts: Counter[int] = Counter()
    for row in records(dump)["drop"]:
        counts[int(row["cause"])] += int(row["count"])
    return dict(counts)


@pytest.mark.parametrize("version", [18, 26])
def test_an_older_cupti_never_gets_a_null_buffer(run: Run, version: int) -> None:
    dump = run(LIMIT + 100, version)
    assert len(records(dump)["kernel"]) == LIMIT + 100 and not dropped(dump)
    [note] = meta(dump)["note"]
    assert note.startswith("more than 128 MiB of memory hold what CUPTI has not reported yet")
    assert meta(dump)["activity buffers"] == [f"{LIMIT + 100} at most at once"]


@pytest.mark.parametrize("version", [27, 130001])
def test_a_newer_one_gets_none_and_counts(run: Run, version: int) -> None:
    dump = run(LIMIT + 100, version)
    assert len(records(dump)["kernel"]) == LIMIT
    assert dropped(dump) == {CUPTI_DROPPED: 100}


def test_nothing_is_said_below_the_limit(run: Run) -> None:
    dump = run(LIMIT, 26)
    assert len(records(dump)["kernel"]) == LIMIT
    assert "note" not in meta(dump) and "activity buffers" not in meta(dump)


@pytest.mark.parametrize("version", [26, 130001])
def test_without_memory_records_are_lost_and_counted(
    run: Run, buildable: None, tmp_path: Path, version: int
) -> None:
    library = failing_library()
    kernels, counts = 40, tmp_path / "counts"
    run(kernels, version, library=library, FAIL_COUNTS=counts).unlink()
    rows = dict(line.split() for line in counts.read_text().splitlines())
    first = int(rows["mmap"]) - 10
    fault = {"FAIL_CALL": "mmap", "FAIL_AT": str(first), "FAIL_ERRNO": "12", "FAIL_ON": "1"}
    dump = run(kernels, version, library=library, **fault)
    lost = dropped(dump)
    assert lost.keys() == {NO_MEMORY if version < 27 else CUPTI_DROPPED}
    assert 0 < sum(lost.values()) < kernels
    assert len(records(dump)["kernel"]) + sum(lost.values()) == kernels
