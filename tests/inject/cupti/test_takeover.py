"""Another tool takes over CUPTI's records: that is told, and undone where it can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flame.core.loading.many import load
from tests.inject.cupti.cupti_recorded import GRAPH, PRELUDE, Record
from tests.inject.recorded_program import Program, until
from tests.support.writers.fdumprecords import meta, records

KERNEL, WILD_TIMES = 6, 8
BEGIN = """
context()
function = kernel("one", 10)
def run(count):
    for _ in range(count): check(launch(function))
    synchronize()
"""
QUICK = {"FLAME_FLUSH_MS": "2", "FLAME_PYTHON": "0"}
"""The library gives up hope after 50 flushes: 5 s, but for this."""
TAKEN = "CUPTI has reported no GPU work since "

Started = Callable[[str], Program]


@pytest.fixture
def started(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Started:
    """Start a program that launches kernels while it is told to, with faults of CUPTI."""

    def start(faults: str) -> Program:
        env = injected_env(tmp_path / "dumps", FAKE_CUPTI=faults, **QUICK)
        return Program(PRELUDE + BEGIN.replace("def run", "def work"), env)

    return start


@contextmanager
def ended(program: Program) -> Iterator[None]:
    with program:
        yield
        assert program.end() == 0


def notes(dump: Path) -> list[str]:
    return meta(dump).get("note", [])


def kernels(dump: Path) -> int:
    return len(records(dump)["kernel"])


def test_records_that_another_tool_has_taken_are_told_of(started: Started) -> None:
    with ended(program := started("steal:11")):
        program.run("work(10)")
        until(lambda: kernels(program.dump()) == 10)
        program.run("work(10)")
        [note] = until(lambda: notes(program.dump()))
    assert note.startswith(TAKEN) and "though there were 10 launches" in note
    assert "torch.profiler" in note and note.endswith("when that tool has ended")
    assert (kernels(program.dump()), notes(program.dump())) == (10, [note])
    assert len(records(program.dump())["launch"]) == 20
    assert note in load(program.dump()).warnings


def test_and_taken_back_when_it_has_ended(started: Started) -> None:
    with ended(program := started("version:130300,steal:11,steal_for:10")):
        program.run("work(10)")
        until(lambda: kernels(program.dump()) == 10)
        program.run("work(9)")
        [note] = until(lambda: notes(program.dump()))
        assert note.endswith("They are taken back once it has ended")
        program.run("work(2)")  # with the second of which that tool ends
        until(lambda: len(notes(program.dump())) == 2)
        program.run("work(3000)")
    assert notes(program.dump())[1].startswith("CUPTI reports GPU work again since ")
    # The last one before that tool ended may lie in a buffer of that tool, which then comes to us.
    assert kernels(program.dump()) in (3010, 3011)


def test_but_not_with_another_clock(started: Started) -> None:
    with ended(program := started("version:130300,steal:11,steal_for:5,steal_clock")):
        program.run("work(10)")
        until(lambda: kernels(program.dump()) == 10)
        program.run("work(10)")
        until(lambda: len(notes(program.dump())) == 2)
        found = notes(program.dump())
        program.run("work(10)")
    assert found[1].endswith("the other tool has changed its clock")
    assert (kernels(program.dump()), notes(program.dump())) == (10, found)


def test_without_a_wait_many_launches_tell(started: Started) -> None:
    with ended(program := started("steal:11")):
        program.run("work(10)")
        until(lambda: kernels(program.dump()) == 10)
        program.run("for _ in range(1 << 16): check(launch(function))")
        [note] = until(lambda: notes(program.dump()))
    assert note.startswith(TAKEN) and "though there were 65536 launches" in note


def test_an_end_takes_nothing_back(
    injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    # The other tool has ended, and CUPTI keeps a buffer of ours: the end flushes until it gives up.
    faults = {"FAKE_CUPTI": "version:130300,hold,steal:2,steal_for:10"}
    only_at_the_end = {"FLAME_FLUSH_MS": "60000", "FLAME_PYTHON": "0"}
    env = injected_env(tmp_path / "dumps", **faults, **only_at_the_end)
    with Program(PRELUDE + BEGIN.replace("def run", "def work"), env) as program:
        with closing(program.control()) as control:
            program.run("check(launch(kernel('longer', 500 * 10**6)))")
            assert control.flush()  # which has CUPTI take a buffer, and keep it
            program.run("work(11)")
            assert control.stop()
        assert program.end() == 0
    found = notes(program.dump())
    assert not [note for note in found if "taken back" in note or "again since" in note]
    assert len(records(program.dump())["launch"]) == 12


def test_the_end_tells_what_there_was_no_time_for(record: Record) -> None:
    recorded = record(BEGIN + "run(10)\nrun(10)", FAKE_CUPTI="steal:11")
    [note] = recorded.meta["note"]
    assert note.startswith(TAKEN) and "though there were 20 launches" in note


QUIET = {
    "a kernel that takes long": 'check(launch(kernel("long", 600_000_000)))\nsynchronize()',
    "work behind one": 'check(launch(kernel("long", 600_000_000)))\nrun(3)',
    "a capture": GRAPH + "graph = instantiate(capture())\nsynchronize()\ntime.sleep(0.5)",
    "a launch that failed": 'launch(kernel("fail_one"))\nsynchronize()\ntime.sleep(0.5)',
    "rest": "run(3)\ntime.sleep(0.5)",
}


@pytest.mark.parametrize("script", QUIET.values(), ids=QUIET)
def test_nothing_is_told_of_work_that_is_merely_not_over(record: Record, script: str) -> None:
    recorded = record(BEGIN + script, **QUICK)
    assert "note" not in recorded.meta


def test_nor_of_records_that_cupti_dropped(record: Record) -> None:
    recorded = record(BEGIN + "run(3)\ntime.sleep(0.5)", FAKE_CUPTI="drop:1", **QUICK)
    assert "note" not in recorded.meta
    assert recorded.dropped() == {(3, 0): 3}


@pytest.mark.parametrize("fault", ["backward", "wild_times"])
def test_times_that_cannot_be_are_counted_and_not_believed(record: Record, fault: str) -> None:
    recorded = record(BEGIN + "run(10)", FAKE_CUPTI=f"{fault}:2")
    assert recorded.dropped() == {(WILD_TIMES, KERNEL): 5}
    assert len(recorded.of["kernel"]) == 5
    told = load(recorded.path).warnings
    assert any(line.startswith("5 records could not be written: CUPTI gave times") for line in told)


def test_it_is_not_said_to_be_another_tool_where_nothing_was_ever_reported(
    record: Record,
) -> None:
    recorded = record(BEGIN + "run(10)", FAKE_CUPTI="steal:1")
    [note] = recorded.meta["note"]
    assert note.startswith(TAKEN) and note.endswith("or CUPTI does not work with this GPU")


@pytest.mark.parametrize("fault", ["v2_subscriber", "late_v2"])
def test_a_tool_that_uses_the_newer_functions_is_told_of(record: Record, fault: str) -> None:
    recorded = record(BEGIN + "run(3)", FAKE_CUPTI=fault)
    [note] = recorded.meta["note"]
    assert "cuptiSubscribe_v2" in note
    assert recorded.meta["cupti"][0].endswith("(14)")
    assert not len(recorded.of["kernel"])
