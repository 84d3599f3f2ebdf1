"""How long a result waits for the one before."""

from __future__ import annotations

from time import monotonic

from flame.tui.toolkit.background import Pace


def test_the_first_result_comes_at_once() -> None:
    assert Pace(1000).wait() == 0


def test_a_result_waits_the_longer_the_longer_the_last_one_took() -> None:
    pace = Pace(100, share=3, most=1000)
    waits = []
    for seconds in (0, 60, 5000):
        pace.delay(seconds, since=monotonic())
        waits.append(round(pace.wait(), -1))
    assert waits == [100, 180, 1000]


def test_time_that_has_passed_counts_and_a_hurry_ends_all_waiting() -> None:
    pace = Pace(100)
    pace.delay(0, since=monotonic() - 200)
    assert pace.wait() == 0
    pace.delay(0, since=monotonic())
    pace.hurry()
    assert pace.wait() == 0
