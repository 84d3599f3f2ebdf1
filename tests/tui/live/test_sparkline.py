"""The line that says how a live recording is doing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from flame.core.live.status import LiveStatus, Rates, SourceState, SourceStatus
from flame.core.live.window import SECOND
from flame.tui.live.status_line import rates_line, sparkline
from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.ascii import in_ascii
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette

PALETTE = Palette((18, 18, 18), (228, 228, 228))


def status(
    busy: list[float] | None = None,
    launches: list[int] | None = None,
    *,
    step: int = SECOND,
    dropped: int = 0,
    lag: int = 0,
    behind: int = 0,
    states: tuple[SourceState, ...] = (SourceState.RUNNING,),
) -> LiveStatus:
    """A recording of as many processes as ``states``, the first of which has ``dropped``."""
    rates = Rates(
        step,
        np.array([0.0] * 60 if busy is None else busy),
        np.array([0] * 60 if launches is None else launches, np.int64),
    )
    sources = tuple(
        SourceStatus(100 + place, "", state, 0 if place else dropped, 1)
        for place, state in enumerate(states)
    )
    return LiveStatus(sources, rates, lag, behind, SECOND)


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


def warnings(line: Line) -> str:
    return text([piece for piece in line if piece.tone == "warning"])


# A sparkline


def test_bars_grow_with_the_values() -> None:
    assert sparkline(np.arange(9), 9) == " ▁▂▃▄▅▆▇█"


def test_a_full_bar_is_the_top_where_one_is_named() -> None:
    assert sparkline(np.array([0.25, 0.5, 1.0, 7.0]), 4, 1.0) == "▂▄██"


def test_bars_are_means_of_what_they_stand_for_the_newest_last() -> None:
    assert sparkline(np.array([7, 9, 0, 9, 8, 8, 8]), 3) == "▆█"


@given(st.lists(st.integers(0, 50), min_size=21, max_size=40), st.integers(1, 7))
def test_bars_move_on_without_changing(history: list[int], cells: int) -> None:
    """Twenty values at a time of a longer history, each look one step later."""
    each = -(-20 // cells)
    drawn: dict[int, str] = {}
    for number in range(20, len(history) + 1):
        bars = sparkline(np.array(history[number - 20 : number]), cells, 50, number)
        complete = bars[:-1] if number % each else bars
        for place, bar in enumerate(reversed(complete)):
            assert drawn.setdefault(number // each - place, bar) == bar


@pytest.mark.parametrize(("values", "cells"), [([], 5), ([1, 2], 0), ([1, 2], -3)])
def test_nothing_is_drawn_of_nothing_or_in_no_room(values: list[int], cells: int) -> None:
    assert sparkline(np.array(values), cells) == ""


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=80), st.integers(1, 80))
def test_only_zeros_are_drawn_as_nothing_and_nothing_is_too_wide(
    values: list[int], cells: int
) -> None:
    drawn = sparkline(np.array(values, np.int64), cells)
    each = -(-len(values) // cells)
    assert len(drawn) == len(values) // each <= cells
    groups = np.array(values)[len(values) % each :].reshape(-1, each)
    assert [bar != " " for bar in drawn] == [bool(group.any()) for group in groups]
    assert not any(values[len(values) % each :]) or "█" in drawn


# The line


def test_it_says_what_was_and_what_is_now() -> None:
    line = rates_line(status([0.0] * 59 + [0.63], [0] * 59 + [12_400]), PALETTE, 160)
    assert text(line).split() == ["GPU", "▆", "63", "%", "launches", "█", "12.4k/s"]
    assert warnings(line) == ""


def test_now_is_the_last_second_whatever_the_step() -> None:
    line = rates_line(status([1.0, 0.0, 0.5], [900, 30, 40], step=SECOND // 2), PALETTE, 80)
    assert "25 %" in text(line) and "70/s" in text(line)


def test_without_gpus_there_is_nothing_of_them() -> None:
    assert "GPU" not in text(rates_line(status(), PALETTE, 80, gpus=False))
    assert "launches" in text(rates_line(status(), PALETTE, 80, gpus=False))


def test_of_rates_that_nobody_knows_nothing_is_said() -> None:
    assert rates_line(status([], []), PALETTE, 80) == []
    assert text(rates_line(status([], [], dropped=2), PALETTE, 80)) == " 2 records dropped"


def test_what_goes_wrong_is_said_and_leads_to_the_notes() -> None:
    line = rates_line(status(dropped=1203, lag=2_100_000_000), PALETTE, 120)
    assert warnings(line) == "1,203 records dropped, 2.10 s behind"
    assert line[-1].action == "screen.coverage"


def test_of_much_that_is_to_be_read_it_is_said_how_much() -> None:
    line = rates_line(status(lag=90 * SECOND, behind=1_204_000_000), PALETTE, 120)
    assert warnings(line) == "90.0 s behind, 1.20 GB to read"
    line = rates_line(status(lag=2 * SECOND, behind=4_000_000), PALETTE, 120)
    assert warnings(line) == "2.00 s behind"


def test_a_recording_without_room_is_told_from_one_of_many() -> None:
    one = rates_line(status(states=(SourceState.FULL,)), PALETTE, 120)
    assert warnings(one) == "no more room: recording has stopped"
    some = rates_line(status(states=(SourceState.RUNNING, SourceState.FULL)), PALETTE, 120)
    assert warnings(some) == "no more room for 1 of 2: recording has stopped"


def test_what_is_fresh_enough_is_not_called_late() -> None:
    assert warnings(rates_line(status(lag=999_999_999), PALETTE, 120)) == ""


def test_what_matters_least_gives_way_first() -> None:
    busy = status([1.0] * 60, [5] * 60, dropped=1203)
    shown = [text(rates_line(busy, PALETTE, width)) for width in (120, 60, 38, 26, 10)]
    assert ["█" in line for line in shown] == [True, False, False, False, False]
    assert ["launches" in line for line in shown] == [True, True, False, False, False]
    assert ["GPU" in line for line in shown] == [True, True, True, False, False]
    assert ["1,203" in line for line in shown] == [True] * 5


@given(
    st.integers(0, 200), st.integers(0, 10**12), st.integers(0, 10**12), st.booleans(),
    st.integers(0, 120),
)  # fmt: skip
def test_it_never_takes_more_than_its_width(
    width: int, dropped: int, lag: int, gpus: bool, steps: int
) -> None:
    now = status([1.0] * steps, [10**9] * steps, dropped=dropped, lag=lag)
    assert line_width(rates_line(now, PALETTE, width, gpus)) <= width


def test_it_keeps_its_place_while_numbers_change() -> None:
    few, many = status([0.01] * 60, [3] * 60), status([1.0] * 60, [999_000] * 60)
    lines = [text(rates_line(one, PALETTE, 100)) for one in (few, many)]
    assert len({(len(line), line.index("launches")) for line in lines}) == 1


def test_in_ascii_bars_still_grow() -> None:
    line = rates_line(status([0.1, 1.0], [1, 1]), PALETTE, 80)
    assert in_ascii(text(line)).isascii()
    assert in_ascii(sparkline(np.arange(9), 9)) == " _.:=+*##"


@pytest.mark.parametrize("palette", [SixteenColours(), NoColours()])
def test_limited_terminals_get_no_more_colours_than_they_have(palette: Palette) -> None:
    line = rates_line(status([1.0], [1]), palette, 80)
    styles = [piece.tone for piece in line if isinstance(piece.tone, Style)]
    assert len(styles) == 2
    assert all(style.color is None or style.color.is_system_defined for style in styles)
