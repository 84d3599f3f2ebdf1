"""A strip of ranks: who is drawn, in which cell, and what a click does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rich.cells import cell_len

from flame.tui.ranks.imbalance import deviation_words, strength_of, symbol_of
from flame.tui.ranks.strip import Strip, draw_strip, glyph
from flame.tui.toolkit.palette import Palette

PALETTE = Palette((16, 16, 16), (224, 224, 224))


def strip(values: list[int], width: int = 80, halves: bool = False) -> Strip:
    ordered = sorted(values)
    median = ordered[(len(values) + 1) // 2 - 1]
    return draw_strip(np.array(values), median, PALETTE, width, halves)


def texts(found: Strip) -> list[str]:
    return ["".join(piece.text for piece in line) for line in found.lines]


def test_a_cell_says_who_has_more_and_who_less() -> None:
    found = strip([100, 100, 130, 100, 60, 102, 0])
    assert texts(found) == ["··▲·▼·▼"]
    assert found.lines[0][2].action == "screen.one_rank(2)"
    assert found.ranks == 1 and not found.halves


def test_of_what_most_ranks_lack_those_that_have_it_are_marked() -> None:
    found = strip([0, 0, 0, 7])
    assert texts(found) == ["   +"]


@pytest.mark.parametrize(("number", "width", "lines", "ranks"), [
    (64, 80, 1, 1), (65, 80, 2, 1), (512, 80, 8, 1), (513, 80, 5, 2), (4096, 80, 8, 8),
    (256, 30, 6, 2),
])  # fmt: skip
def test_lines_are_few_and_of_whole_machines(
    number: int, width: int, lines: int, ranks: int
) -> None:
    found = strip([100] * number, width)
    assert len(found.lines) == lines and found.ranks == ranks
    assert len(texts(found)[0]) % 8 == 0 and cell_len(texts(found)[0]) <= width


def test_one_rank_of_thousands_is_still_seen() -> None:
    values = [100] * 4096
    values[37] = 125
    found = strip(values)
    (place,) = (at for at, text in enumerate("".join(texts(found))) if text == "▲")
    assert place == 37 // found.ranks
    assert found.lines[0][place].action == "screen.one_rank(37)"


def test_halves_of_cells_show_twice_as_many() -> None:
    values = [100] * 1024
    values[64] = 150
    found = strip(values, halves=True)
    assert found.halves and found.ranks == 1 and len(found.lines) == 8
    cell = found.lines[0][0]
    assert cell.text == "▀" and cell.tone.bgcolor != found.lines[0][1].tone.bgcolor  # type: ignore[union-attr]
    assert cell.tone.color == found.lines[0][1].tone.color  # type: ignore[union-attr]
    assert not strip([100] * 512, halves=True).halves


def test_strengths_have_the_sign_of_the_deviation() -> None:
    found = strength_of(np.array([0.01, 0.06, 0.25, 5.0, -0.25, -1.0, math.inf, math.nan]))
    assert found[0] == 0 and found[7] == 0
    assert 0 < found[1] < found[2] < found[3] == 1 == found[6]
    assert found[4] == -found[2] and found[5] == -1


def test_signs_and_words_say_the_same() -> None:
    assert [symbol_of(one) for one in (0.2, -0.2, 0.01, math.inf, math.nan)] == [
        "▲",
        "▼",
        "",
        "+",
        "",
    ]
    assert [glyph(one) for one in (0.2, -0.2, 0.01, math.inf)] == ["▲", "▼", "·", "+"]
    words = [deviation_words(one) for one in (0.25, -0.412, 0.0001, 12.0, math.inf, math.nan)]
    assert words == ["+25.0 %", "−41.2 %", "0 %", "13×", "", ""]
