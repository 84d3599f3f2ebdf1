"""Rows of a listing, bars, and the parts of an instruction, as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from flame.core.model.pc_samples import Code
from flame.core.model.stalls import STALLS
from flame.core.names.cuda import split_instruction
from flame.tui.sampling.bars import bar, by_class
from flame.tui.sampling.version import Version
from flame.tui.sass.listing import MOST_BYTES, Listing, RowKind, SourceLines, lines_of
from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.colours import StallClass, class_of, class_of_title
from flame.tui.toolkit.palette import Palette
from tests.tui.sampled import GEMM, GEMM_SAMPLES, SOURCE, Counts, code, samples

DARK = Palette((18, 18, 18), (224, 224, 224))


def version(lines: Sequence[tuple[str, int]], at: Sequence[int]) -> Version:
    """Instructions on source lines, with so many samples each, all for one reason."""
    return of_counts(code(lines), {"wait": at})


def of_counts(of: Code, counts: Counts) -> Version:
    part = samples(of, counts)
    order = np.argsort(part.place, kind="stable")
    place, reason = part.place[order].astype(np.int64), part.reason[order].astype(np.int64)
    number = part.samples[order]
    return Version(of, part.reasons, place, reason, number, 2 * number)


def listing(of: Version, source: bool = True, folded: bool = False) -> Listing:
    return Listing.of(of, SourceLines(of.code), source, folded)


def rows(of: Listing) -> list[str]:
    """Every row in a word: the instruction, the line, or how many are folded."""
    words = []
    for kind, first, last in (of[row] for row in range(len(of))):
        if kind == RowKind.INSTRUCTION:
            words.append(of.version.code.text[first])
        else:
            line = int(of.version.code.line[first])
            words.append(f"line {line}" if kind == RowKind.SOURCE else f"{last - first} folded")
    return words


A = [("a", 1), ("b", 1), ("c", 2), ("d", 1), ("e", 0)]


def test_source_lines_stand_above_their_instructions() -> None:
    shown = listing(version(A, [1, 2, 4, 8, 16]))
    expected = ["line 1", "a", "b", "line 2", "c", "line 1", "d", "line 0", "e"]
    assert rows(shown) == expected
    heads = [row for row in range(len(shown)) if shown[row].kind == RowKind.SOURCE]
    assert [shown.samples(shown[row]) for row in heads] == [3, 4, 8, 16]
    assert [shown.value(shown[row]) for row in heads] == [6.0, 8.0, 16.0, 32.0]
    assert [shown.place(shown[row]) for row in heads] == ["gemm.cu:1", "gemm.cu:2", "gemm.cu:1", ""]
    assert shown.text(shown[heads[-1]]) == "no source line"


def test_a_line_knows_its_samples_wherever_its_instructions_stand() -> None:
    known = version(A, [1, 2, 4, 8, 16])
    assert known.samples_of_line(int(known.line_of[0])) == 11


def test_without_source_lines_there_are_only_instructions() -> None:
    assert rows(listing(version(A, [1] * 5), source=False)) == list("abcde")
    assert not listing(version([("a", 0)], [1])).indented


def test_runs_without_samples_are_folded_and_single_ones_are_not() -> None:
    lines = [(letter, 1) for letter in "abcdefg"]
    assert rows(listing(version(lines, [0, 0, 1, 0, 1, 0, 0]), False, True)) == [
        *("2 folded", "c", "d", "e", "2 folded"),
    ]


def test_a_line_all_of_which_is_folded_is_not_shown() -> None:
    lines = [("a", 1), ("b", 2), ("c", 3), ("d", 1), ("e", 1)]
    shown = listing(version(lines, [1, 0, 0, 1, 1]), folded=True)
    assert rows(shown) == ["line 1", "a", "2 folded", "line 1", "d", "e"]
    assert shown.samples(shown[3]) == 2


def test_nothing_is_folded_where_nothing_has_samples() -> None:
    assert rows(listing(version([("a", 0), ("b", 0)], [0, 0]), folded=True)) == ["a", "b"]


def test_an_instruction_is_found_in_the_row_that_it_is_folded_into() -> None:
    shown = listing(version(A, [1, 0, 0, 0, 1]), folded=True)
    assert rows(shown) == ["line 1", "a", "3 folded", "line 0", "e"]
    assert [shown.row_of(place) for place in range(5)] == [1, 2, 2, 2, 4]


numbers = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30)


@given(numbers, st.booleans(), st.booleans())
def test_rows_hold_every_instruction_once_and_all_samples(
    chosen: list[tuple[int, int]], source: bool, folded: bool
) -> None:
    known = version(
        [(f"op{at}", line) for at, (line, _) in enumerate(chosen)], [n for _, n in chosen]
    )
    shown = listing(known, source, folded)
    kinds = [shown[row].kind for row in range(len(shown))]
    own = [shown[row] for row in range(len(shown)) if kinds[row] != RowKind.SOURCE]
    assert [place for _, first, last in own for place in range(first, last)] == list(
        range(len(chosen))
    )
    assert sum(map(shown.samples, own)) == known.total
    heads = [shown[row] for row in range(len(shown)) if kinds[row] == RowKind.SOURCE]
    if heads:  # what is folded away has none
        assert sum(map(shown.samples, heads)) == known.total
    assert all(shown[shown.row_of(place)].kind != RowKind.SOURCE for place in range(len(chosen)))
    for head in heads:
        assert len(set(known.line_of[head.first : head.last].tolist())) == 1


def test_what_is_searched_is_found_in_instructions_lines_and_offsets() -> None:
    shown = listing(of_counts(code(GEMM), dict(GEMM_SAMPLES)))
    found = [rows(shown)[row] for row in shown.matching(re.compile("LDG"))]
    assert found == ["LDG.E.128 R8, [R2.64]"]
    assert [rows(shown)[row] for row in shown.matching(re.compile("value.x"))] == ["line 5"]
    assert [rows(shown)[row] for row in shown.matching(re.compile("0x0050"))] == found
    assert len(shown.matching(re.compile("no such text"))) == 0


def test_the_hottest_instructions_come_in_the_order_of_their_samples() -> None:
    known = of_counts(code(GEMM), dict(GEMM_SAMPLES))
    assert known.hottest[:2].tolist() == [6, 8]
    assert known.hottest_for("barrier") == 6
    assert known.hottest_for("wait") == 3
    assert known.hottest_for("gmma") == 6, "of a reason that nothing has: the hottest of all"


def test_reasons_of_several_instructions_are_those_of_each() -> None:
    known = of_counts(code(GEMM), dict(GEMM_SAMPLES))
    for first in range(len(known)):
        for last in range(first, len(known) + 1):
            found = dict(zip(known.reasons, known.by_reason(first, last).tolist(), strict=True))
            assert found == {key: sum(at[first:last]) for key, at in GEMM_SAMPLES.items()}


# Source files


def test_a_source_line_comes_from_the_report_and_else_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_text("one\n\ttwo\n", encoding="utf-8")
    line = np.array([1, 2, 3], np.int32)
    none = np.zeros(3, np.int32)
    known = Code(
        "k", line.astype(np.int64), ("",) * 3, none, line, (str(path),), {(0, 1): "uno\r\n"}
    )
    sources = SourceLines(known)
    assert [sources.text(0, number) for number in (1, 2, 3)] == ["uno", "    two", None]
    assert sources.name(0) == "a.cu"


def test_what_is_no_text_of_a_sensible_size_is_not_read(tmp_path: Path) -> None:
    big = tmp_path / "big.cu"
    with big.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert lines_of(str(big)) == []
    assert lines_of(str(tmp_path)) == []
    assert lines_of(str(tmp_path / "absent.cu")) == []
    assert lines_of("/proc/self/status") == [], "what says it is empty may never end"
    assert lines_of("a\0b") == []


def test_escapes_in_names_and_lines_are_made_visible() -> None:
    known = Code(
        "k",
        np.zeros(1, np.int64),
        ("\x1b[2J",),
        np.zeros(1, np.int32),
        np.ones(1, np.int32),
        ("/a/\x1b]0;x",),
        {(0, 1): "\x1b[31mred\x07"},
    )
    shown = listing(of_counts(known, {"wait": [1]}))
    texts = [shown.text(shown[row]) for row in range(2)]
    assert all(text.isprintable() for text in texts), texts


# Bars


def drawn(sums: Sequence[int], most: int, width: int, palette: Palette = DARK) -> str:
    return "".join(part.text for part in bar(sums, most, width, palette, Style()))


def test_a_bar_is_as_wide_as_its_samples_to_an_eighth_of_a_cell() -> None:
    assert drawn([100, 0, 0, 0, 0], 100, 4) == "████"
    assert drawn([50, 0, 0, 0, 0], 100, 4) == "██  "
    assert drawn([53, 0, 0, 0, 0], 100, 4) == "██▏ "
    assert drawn([1, 0, 0, 0, 0], 10_000, 4) == "▏   ", "something is never nothing"
    assert drawn([0] * 5, 10, 4) == "    "


def test_the_shortest_bar_is_of_the_class_with_the_most() -> None:
    (mark, _) = bar([70, 0, 10, 20, 0], 100_000, 8, DARK, Style())
    assert (mark.text, mark.style) == ("▏", Style() + DARK.stall(StallClass.MEMORY))


def test_classes_meet_within_a_cell() -> None:
    parts = bar([50, 50, 0, 0, 0], 100, 3, DARK, Style())
    assert [part.text for part in parts] == ["█", "▌", "█"]
    meeting = parts[1].style
    assert isinstance(meeting, Style)
    assert meeting.color == DARK.stall(StallClass.MEMORY).color
    assert meeting.bgcolor == DARK.stall(StallClass.COMPUTE).color


@given(st.lists(st.integers(0, 1000), min_size=5, max_size=5), st.integers(1, 40))
def test_bars_always_take_their_width(sums: list[int], width: int) -> None:
    most = max(sum(sums), 1)
    for palette in (DARK, SixteenColours(), NoColours()):
        assert len(drawn(sums, most, width, palette)) == width
        assert len(drawn(sums, 3 * most, width, palette)) == width


def test_without_colours_classes_have_shades() -> None:
    assert drawn([2, 2, 2, 0, 2], 8, 4, NoColours()) == "█▓▒▄"


def test_every_reason_with_a_meaning_has_a_class() -> None:
    other = [stall.key for stall in STALLS if class_of(stall.key) == StallClass.OTHER]
    assert other == ["misc", "unknown"]
    assert class_of("made up") == StallClass.OTHER
    assert class_of_title("Long Scoreboard") == class_of("long_scoreboard") == StallClass.MEMORY
    assert by_class(("wait", "gmma"), np.array([1, 2])) == [0, 3, 0, 0, 0]


# Parts of an instruction


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("LDG.E R2, [R4]", ("", "LDG.E", " R2, [R4]")),
        ("@!P0 EXIT", ("@!P0 ", "EXIT", "")),
        ("@P0   EXIT", ("@P0   ", "EXIT", "")),
        ("      @UP2 UMOV UR4, 0x0", ("      @UP2 ", "UMOV", " UR4, 0x0")),
        ("@!PT LDS RZ, [RZ]", ("@!PT ", "LDS", " RZ, [RZ]")),
        ("", ("", "", "")),
    ],
)
def test_parts_of_an_instruction(text: str, parts: tuple[str, str, str]) -> None:
    assert split_instruction(text) == parts


@given(st.text())
def test_parts_together_are_the_text(text: str) -> None:
    assert "".join(split_instruction(text)) == text


def test_the_source_text_of_the_sample_is_used() -> None:
    shown = listing(of_counts(code(GEMM), dict(GEMM_SAMPLES)))
    texts = [shown.text(shown[row]) for row in range(len(shown))]
    assert f"gemm.cu:5  {SOURCE.splitlines()[4].strip()}" in texts
