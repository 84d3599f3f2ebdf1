"""Which forward operator a backward one belongs to, by arrows and by sequence numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flame.core.options import LoadOptions, silent
from flame.core.readers.kineto import reader as kineto
from tests.kinetofile import KinetoFile

MAIN, AUTOGRAD, OTHER = 1, 2, 3


@pytest.fixture
def trace() -> KinetoFile:
    return KinetoFile()


def links(trace: KinetoFile, folder: Path) -> dict[str, str]:
    """Name of the forward operator by that of the backward one."""
    path = trace.write(folder / "trace.json")
    raw = kineto.read(path, LoadOptions(forward=True), silent)
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
    assert kineto.read(path, LoadOptions(), silent).operators is None


def test_traces_without_ranges_have_no_links(trace: KinetoFile, tmp_path: Path) -> None:
    trace.kernel("k", 0, 1)
    where = {"pid": 1, "tid": 1, "ts": 1}
    trace.flow(1, where, where)
    assert links(trace, tmp_path) == {}
