"""The line that says how a recording goes on, and the news of its processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flame.core.live.status import Rates, SourceStatus, State, Status
from flame.core.live.window import LAST_10, SECOND
from flame.tui.live.status_line import LiveStatusLine, clock, news
from flame.tui.toolkit.ansi_palette import NoColours
from flame.tui.toolkit.lines import line_width

RATES = Rates(SECOND, np.full(60, 0.63), np.full(60, 12_400))
COLOURS = NoColours()


def status(*states: State, dropped: int = 0) -> Status:
    sources = tuple(
        SourceStatus(100 + place, f"rank {place}", state, dropped, 0)
        for place, state in enumerate(states)
    )
    return Status(sources, RATES, 0, 0, 187 * SECOND)


def text(pulse: LiveStatusLine, width: int = 120) -> str:
    line = pulse.line(COLOURS, width)
    assert line_width(line) <= width
    return "".join(piece.text for piece in line)


def test_a_clock_counts_seconds_minutes_and_hours() -> None:
    assert [clock(one) for one in (0, 59.9, 187, 3753)] == ["0:00", "0:59", "3:07", "1:02:33"]


def test_the_line_says_state_window_time_and_rates() -> None:
    said = text(LiveStatusLine(status(State.RUNNING), LAST_10))
    assert said.startswith(" ● live  last 10 s ▾ · 3:07 ")
    assert "63 %" in said and "12.4k/s" in said


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ((State.ENDED, State.RUNNING), "● live"),
        ((State.ENDED, State.ENDED), "ended"),
        ((State.ENDED, State.KILLED), "killed"),
        ((State.FULL, State.KILLED), "full"),
        ((), "waiting"),
    ],
)
def test_the_state_is_that_of_the_process_that_fared_worst(
    states: tuple[State, ...], said: str
) -> None:
    assert text(LiveStatusLine(status(*states), LAST_10)).startswith(f" {said} ")


def test_a_pause_says_how_far_behind_the_picture_is() -> None:
    pulse = LiveStatusLine(status(State.RUNNING), LAST_10, paused=-83.0)
    assert " behind  last 10 s" in text(pulse).replace("  ", " ").replace(" last", "  last")


@pytest.mark.parametrize("width", [20, 36, 60, 80, 250])
def test_what_is_wrong_stays_in_any_width(width: int) -> None:
    said = text(LiveStatusLine(status(State.RUNNING, dropped=1_203), LAST_10), width)
    assert "● live" in said
    assert ("dropped" in said) == (width >= 60)


def test_news_of_processes() -> None:
    one, two = status(State.RUNNING), status(State.RUNNING, State.RUNNING)
    assert news(one, one) == ""
    assert news(one, two) == "rank 1 joined"
    assert news(one, status(*4 * [State.RUNNING])) == "rank 1 and 2 more joined"
    assert news(two, status(State.RUNNING, State.KILLED)) == "rank 1 ended without saying so"
    assert news(two, status(State.ENDED, State.ENDED)).startswith("all 2 processes ended; ")
    assert news(one, status(State.KILLED)).startswith("the process ended without saying so; ")
    assert news(one, status(State.STOPPED)).startswith("the process: recording was stopped; ")
    assert news(replace(one, sources=()), one) == ""


def test_a_process_that_stands_still_is_not_live() -> None:
    known = status(State.RUNNING, State.ENDED)
    first, *rest = known.sources
    halted = replace(known, sources=(replace(first, halted=True), *rest))
    assert text(LiveStatusLine(halted, LAST_10)).startswith(" halted ")
    both = replace(known, sources=(replace(first, halted=True), first))
    assert text(LiveStatusLine(both, LAST_10)).startswith(" ● live ")
