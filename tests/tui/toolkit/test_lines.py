"""What of a line is painted anew: up to the last cell that differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from flame.tui.toolkit.lines import change_end

RED, BLUE = Style(color="red"), Style(color="blue")


def strip(*parts: tuple[str, Style]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts])


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [
        (strip(("total 1", RED)), strip(("total 1", RED)), 0),
        (strip(("total 1 ms  ", RED)), strip(("total 2 ms  ", RED)), 7),
        (strip(("ab", RED), ("cd", BLUE)), strip(("ax", RED), ("cd", BLUE)), 2),
        (strip(("ab", RED)), strip(("ab", BLUE)), 2),
        (strip(("カb ", RED)), strip(("キb ", RED)), 4),
        (strip(("a", RED), ("\u0301", BLUE)), strip(("a", RED), ("\u0300", BLUE)), 1),
        (strip(("ab", RED)), strip(("abc", RED)), 3),
        (None, strip(("ab", RED)), 2),
    ],
)
def test_the_end_of_a_change(before: Strip | None, after: Strip, end: int) -> None:
    assert change_end(before, after) == end


STRIPS = st.lists(st.tuples(st.text("ab ", min_size=1, max_size=3), st.sampled_from([RED, BLUE])))


@given(STRIPS, STRIPS)
def test_what_is_behind_the_end_is_the_same(
    first: list[tuple[str, Style]], second: list[tuple[str, Style]]
) -> None:
    width = max(strip(*first).cell_length, strip(*second).cell_length) + 2
    before, after = (strip(*one).adjust_cell_length(width) for one in (first, second))
    end = change_end(before, after)
    assert before.crop(end, width).text == after.crop(end, width).text
    assert cells(before)[end:] == cells(after)[end:]


def cells(one: Strip) -> list[tuple[str, Style | None]]:
    return [(char, segment.style) for segment in one for char in segment.text]
