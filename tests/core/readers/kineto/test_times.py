"""Microseconds to nanoseconds, exactly as they are spelled."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.kineto.events import (
    EXACT_US,
    LIMIT,
    EventDecoder,
    TraceEvent,
    to_nanoseconds,
)


def decoded(*texts: str) -> list[int | float | Decimal | None]:
    events = ",".join(f'{{"ts": {text}}}' for text in texts).encode()
    return [event.ts for event in EventDecoder().decode(events)]


@given(st.lists(st.integers(-(10**18), LIMIT // 1000 * 1000), min_size=1, max_size=20))
def test_three_decimals_are_nanoseconds_without_drift(times: list[int]) -> None:
    spelled = [f"{'-' * (ns < 0)}{abs(ns) // 1000}.{abs(ns) % 1000:03}" for ns in times]
    ns, known = to_nanoseconds(decoded(*spelled))
    assert known.all()
    # Negative times beyond what a float holds do not occur: clocks begin at 0.
    exact = [(a, b) for a, b in zip(ns.tolist(), times, strict=True) if b > -EXACT_US * 1000]
    assert all(a == b for a, b in exact)


def test_whole_microseconds_stay_whole() -> None:
    assert to_nanoseconds(decoded("1661203462598738", "3"))[0].tolist() == [
        1661203462598738000,
        3000,
    ]


def test_unix_times_with_decimals_are_exact_beside_whole_ones() -> None:
    values = decoded("1700000000000000.123", "1700000000000001", "7.5")
    assert to_nanoseconds(values)[0].tolist() == [1700000000000000123, 1700000000000001000, 7500]


def test_largest_float_times_keep_every_nanosecond() -> None:
    first = int(EXACT_US) * 1000 - 2000
    spelled = [f"{ns // 1000}.{ns % 1000:03}" for ns in range(first, first + 2000)]
    values = decoded(*spelled)
    assert all(isinstance(value, float) for value in values)
    assert to_nanoseconds(values)[0].tolist() == list(range(first, first + 2000))


@pytest.mark.parametrize("text", ["null", "1e300", "-1e300", f"{LIMIT}"])
def test_what_is_no_time_is_told(text: str) -> None:
    ns, known = to_nanoseconds(decoded(text, "1"))
    assert (ns.tolist(), known.tolist()) == ([0, 1000], [False, True])


def test_absent_time_is_none() -> None:
    assert TraceEvent().ts is None
    assert to_nanoseconds([None])[1].tolist() == [False]
    assert to_nanoseconds([])[0].tolist() == []
