"""Which columns people see: not those for scripts, nor places of which there is one alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.report.table import Section, Table, TableColumn, Unit, share
from flame.core.units import BLOCKS
from flame.reporting.grid import narrowed
from flame.reporting.html import as_html
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.reporting.text import as_text
from flame.reporting.values import titled, write_value

COLUMNS = (
    TableColumn("gpu", "GPU"),
    TableColumn("name", "name"),
    TableColumn("ns", "time", "ns"),
    TableColumn("exact_ns", "", "ns"),
)


def section(*gpus: str) -> Section:
    rows = [(gpu, "gemm", 1_500, 1_501) for gpu in gpus]
    return Section("kernels", "Kernels", tables=(Table.of("rows", "", COLUMNS, rows),))


@pytest.mark.parametrize("gpus", [("GPU0",), ("GPU0", "GPU1")])
def test_people_see_what_has_a_title_and_tells_something_apart(gpus: tuple[str, ...]) -> None:
    texts = (as_text([section(*gpus)], 80, 10), as_markdown([section(*gpus)], 10))
    for text in texts:
        assert "1.50 µs" in text
        assert "exact" not in text and "1,501" not in text and "1.501" not in text
        assert ("GPU0" in text) == (len(gpus) > 1)


def test_rows_that_are_left_out_count_for_what_is_told_apart() -> None:
    """Of two GPUs the first rows are of one alone."""
    texts = (as_text([section("GPU0", "GPU1")], 80, 1), as_markdown([section("GPU0", "GPU1")], 1))
    for text in texts:
        assert "GPU0" in text and "GPU1" not in text
        assert "… and 1 more" in text


def test_rows_that_add_up_stay_together() -> None:
    rows = [("GPU0", f"part {number}", number, number) for number in range(5)]
    table = Table.of("rows", "", COLUMNS, rows, whole=True)
    parts = Section("parts", "Parts", tables=(table,))
    html = as_html([parts], 2, lambda place: None, title="t", icicle="")
    for text in (as_text([parts], 80, 2), as_markdown([parts], 2), html):
        assert "part 4" in text and "more" not in text.partition("</nav>")[2][:5_000]
    assert len(json.loads(as_json([parts], 2, lambda place: None, {}))["parts"]["rows"]) == 2


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (156_064_988_123, "moment", "156.064988 s"),
        (3, "moment", "0.000000 s"),
        (0.00417, "GB/s", "0.0042"),
        (0, "GB/s", "0.00"),
        (12.345, "ratio", "12.35"),
        (0.0006, "percent", "<0.1 %"),
    ],
)
def test_cells_are_exact_enough_to_tell_from_none(value: float, unit: Unit, text: str) -> None:
    assert write_value(None)(TableColumn("x", "x", unit), value) == text


def test_moments_are_in_the_unit_of_all_times() -> None:
    column = TableColumn("at_ns", "at", "moment")
    assert write_value("us")(column, 1_500) == "1.500"
    assert titled(column, "us") == "at [µs]"


@given(st.integers(0, 10**9), st.integers(1, 10**15))
def test_a_share_is_nothing_of_nothing_alone(part: int, whole: int) -> None:
    found = share(part, whole)
    assert found is not None
    assert (found == 0) == (part == 0)
    assert found == pytest.approx(100 * part / whole, rel=5e-3, abs=5e-4)
    assert share(part, 0) is None


def test_scripts_see_all() -> None:
    [row] = json.loads(as_json([section("GPU0")], 10, lambda place: None, {}))["kernels"]["rows"]
    assert row == {"gpu": "GPU0", "name": "gemm", "ns": 1_500, "exact_ns": 1_501}


# Charts


@given(st.text(BLOCKS + "·", min_size=1, max_size=60), st.integers(1, 80))
def test_a_narrow_chart_has_the_mean_of_the_parts_that_each_character_stands_for(
    chart: str, width: int
) -> None:
    drawn = narrowed(chart, width)
    assert len(drawn) == min(len(chart), width)
    for at, character in enumerate(drawn):
        parts = chart[len(chart) * at // len(drawn) : len(chart) * (at + 1) // len(drawn)]
        levels = [BLOCKS.index(part) for part in parts if part != "·"]
        if not levels:
            assert character == "·"
        else:
            assert 0 <= BLOCKS.index(character) - sum(levels) / len(levels) < 1


@pytest.mark.parametrize("width", [30, 80])
def test_a_chart_is_never_cut(width: int) -> None:
    columns = (TableColumn("gpu", "GPU"), TableColumn("chart", "over time", "chart"))
    rows = [("GPU0", "█" * 60), ("GPU1", " " * 59 + "▁")]
    section = Section("utilization", "Busy", tables=(Table.of("x", "", columns, rows),))
    lines = as_text([section], width, 10).splitlines()
    assert not any("…" in line for line in lines)
    assert lines[-2].split()[1] == "█" * (22 if width == 30 else 60)
    assert lines[-1].endswith("▁")
