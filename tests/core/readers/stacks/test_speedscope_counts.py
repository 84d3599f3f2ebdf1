"""Samples and events of speedscope files, read in pieces, against a naive count and walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import CancelledError
from flame.core.readers.shared.file_stream import FileStream
from tests.support.writers.speedscopefile import (
    Stack,
    document,
    evented,
    opened,
    refusal,
    sampled,
    stacks,
)


def read_in_pieces_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = partial(FileStream, piece=size)
    monkeypatch.setattr("flame.core.readers.stacks.speedscope.FileStream", stream)


def test_many_samples_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [[number % 4] * (number % 7) for number in range(500)]
    data = document(sampled(samples, [1] * 500, unit="none"))
    whole = opened(data)
    read_in_pieces_of(5, monkeypatch)
    assert stacks(opened(data)) == stacks(whole)
    bad = document(sampled([*samples, [4]], [1] * 501))
    assert refusal(bad).startswith("profiles[0].samples[500]: frame 4")


def test_samples_that_hardly_repeat_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [[number % 4] * (number // 4 % 50) for number in range(400)]
    data = document(sampled(samples, [1] * 400, unit="none"), sampled(samples, [2] * 400))
    whole = opened(data)
    read_in_pieces_of(99, monkeypatch)
    monkeypatch.setattr("flame.core.readers.stacks.speedscope_stacks._MANY", 3)
    assert stacks(opened(data)) == stacks(whole)
    bad = document(sampled([*samples, [4]], [1] * 401))
    assert refusal(bad).startswith("profiles[0].samples[400]: frame 4")


def test_progress_is_told_and_may_stop() -> None:
    told: list[tuple[str, int, int]] = []
    data = document(sampled([[0]], [1]))
    opened(data, lambda *now: told.append(now))
    # All of the file is read; its stacks are still to come.
    assert told[-1] == ("merging stacks", 0, 0)
    assert ("reading", 8000, 10000) in told

    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        opened(data, stop)


weights = st.one_of(
    st.integers(0, 10**6),
    st.integers(0, 10**6).map(lambda number: number / 1000),
)
samples = st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=5), weights), max_size=20)


def exact(weight: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(str(weight))


@given(samples, st.sampled_from(["seconds", "microseconds", "none"]))
def test_samples_are_those_of_a_naive_count(told: list[tuple[list[int], float]], unit: str) -> None:
    profile = sampled([stack for stack, _ in told], [weight for _, weight in told], unit=unit)
    raw = opened(document(profile))
    scale = {"ns": {"seconds": 10**9, "microseconds": 10**3}.get(unit, 1), "count": 1}.get(
        raw.measures[0].unit, 0
    ) or 10 ** int(raw.measures[0].unit.removeprefix("1e-"))
    expected: Counter[Stack] = Counter()
    for stack, weight in told:
        expected[tuple("abcd"[frame] for frame in stack)] += int(exact(weight) * scale)
    assert stacks(raw) == {stack: value for stack, value in expected.items() if value}


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[tuple[str, int, int]], dict[Stack, int]]:
    """Nested events, and the time spent in each stack, told while they are made."""
    open_now: list[int] = []
    events: list[tuple[str, int, int]] = []
    spent: Counter[Stack] = Counter()
    at = draw(st.integers(-5, 5))
    for step in draw(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 2)))):
        opening, frame, wait = step
        at = _wait(at, wait, open_now, spent)
        if opening or not open_now:
            open_now.append(frame)
            events.append(("O", frame, at))
        else:
            events.append(("C", open_now.pop(), at))
    while open_now:
        at = _wait(at, draw(st.integers(0, 2)), open_now, spent)
        events.append(("C", open_now.pop(), at))
    return events, dict(spent)


def _wait(at: int, time: int, open_now: list[int], spent: Counter[Stack]) -> int:
    if open_now and time:
        spent[tuple("abcd"[frame] for frame in open_now)] += time
    return at + time


@given(walks())
def test_events_are_those_of_a_naive_walk(
    walk: tuple[list[tuple[str, int, int]], dict[Stack, int]],
) -> None:
    events, spent = walk
    raw = opened(document(evented(*events, unit="nanoseconds")))
    assert stacks(raw) == spent
    assert raw.start is not None
    assert (np.diff(raw.start) >= raw.measures[0].values[:-1]).all()


@given(
    st.lists(st.tuples(st.sampled_from("OC"), st.integers(0, 2), st.integers(0, 3)), max_size=12)
)
def test_events_of_any_kind_are_read_or_refused_as_by_a_naive_walk(
    events: list[tuple[str, int, int]],
) -> None:
    data = document(evented(*events, unit="nanoseconds"), frames="ab")
    wrong = _first_wrong(events)
    if wrong is None:
        opened(data)
    else:
        assert refusal(data).startswith("profiles[0].events[")


def _first_wrong(events: Sequence[tuple[str, int, int]]) -> int | None:
    open_now: list[int] = []
    for number, (kind, frame, at) in enumerate(events):
        if frame > 1 or (number and at < events[number - 1][2]):
            return number
        if kind == "O":
            open_now.append(frame)
        elif not open_now or open_now.pop() != frame:
            return number
    return len(events) if open_now else None
