"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.units import (
    format_age,
    format_bytes,
    format_count,
    format_counted,
    format_ns,
    format_percent,
    format_short,
    format_value,
    format_whole_percent,
    one_of,
)

SCALE = {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
DECADE = 10 * 365 * 86_400 * 1_000_000_000


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (999.6, "1.00 µs"),
        (123_456, "123 µs"),
        (56_700_000, "56.7 ms"),
        (1_234_000_000, "1.23 s"),
        (3_600_000_000_000, "3600 s"),
        (-2_500, "-2.50 µs"),
        (0.4, "0 ns"),
    ],
)
def test_times(ns: float, text: str) -> None:
    assert format_ns(ns) == text


def value(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * SCALE[unit]


@given(st.integers(0, DECADE))
def test_a_written_time_is_the_time_to_half_a_percent(ns: int) -> None:
    assert value(format_ns(ns)) == pytest.approx(ns, rel=0.006)


@given(st.integers(0, DECADE), st.integers(0, 10**6))
def test_a_longer_time_never_reads_shorter(ns: int, more: int) -> None:
    assert value(format_ns(ns)) <= value(format_ns(ns + more))


def test_counts_have_their_thousands_apart() -> None:
    assert format_count(1_234_567) == "1,234,567"


def test_a_value_is_written_in_its_unit() -> None:
    assert format_value(1_500, "ns") == "1.50 µs"
    assert format_value(1_500, "count") == "1,500"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 8, "12.5 %"),
        (8, 8, "100.0 %"),
        (0, 8, "0 %"),
        (0, 0, "0 %"),
        (5, 0, "0 %"),
        (1, 1_000_000, "<0.1 %"),
        (5, 10_000, "0.1 %"),
    ],
)
def test_shares(part: int, whole: int, text: str) -> None:
    assert format_percent(part, whole) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (4_096, "4.10 kB"),
        (67_108_864, "67.1 MB"),
        (999_600, "1.00 MB"),
        (22_100_000_000, "22.1 GB"),
        (5e12, "5.00 TB"),
        (3e18, "3000 PB"),
    ],
)
def test_amounts_of_data_are_in_powers_of_ten(size: float, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("percent", "text"), [(0, "0 %"), (0.004, "<1 %"), (0.6, "1 %"), (46.6, "47 %"), (100, "100 %")]
)
def test_whole_per_cent_of_something_is_never_nothing(percent: float, text: str) -> None:
    assert format_whole_percent(percent) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_500, "ns", "1.50 µs"),
        (1_500, "count", "1,500"),
        (1_500, "bytes", "1.50 kB"),
        (30_500, "1e-3", "30.5"),
        (1_234_567_000, "1e-3", "1,234,567"),
        (1, "1e-9", "0.000000001"),
        (0, "1e-1", "0"),
    ],
)
def test_values_are_written_in_their_unit(value: int, unit: str, text: str) -> None:
    assert format_value(value, unit) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (0.4, "0"),
        (987, "987"),
        (999.4, "999"),
        (999.6, "1.00k"),
        (12_400, "12.4k"),
        (999_499, "999k"),
        (3_210_000, "3.21M"),
        (47_000_000_000, "47.0G"),
    ],
)
def test_short_numbers(count: float, text: str) -> None:
    assert format_short(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-0.3, "0 s"),
        (0.9, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (172_800, "2 d"),
        (400 * 86_400, "400 d"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


# Counts with a word


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 frames"), (1, "1 frame"), (2, "2 frames"), (2_000, "2,000 frames")]
)
def test_a_word_goes_with_its_number(number: int, text: str) -> None:
    assert format_counted(number, "frame", "frames") == text


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("GPU activities", "GPU activity"),
        ("CUDA API calls", "CUDA API call"),
        ("operators and annotations", "operator or annotation"),
        ("NVTX ranges", "NVTX range"),
        ("samples", "sample"),
        ("profiled launches", "profiled launch"),
        ("processes", "process"),
        ("stacks", "stack"),
    ],
)
def test_one_of_several(plural: str, one: str) -> None:
    assert one_of(plural) == one
