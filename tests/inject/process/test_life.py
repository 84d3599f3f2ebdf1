"""The recording through the life of a process: threads that end, forks, exits, kills, signals."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from inject import build
from tests.inject.scenes import (
    ENDED,
    RUNNING,
    STOPPED,
    Bench,
    assert_consecutive,
    assert_references,
    numbers,
    program,
)
from tests.support.writers.fdumprecords import header, meta, records


@pytest.fixture
def bench(buildable: None, tmp_path: Path) -> Bench:
    return Bench(program(), tmp_path / "dumps")


def test_a_thread_that_ends_lets_its_parts_record_first(bench: Bench) -> None:
    bench.run("locals")
    assert_consecutive(numbers(bench.dump()), dict.fromkeys(range(16), 1))


def test_a_thread_may_record_until_the_very_end(bench: Bench) -> None:
    bench.run("late")
    found = numbers(bench.dump())
    assert found[0] == found[1] == [0]
    written = len(found.get(2, []))
    assert written + header(bench.dump())["dropped"] == 4


def test_what_was_committed_survives_a_kill(bench: Bench) -> None:
    command = [str(bench.program), "endless"]
    with subprocess.Popen(command, env=bench.env(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(150)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    whole = [line for line in lines if len(line.split()) == 8]
    said = [int(count) for count in whole[-1].split()]
    found = numbers(bench.dump())
    assert header(bench.dump())["state"] == RUNNING
    assert_consecutive(found, {writer: len(own) for writer, own in found.items()})
    assert all(len(found.get(writer, [])) >= count for writer, count in enumerate(said))
    assert sum(said) > 10_000
    assert_references(bench.dump())


def test_a_forked_child_that_records_has_a_dump_of_its_own(bench: Bench) -> None:
    bench.run("forks")
    by_pid = {int(header(path)["pid"]): path for path in bench.dumps()}
    forked = {pid: meta(path).get("forked_from") for pid, path in by_pid.items()}
    (parent,) = [pid for pid, source in forked.items() if source is None]
    of_parent = numbers(by_pid[parent])
    assert set(of_parent) == set(range(36))
    assert_consecutive(of_parent, {writer: len(own) for writer, own in of_parent.items()})
    assert len(of_parent[0]) == 10

    children = [numbers(by_pid[pid]) for pid, source in forked.items() if source == [str(parent)]]
    assert len(children) == 2
    for found in children:
        assert_consecutive(found, {0: 1000})
    grandchildren = [pid for pid in by_pid if forked[pid] not in (None, [str(parent)])]
    assert len(grandchildren) == 2  # of children that have none: they did not record
    for pid in grandchildren:
        assert_consecutive(numbers(by_pid[pid]), dict.fromkeys(range(4), 500))
        assert header(by_pid[pid])["state"] == ENDED
    for path in by_pid.values():
        assert_references(path)


def test_ids_of_the_parent_are_void_in_the_child(bench: Bench) -> None:
    bench.run("generations")
    assert len(bench.dumps()) == 2


@pytest.mark.parametrize("scene", ["exit_in_thread", "exit_twice"])
def test_the_end_of_the_program_is_the_end_of_the_dump(bench: Bench, scene: str) -> None:
    bench.run(scene)
    found = numbers(bench.dump())
    assert header(bench.dump())["state"] == ENDED
    assert header(bench.dump())["tail"] == bench.dump().stat().st_size
    assert_consecutive(found, {writer: len(own) for writer, own in found.items()})


def test_an_end_without_goodbye_loses_nothing(bench: Bench) -> None:
    bench.run("quick_exit")
    assert header(bench.dump())["state"] == RUNNING
    for key in ("launch", "range", "kernel"):
        assert_consecutive(numbers(bench.dump(), key), {0: 100})


def test_a_program_still_ends_with_its_last_thread(bench: Bench) -> None:
    bench.run("end_by_threads", FLAME_FLUSH_MS=20)
    assert header(bench.dump())["state"] == ENDED
    assert_consecutive(numbers(bench.dump()), {0: 10, 1: 10})


def test_recording_stops_after_its_time_and_the_program_goes_on(bench: Bench) -> None:
    bench.run("duration", FLAME_DURATION_MS=200)
    head, found = header(bench.dump()), numbers(bench.dump())
    assert (head["state"], head["flags"]) == (ENDED, STOPPED)
    assert 0.15e9 < head["end_monotonic"] - head["start_monotonic"] < 5e9
    assert list(found) == [0]
    assert_consecutive(found, {0: len(found[0])})


def test_parts_flush_all_the_time_and_at_the_end(bench: Bench) -> None:
    bench.run("flush_work", FLAME_FLUSH_MS=5)
    found = numbers(bench.dump())
    assert len(found[1]) >= 3
    assert found[2] == [0]


def test_flush_work_may_stop_the_recording(bench: Bench) -> None:
    bench.run("stop_in_flush_work", FLAME_FLUSH_MS=5)
    assert header(bench.dump())["state"] == ENDED
    assert numbers(bench.dump()) == {0: list(range(10)), 1: [0]}


def test_ranges_that_are_open_at_the_end_stay_open(bench: Bench) -> None:
    bench.run("open_at_stop")
    assert records(bench.dump())["open_range"]["start"].tolist() == [1]


def test_descriptors_that_the_program_takes_away_are_not_used(bench: Bench) -> None:
    bench.run("closed_descriptors")
    assert (bench.folder / "own.txt").read_bytes() == b"mine"
    assert header(bench.dump())["state"] == ENDED
    assert_consecutive(numbers(bench.dump()), {0: 10, 1: 100_000})


def test_a_signal_handler_may_record_anywhere(bench: Bench) -> None:
    tried = int(bench.run("signals"))
    found = numbers(bench.dump())
    assert found[0] == list(range(300_000))
    assert len(found[0]) + len(found[1]) + header(bench.dump())["dropped"] == tried


def test_a_signal_handler_may_fork_anywhere(bench: Bench) -> None:
    tried = int(bench.run("fork_in_handler"))
    (parent,) = [path for path in bench.dumps() if "forked_from" not in meta(path)]
    assert_consecutive(numbers(parent), {0: tried})
    for path in set(bench.dumps()) - {parent}:
        assert set(numbers(path)) == {7}


def test_a_signal_handler_may_fork_while_recording_starts(bench: Bench) -> None:
    bench.run("signal_in_start")
    (parent,) = [path for path in bench.dumps() if "forked_from" not in meta(path)]
    assert_consecutive(numbers(parent), {0: 10, 1: 1})
    (child,) = set(bench.dumps()) - {parent}
    assert_consecutive(numbers(child), {7: 1})


def test_a_signal_handler_may_fork_while_a_child_makes_its_dump(bench: Bench) -> None:
    bench.run("signal_in_start_of_child")
    children = [path for path in bench.dumps() if "forked_from" in meta(path)]
    assert sorted(map(list, map(numbers, children))) == [[1, 2], [7]]


def test_a_signal_handler_may_fork_and_record_while_its_thread_forks(bench: Bench) -> None:
    bench.run("signal_in_fork")
    (parent,) = [path for path in bench.dumps() if "forked_from" not in meta(path)]
    assert_consecutive(numbers(parent), {0: 10, 3: 5})
    assert header(parent)["dropped"] == 1  # the handler's own, in the middle of the fork
    (child,) = set(bench.dumps()) - {parent}
    assert_consecutive(numbers(child), {2: 10})


def test_a_child_that_nobody_is_told_of_writes_nothing(bench: Bench) -> None:
    bench.run("bare_clone")
    assert header(bench.dump())["state"] == ENDED
    assert numbers(bench.dump()) == {0: sorted([*range(10), *range(5)])}
    assert records(bench.dump())["open_range"]["start"].tolist() == [1]


def test_standard_output_is_never_the_dump(bench: Bench) -> None:
    bench.run("standard_descriptors")
    assert_consecutive(numbers(bench.dump()), {0: 10, 1: 100_000})


def test_a_thread_is_not_cancelled_within_a_record(bench: Bench) -> None:
    bench.run("cancelled")
    (child,) = [path for path in bench.dumps() if "forked_from" in meta(path)]
    assert_consecutive(numbers(child), {0: 1})


@pytest.mark.deep
def test_a_flush_that_waits_for_the_end_does_not_delay_it_for_long(
    buildable: None, tmp_path: Path
) -> None:
    """As nothing is done meanwhile, a third of the time is enough to give it up."""
    seconds = 24
    patient = program(*build.OPTIMIZED, f"-DFLAME_PATIENCE_MS={1000 * seconds}")
    bench = Bench(patient, tmp_path / "dumps")
    begun = time.monotonic()
    bench.run("stuck_flush")
    assert time.monotonic() - begun < seconds
    assert header(bench.dump())["state"] == RUNNING
    assert_consecutive(numbers(bench.dump()), {0: 10})
