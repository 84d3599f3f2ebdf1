"""Which forward operator a backward one belongs to, by arrows and by sequence numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flame.core.options import LoadOptions, silent
from flame.core.readers.kineto import reader as kineto
from tests.support.writers.kinetofile import KinetoFile

MAIN, AUTOGRAD, OTHER = 1, 2, 3


@pytest.fixture
def trace() -> KinetoFile:
    return KinetoFile()


def links(trace: KinetoFile, folder: Path) -> dict[str, str]:
    """Name of the forward operator by that of the backward one."""
    path = trace.write(folder / "trace.json")
    raw = kineto.read_kineto(path, LoadOptions(forward=True), silent)
    assert raw.operators is not None
    names = [raw.frames[frame].name for frame in raw.ranges.frame.tolist()]
    pairs = enumerate(raw.operators.forward.tolist())
    return {names[row]: names[forward] for row, forward in pairs if forward >= 0}


def forward(
    trace: KinetoFile, name: str, at: int, number: int, tid: int = MAIN, length: int = 10
) -> dict[str, Any]:
    where = {"Sequence_number": number, "Fwd_thread_id": 0, "tid": tid}
    return trace.op(name, at, at + length, **where)


def backward(
    trace: KinetoFile, name: str, at: int, number: int, thread: int = 1, length: int = 10
) -> dict[str, Any]:
    where = {"Sequence_number": number, "Fwd_thread_id": thread, "tid": AUTOGRAD}
    return trace.op(name, at, at + length, **where)


def test_of_nested_forward_operators_the_innermost_is_linked(
    trace: KinetoFile, tmp_path: Path
) -> None:
    forward(trace, "aten::linear", 0, 7, length=30)
    forward(trace, "aten::addmm", 5, 7)
    forward(trace, "aten::relu", 40, 8)
    backward(trace, "ReluBackward", 100, 8)
    backward(trace, "AddmmBackward", 120, 7)
    assert links(trace, tmp_path) == {
        "ReluBackward": "aten::relu",
        "AddmmBackward": "aten::addmm",
    }


def test_numbers_used_later_again_do_not_link_back_in_time(
    trace: KinetoFile, tmp_path: Path
) -> None:
    forward(trace, "before", 0, 7)
    backward(trace, "Backward", 100, 7)
    forward(trace, "after", 200, 7)
    backward(trace, "Alone", 300, 9)
    assert links(trace, tmp_path) == {"Backward": "before"}


def test_forward_thread_is_the_one_whose_numbers_fit(trace: KinetoFile, tmp_path: Path) -> None:
    for number in range(5):
        forward(trace, f"mine {number}", 10 * number, number)
        backward(trace, f"back {number}", 500 + 10 * number, number)
    forward(trace, "foreign", 55, 3, tid=OTHER)
    assert links(trace, tmp_path)["back 3"] == "mine 3"


def test_of_threads_that_fit_equally_well_the_most_recent_counts(
    trace: KinetoFile, tmp_path: Path
) -> None:
    """Threads that run replicas of a model count from 0 at each step."""
    forward(trace, "step 1", 0, 7)
    backward(trace, "back 1", 100, 7)
    forward(trace, "step 2", 200, 7, tid=OTHER)
    backward(trace, "back 2", 300, 7, thread=2)
    assert links(trace, tmp_path) == {"back 1": "step 1", "back 2": "step 2"}


def test_numbers_are_those_of_a_process(trace: KinetoFile, tmp_path: Path) -> None:
    for pid in (1, 2):
        trace.pid = pid
        forward(trace, f"forward of {pid}", 10 * pid, 7)
        backward(trace, f"Backward of {pid}", 100, 7)
    trace.pid = 3
    backward(trace, "Alone", 100, 7)
    assert links(trace, tmp_path) == {
        "Backward of 1": "forward of 1",
        "Backward of 2": "forward of 2",
    }


def test_one_arrow_shows_which_thread_is_meant(trace: KinetoFile, tmp_path: Path) -> None:
    for number in range(3):
        mine = forward(trace, f"mine {number}", 10 * number, number)
        forward(trace, f"other {number}", 10 * number + 5, number, tid=OTHER)
    outer = backward(trace, "evaluate_function", 500, 2, length=20)
    backward(trace, "Backward 2", 502, 2)
    backward(trace, "Backward 0", 530, 0)
    trace.flow(1, mine, outer)
    assert links(trace, tmp_path) == {
        "evaluate_function": "mine 2",
        "Backward 2": "mine 2",
        "Backward 0": "mine 0",
    }


def test_arrows_of_two_processes_are_kept_apart(trace: KinetoFile, tmp_path: Path) -> None:
    """Files put together have their numbers twice."""
    for pid in (1, 2):
        source = trace.op(f"forward of {pid}", 0, 10, pid=pid)
        trace.flow(5, source, trace.op(f"Backward of {pid}", 50, 60, pid=pid, tid=AUTOGRAD))
    assert links(trace, tmp_path) == {
        "Backward of 1": "forward of 1",
        "Backward of 2": "forward of 2",
    }


def test_of_operators_that_start_at_once_the_shortest_is_the_innermost(
    trace: KinetoFile, tmp_path: Path
) -> None:
    """Old traces have whole microseconds, and list operators as they end."""
    forward(trace, "aten::t", 0, 7, length=5)
    forward(trace, "aten::linear", 0, 7, length=30)
    backward(trace, "TBackward", 100, 7)
    assert links(trace, tmp_path) == {"TBackward": "aten::t"}


def test_arrows_count_more_than_numbers(trace: KinetoFile, tmp_path: Path) -> None:
    forward(trace, "by number", 0, 7)
    source = trace.op("outer", 20, 40)
    trace.op("by arrow", 20, 30)
    target = backward(trace, "evaluate_function", 100, 7, length=20)
    backward(trace, "Backward", 100, 7)
    trace.flow(1, source, target)
    trace.flow(2, source, {**target, "ts": 999})
    found = links(trace, tmp_path)
    assert found == {"evaluate_function": "by arrow", "Backward": "by number"}


def test_without_the_option_nothing_is_linked(trace: KinetoFile, tmp_path: Path) -> None:
    forward(trace, "forward", 0, 7)
    backward(trace, "Backward", 100, 7)
    path = trace.write(tmp_path / "trace.json")
    assert kineto.read_kineto(path, LoadOptions(), silent).operators is None


def test_traces_without_ranges_have_no_links(trace: KinetoFile, tmp_path: Path) -> None:
    trace.kernel("k", 0, 1)
    where = {"pid": 1, "tid": 1, "ts": 1}
    trace.flow(1, where, where)
    assert links(trace, tmp_path) == {}
