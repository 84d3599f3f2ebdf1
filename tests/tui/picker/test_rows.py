"""Rows of traces to open: what they say, in which order, and that they fit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.search import RECORDING, FoundTrace
from flame.tui.picker.rows import (
    ORDERS,
    TraceRow,
    about,
    heads,
    home_path,
    matches,
    offer_of,
    paths_of,
    recent_offer,
    row,
    short_path,
    sort_offers,
)
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette

PALETTE = Palette((18, 18, 18), (228, 228, 228))
FOLDER = Path("/data")


def trace(
    name: str = "a.sqlite", *more: str, size: int = 1000, age: float = 60.0, **fields: object
) -> FoundTrace:
    paths = tuple(FOLDER / one for one in (name, *more))
    known: dict[str, object] = {"format": "nsys export", **fields}
    return FoundTrace(paths, size=size, modified=time.time() - age, **known)  # type: ignore[arg-type]


def offer(name: str = "a.sqlite", **fields: object) -> TraceRow:
    return offer_of(trace(name, **fields), FOLDER)  # type: ignore[arg-type]


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


def test_a_row_says_what_it_is_how_large_and_how_old() -> None:
    one = offer("run/a.sqlite", size=3_000_000, age=11_000, gpus=("NVIDIA H100 80GB HBM3",) * 8)
    shown = text(row(one, False, False, PALETTE, 80))
    assert shown.split() == ["run/a.sqlite", "nsys", "export", "8×H100", "3.00", "MB", "3", "h"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("NVIDIA GeForce RTX 3080",), "RTX 3080"),
        (("Tesla V100-SXM2-16GB",) * 2, "2×V100"),
        (("NVIDIA H200", "NVIDIA A100-SXM4-80GB"), "H200, A100"),
        (("", ""), "2×GPU"),
        ((), ""),
    ],
)
def test_gpus_are_counted_by_model(names: tuple[str, ...], said: str) -> None:
    assert offer(gpus=names).gpus == said


def test_what_is_selected_and_what_is_marked_is_seen_without_colours() -> None:
    starts = [
        text(row(offer(), selected, marked, PALETTE, 80))[:3]
        for selected in (False, True)
        for marked in (False, True)
    ]
    assert starts == ["   ", " ● ", "▸  ", "▸● "]


@given(
    st.integers(30, 250), st.text(min_size=1, max_size=90), st.lists(st.text(max_size=30)),
    st.integers(0, 10**15), st.floats(-1e9, 1e9), st.booleans(), st.booleans(),
)  # fmt: skip
def test_no_name_leaves_its_row(
    width: int, name: str, gpus: list[str], size: int, age: float, selected: bool, marked: bool
) -> None:
    one = TraceRow(trace(size=size, age=age, gpus=tuple(gpus)), name)
    shown = row(one, selected, marked, PALETTE, width)
    assert line_width(shown) == width
    assert text(shown).isprintable()
    assert line_width(heads(width)) == width


def test_columns_go_as_it_gets_narrow_the_age_last() -> None:
    shown = [text(heads(width)).split() for width in (120, 79, 70, 50, 40, 30)]
    assert shown == [
        ["name", "format", "GPUs", "size", "age"],
        ["name", "format", "GPUs", "size", "age"],
        ["name", "format", "size", "age"],
        ["name", "size", "age"],
        ["name", "age"],
        ["name"],
    ]


def test_a_file_is_called_by_its_path_in_the_folder_and_a_recording_as_a_folder() -> None:
    assert offer("deep/a.sqlite").name == "deep/a.sqlite"
    assert offer("run.flame", format=RECORDING).name == "run.flame/"
    assert offer_of(FoundTrace((FOLDER,), RECORDING, 1, 1.0), FOLDER).name == "./"


def test_several_that_were_shown_together_are_called_so() -> None:
    several = recent_offer(trace("rank0.json.gz", "rank1.json.gz"))
    assert several.name == "2 traces: rank0, rank1"
    assert about(several)[0] == "/data/rank0.json.gz, and 1 more: one view of them all"


def test_paths_begin_at_the_current_or_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "home" / "work"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    assert short_path(Path("run/a")) == short_path(here / "run" / "a") == "run/a"
    assert short_path(home / "x") == home_path(home / "x") == "~/x"
    assert home_path(Path("a")) == "~/work/a" and home_path(home) == "~"
    assert short_path(tmp_path / "y") == str(tmp_path / "y")


def test_the_newest_come_first_ranks_of_the_same_second_in_their_order() -> None:
    at = int(time.time()) - 100
    ranks = [
        offer_of(FoundTrace((FOLDER / f"rank{n}",), "f", 1, at + n / 20), FOLDER)
        for n in (10, 9, 2)
    ]
    young = offer("young", age=0)
    names = [one.name for one in sort_offers([*ranks, young], ORDERS[0])]
    assert names == ["young", "rank2", "rank9", "rank10"]


def test_the_other_orders() -> None:
    rows = [offer("b10", size=5), offer("b9", size=7), offer("a", size=6)]
    by = {order.title: [one.name for one in sort_offers(rows, order)] for order in ORDERS}
    assert by["name"] == ["a", "b9", "b10"]
    assert by["largest"] == ["b9", "a", "b10"]


def test_what_was_shown_last_stays_first_unless_it_is_sorted_otherwise() -> None:
    rows = [recent_offer(trace("b", age=50)), recent_offer(trace("a", age=5))]
    assert sort_offers(rows, ORDERS[0]) == rows
    assert sort_offers(rows, ORDERS[1]) == rows[::-1]


def test_names_of_odd_numbers_are_sorted() -> None:
    rows = [offer(name) for name in ("٣", "²", "1", "x", "", "1x", "x1")]
    assert len(sort_offers(rows, ORDERS[1])) == len(rows)


def test_files_of_several_rows_are_opened_in_the_order_of_names_each_once() -> None:
    rows = [recent_offer(trace("rank10", "rank2")), offer("rank2"), offer("rank1")]
    assert [path.name for path in paths_of(rows)] == ["rank10", "rank2", "rank1"]
    assert [path.name for path in paths_of(rows[1:])] == ["rank1", "rank2"]


@pytest.mark.parametrize("words", ["", "A.SQL", "nsys", "h100 export"])
def test_a_filter_looks_into_name_format_and_gpus(words: str) -> None:
    one = offer(gpus=("NVIDIA H100 80GB HBM3",))
    assert matches(one, words)
    assert not matches(one, f"{words} nowhere")


def test_what_is_known_of_a_trace_is_said() -> None:
    where, known = about(offer("run/a.sqlite", size=2000, gpus=("NVIDIA L4",)))
    assert where == "/data/run/a.sqlite"
    assert known.startswith("nsys export · L4 · 2.00 kB · written 20")
