"""Another tool that lets others use CUPTI beside it: both get all records, neither spoils any."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.inject.cupti.cupti_recorded import PRELUDE
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta, records

ENDED = 1
COUNT = 30
SCRIPT = f"""
context()
function = kernel("one", 1000)
for _ in range({COUNT}): check(launch(function))
synchronize()
"""
RUNNING_ON = 'check(launch(kernel("endless", 3600 * 10**9)))\n'
GRAPH = """
on, captured = stream(), pointer()
check(cuda.cuStreamBeginCapture_v2(on, 0))
check(launch(function, on))
check(cuda.cuStreamEndCapture(on, ctypes.byref(captured)))
graph = pointer()
check(cuda.cuGraphInstantiateWithFlags(ctypes.byref(graph), captured, ctypes.c_uint64(0)))
check(cuda.cuGraphLaunch(graph, on))
synchronize()
"""
BESIDE = "CUPTI is used by its functions for several subscribers"


class Ended(NamedTuple):
    """A program that has ended: its dump, and how many records the other tool got of which kind."""

    dump: Path
    other: Counter[str]

    @property
    def notes(self) -> list[str]:
        return meta(self.dump).get("note", [])

    def count(self, key: str) -> int:
        return len(records(self.dump)[key])


Run = Callable[..., Ended]


@pytest.fixture
def run(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Run:
    """Run a program on a CUPTI with ``faults``."""

    def ended(faults: str, script: str = SCRIPT, **more: str) -> Ended:
        truth = tmp_path / "truth"
        env = injected_env(
            tmp_path / "dumps",
            FAKE_CUPTI=faults,
            FAKE_TRUTH=str(truth),
            FLAME_PYTHON="0",
            **more,
        )
        command = [sys.executable, "-c", PRELUDE + script]
        subprocess.run(command, env=env, timeout=PATIENCE, check=True)
        (dump,) = tmp_path.glob("dumps/*.fdump")
        assert header(dump)["state"] == ENDED
        (told,) = tmp_path.glob("truth.*")
        lines = map(json.loads, told.read_text().splitlines())
        return Ended(dump, Counter(one["what"] for one in lines if one["what"][:5] == "other"))

    return ended


@pytest.mark.parametrize("version", [130200, 130300, 130400, 130500])
def test_both_get_all_records(run: Run, version: int) -> None:
    ended = run(f"version:{version},several")
    assert ended.count("kernel") == ended.count("launch") == COUNT
    assert ended.other == {"other": COUNT}
    [own_clock] = [[note for note in ended.notes if "a clock of its own" in note]]
    assert bool(own_clock) == (version < 130400)  # until then a subscriber cannot have one
    assert any(BESIDE in note for note in ended.notes)


def test_work_that_still_runs_at_the_end_is_not_taken_from_the_other(run: Run) -> None:
    ended = run("version:130400,several", SCRIPT + RUNNING_ON)
    assert ended.count("launch") == COUNT + 1 and ended.count("kernel") == COUNT
    assert ended.other == {"other": COUNT}, "nothing was forced out before it was over"


def test_records_are_refused_where_only_the_first_functions_are_called(run: Run) -> None:
    ended = run("version:130400,several", FLAME_SUBSCRIBERS="one")
    assert ended.count("kernel") == ended.count("launch") == 0
    assert any("by its newer functions" in note for note in ended.notes)


@pytest.mark.parametrize("faults", ["version:130001,several", "version:130400,v2_subscriber"])
def test_nor_where_there_are_none_or_the_other_wants_to_be_alone(run: Run, faults: str) -> None:
    ended = run(faults)
    assert ended.count("kernel") == ended.count("launch") == 0
    assert any("by its newer functions" in note for note in ended.notes)


def test_they_are_found_out_when_buffers_are_registered(run: Run) -> None:
    ended = run("version:130400,late_v2")
    assert ended.count("kernel") == ended.count("launch") == COUNT
    assert meta(ended.dump)["cupti"] == ["13.4.0"], "nor is it said that something was refused"


@pytest.mark.parametrize("version", [130001, 130400])
def test_they_are_asked_for_alone_too(run: Run, version: int) -> None:
    ended = run(f"version:{version}", FLAME_SUBSCRIBERS="several")
    assert ended.count("kernel") == ended.count("launch") == COUNT
    assert any(BESIDE in note for note in ended.notes) == (version == 130400)


def test_the_first_functions_are_called_unless_something_speaks_against_it(run: Run) -> None:
    ended = run("version:130400")
    assert ended.count("kernel") == COUNT and not ended.notes


def test_pc_samples_are_refused(run: Run) -> None:
    ended = run("version:130400,several", FLAME_PC="continuous")
    assert ended.count("kernel") == COUNT and not ended.count("sample")
    assert any("PC sampling has no functions for several tools" in note for note in ended.notes)


def test_graphs_that_the_other_has_traced_as_a_whole_are_so(run: Run) -> None:
    ended = run("version:130400,several,whole_for_all", SCRIPT + GRAPH)
    assert ended.count("kernel") == COUNT and ended.count("graph_run") == 1
    assert any("as a whole: another tool" in note for note in ended.notes)
