"""The line that says how a recording goes on, and the news of its processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flame.core.live.status import LiveStatus, Rates, SourceState, SourceStatus
from flame.core.live.window import LAST_10, SECOND
from flame.tui.live.status_line import LiveStatusLine, clock, news
from flame.tui.toolkit.ansi_palette import NoColours
from flame.tui.toolkit.lines import line_width

RATES = Rates(SECOND, np.full(60, 0.63), np.full(60, 12_400))
COLOURS = NoColours()


def status(*states: SourceState, dropped: int = 0) -> LiveStatus:
    sources = tuple(
        SourceStatus(100 + place, f"rank {place}", state, dropped, 0)
        for place, state in enumerate(states)
    )
    return LiveStatus(sources, RATES, 0, 0, 187 * SECOND)


def text(status_line: LiveStatusLine, width: int = 120) -> str:
    line = status_line.line(COLOURS, width)
    assert line_width(line) <= width
    return "".join(piece.text for piece in line)


def test_a_clock_counts_seconds_minutes_and_hours() -> None:
    assert [clock(one) for one in (0, 59.9, 187, 3753)] == ["0:00", "0:59", "3:07", "1:02:33"]


def test_the_line_says_state_window_time_and_rates() -> None:
    said = text(LiveStatusLine(status(SourceState.RUNNING), LAST_10))
    assert said.startswith(" ● live  last 10 s ▾ · 3:07 ")
    assert "63 %" in said and "12.4k/s" in said


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ((SourceState.ENDED, SourceState.RUNNING), "● live"),
        ((SourceState.ENDED, SourceState.ENDED), "ended"),
        ((SourceState.ENDED, SourceState.KILLED), "killed"),
        ((SourceState.FULL, SourceState.KILLED), "full"),
        ((), "waiting"),
    ],
)
def test_the_state_is_that_of_the_process_that_fared_worst(
    states: tuple[SourceState, ...], said: str
) -> None:
    assert text(LiveStatusLine(status(*states), LAST_10)).startswith(f" {said} ")


def test_a_pause_says_how_far_behind_the_picture_is() -> None:
    status_line = LiveStatusLine(status(SourceState.RUNNING), LAST_10, paused=-83.0)
    assert " behind  last 10 s" in text(status_line).replace("  ", " ").replace(" last", "  last")


@pytest.mark.parametrize("width", [20, 36, 60, 80, 250])
def test_what_is_wrong_stays_in_any_width(width: int) -> None:
    said = text(LiveStatusLine(status(SourceState.RUNNING, dropped=1_203), LAST_10), width)
    assert "● live" in said
    assert ("dropped" in said) == (width >= 60)


def test_news_of_processes() -> None:
    one, two = status(SourceState.RUNNING), status(SourceState.RUNNING, SourceState.RUNNING)
    assert news(one, one) == ""
    assert news(one, two) == "rank 1 joined"
    assert news(one, status(*4 * [SourceState.RUNNING])) == "rank 1 and 2 more joined"
    assert (
        news(two, status(SourceState.RUNNING, SourceState.KILLED))
        == "rank 1 ended without saying so"
    )
    assert news(two, status(SourceState.ENDED, SourceState.ENDED)).startswith(
        "all 2 processes ended; "
    )
    assert news(one, status(SourceState.KILLED)).startswith("the process ended without saying so; ")
    assert news(one, status(SourceState.STOPPED)).startswith("the process: recording was stopped; ")
    assert news(replace(one, sources=()), one) == ""


def test_a_process_that_stands_still_is_not_live() -> None:
    known = status(SourceState.RUNNING, SourceState.ENDED)
    first, *rest = known.sources
    halted = replace(known, sources=(replace(first, halted=True), *rest))
    assert text(LiveStatusLine(halted, LAST_10)).startswith(" halted ")
    both = replace(known, sources=(replace(first, halted=True), first))
    assert text(LiveStatusLine(both, LAST_10)).startswith(" ● live ")
