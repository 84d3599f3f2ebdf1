"""How long a result waits for the one before, and that what is to be called later is called."""

from __future__ import annotations

import asyncio
from itertools import count
from time import monotonic
from types import SimpleNamespace

import pytest
from textual import timer
from textual.app import App

from flame.tui.toolkit.background import Pace, call_once
from tests.support.waiting import PATIENCE


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


async def test_what_is_called_later_is_called_however_the_process_stalls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = App[None]()
    async with app.run_test():
        stalled = SimpleNamespace(get_time=count(step=10).__next__)
        monkeypatch.setattr(timer, "_time", stalled)
        called = asyncio.Event()
        call_once(app, 0.01, called.set)
        await asyncio.wait_for(called.wait(), PATIENCE)


async def test_what_is_called_later_and_stopped_is_not_called() -> None:
    app = App[None]()
    async with app.run_test():
        first, second = asyncio.Event(), asyncio.Event()
        call_once(app, 0.001, first.set).stop()
        call_once(app, 0.002, second.set)
        await asyncio.wait_for(second.wait(), PATIENCE)
        assert not first.is_set()
