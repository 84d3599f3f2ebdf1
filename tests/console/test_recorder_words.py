"""What `flame info` says of how recording itself went."""

from __future__ import annotations

from flame.console.recorder_words import unusual_counts


def test_nothing_is_said_where_all_is_well() -> None:
    usual = {"kernel_records": 10**9, "flushes": 7, "untimed_records": 0, "longest_flush_ns": 10**6}
    assert list(unusual_counts([usual, {}])) == []


def test_what_is_strange_is_summed_and_the_longest_is_of_all() -> None:
    first = {"untimed_records": 2, "longest_callback_ns": 20_000_000, "longest_flush_ns": 3 * 10**9}
    second = {"untimed_records": 1, "null_buffers": 5, "longest_flush_ns": 2 * 10**9}
    assert list(unusual_counts([first, second])) == [
        "3 records of GPU work without times",
        "5 requests of CUPTI for memory that got none",
        "a flush of 3.00 s",
        "a callback of 20.0 ms",
    ]
