"""What the report view is made of, without an app: tables as text, bars, lists, places, remarks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.frame import Kind
from flame.core.report.table import Place, Section, Table, TableColumn, Value
from flame.tui.report.budget_bars import GpuBudget, budget_lines, budgets_of
from flame.tui.report.entries import FIRST, EntryList, ReportEntry, chip_text
from flame.tui.report.page import RowAt, Sorting, section_page
from flame.tui.report.places import node_at
from flame.tui.report.remarks import remarks_on, why_idle
from flame.tui.report.source import SectionTitle
from flame.tui.report.written import WrittenSection, WrittenTable
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette
from tests.tui.traces import HOSTILE
from tests.tui.trees import random_trees

PALETTE = Palette((0, 0, 0), (255, 255, 255))
COLUMNS = (
    TableColumn("name", "name"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("hidden", ""),
)
TITLES = [SectionTitle("findings", "First"), SectionTitle("kernels", "Kernels")]


def written(rows: list[tuple[Value, ...]], places: tuple[Place | None, ...] = ()) -> WrittenSection:
    table = Table("rows", "", COLUMNS, tuple(rows), len(rows), places)
    return WrittenSection.of(Section("kernels", "Kernels", tables=(table,)))


def text_of(line: Line) -> str:
    return "".join(piece.text for piece in line)


cells = st.tuples(
    st.none() | st.sampled_from(("a", "b", "zz", "")),
    st.none() | st.integers(0, 10**12),
    st.none() | st.floats(0, 100),
    st.none(),
)


@given(st.lists(cells, min_size=1, max_size=12), st.integers(0, 2), st.booleans())
def test_rows_are_sorted_by_what_is_known_and_the_rest_comes_last(
    rows: list[tuple[Value, ...]], column: int, backwards: bool
) -> None:
    table = WrittenTable.of(Table("rows", "", COLUMNS, tuple(rows), len(rows)))
    order = table.order(column, backwards)
    assert sorted(order) == list(range(len(rows)))
    values = [rows[at][column] for at in order]
    known = [value for value in values if value is not None]
    assert values[len(known) :] == [None] * (len(values) - len(known))
    falls = (column > 0) != backwards
    assert known == sorted(known, reverse=falls)


@given(st.lists(cells, min_size=1, max_size=12), st.integers(20, 100))
def test_lines_of_a_section_fit_and_rows_are_found_on_them(
    rows: list[tuple[Value, ...]], width: int
) -> None:
    found = written(rows)
    page = section_page(found, [range(len(rows))], [None], width)
    assert all(line_width(page[line]) <= width for line in range(len(page)))
    for place, at in enumerate(page.rows):
        line = page.line_of(place)
        assert (page.row_at(line), at) == (place, RowAt(0, place))
        head = page.head_above(line)
        assert head is not None and "name" in text_of(head)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_drawn_safely(name: str) -> None:
    page = section_page(written([(name, 5, 100.0, "x")]), [[0]], [Sorting(0)], 60)
    for line in range(len(page)):
        assert text_of(page[line]).isprintable()
        assert line_width(page[line]) <= 60


def test_what_has_no_room_is_told_of_the_selected_row() -> None:
    found = written([("kernel " * 4, 5_000, 12.5, "x"), ("other", 9_000, 1.5, "y")])
    page = section_page(found, [[0, 1]], [None], 36)
    assert "not shown for want of width: " in text_of(page[len(page) - 1])
    page.chosen = 1
    assert "of this row: of all 1.5 %" in text_of(page[len(page) - 1])


# Bars


@given(
    st.dictionaries(
        st.sampled_from(("compute", "copies, alone", "idle: host code", "idle: new cause")),
        st.integers(1, 10**12),
        min_size=1,
    ),
    st.integers(40, 200),
)
def test_a_bar_is_as_wide_as_the_screen_and_each_part_as_its_share(
    parts: dict[str, int], width: int
) -> None:
    bar, _ = budget_lines([GpuBudget("GPU0", parts)], PALETTE, width, 1)
    assert line_width(bar) == width
    cells = line_width(bar[1:-1])
    glyphs = text_of(bar[1:-1])
    compute = glyphs.count("█") / cells
    assert abs(compute - parts.get("compute", 0) / sum(parts.values())) <= 1 / cells


@pytest.mark.parametrize(("width", "told"), [(120, True), (60, True), (59, False)])
def test_a_bar_says_what_most_of_the_window_is(width: int, told: bool) -> None:
    budgets = [
        GpuBudget("GPU0", {"compute": 9, "idle: sync": 1}, "compute"),
        GpuBudget("GPU1", {"compute": 5, "idle: sync": 5}, "mixed"),
    ]
    lines = [text_of(line) for line in budget_lines(budgets, PALETTE, width, 2)[:2]]
    assert all(len(line) == width for line in lines)
    assert [line.rstrip().endswith("mostly compute") for line in lines] == [told, False]
    assert [line.rstrip().endswith("mixed") for line in lines] == [False, told]


def test_budgets_are_read_by_gpu_and_more_than_there_is_room_for_are_counted() -> None:
    columns = (TableColumn("gpu", "GPU"), TableColumn("part", "part"), TableColumn("ns", "", "ns"))
    rows = tuple((f"GPU{gpu}", "compute", 10 + gpu) for gpu in range(4))
    section = Section("budget", "Budget", tables=(Table("parts", "", columns, rows, 4),))
    found = budgets_of(section)
    assert [one.parts for one in found] == [{"compute": 10 + gpu} for gpu in range(4)]
    lines = budget_lines(found, PALETTE, 80, 2)
    assert len(lines) == 3 and "+2 GPUs" in text_of(lines[-1])


# The list


def findings(*severities: str, place: Place | None = None) -> WrittenSection:
    columns = (
        TableColumn("severity", "severity"),
        TableColumn("title", "title"),
        TableColumn("claim", "claim"),
        TableColumn("bound_ns", "at most", "ns"),
        TableColumn("percent", "of window", "percent"),
    )
    rows = tuple((one, f"{one} one", "gemm is slow", 5_000, 12.5) for one in severities)
    table = Table("rows", "", columns, rows, len(rows), (place,) * len(rows))
    return WrittenSection.of(Section("findings", "First", tables=(table,)))


def test_the_chip_counts_what_is_more_than_information() -> None:
    assert chip_text({}) == ("", False)
    assert chip_text({"findings": findings("info")}) == ("", False)
    assert chip_text({"findings": findings("low")}) == ("1 finding", False)
    assert chip_text({"findings": findings("high", "low", "info")}) == ("2 findings", True)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_list_has_findings_then_sections_each_in_its_width(width: int) -> None:
    known = {"findings": findings("high", "info")}
    entries = EntryList(TITLES, known, waits=True)
    assert entries.entries == [FIRST, ReportEntry("findings", 1), ReportEntry("kernels")]
    lines = entries.lines(width, FIRST, focused=True)
    assert [entry for _, entry in lines] == [
        None,
        *entries.entries[:2],
        None,
        ReportEntry("kernels"),
    ]
    assert all(line_width(line) <= width for line, _ in lines)
    assert "… kernels" in text_of(lines[-1][0])


def test_a_title_that_is_too_long_goes_on_below_and_is_chosen_with_it() -> None:
    title = "Asynchronous copies of pageable memory make the host wait"
    columns = (
        *(TableColumn(key, key) for key in ("severity", "title")),
        TableColumn("percent", "", "percent"),
    )
    table = Table("rows", "", columns, (("high", title, 12.5),), 1)
    known = {"findings": WrittenSection.of(Section("findings", "First", tables=(table,)))}
    lines = EntryList(TITLES, known, waits=False).lines(40, FIRST, focused=True)[1:3]
    assert [text_of(line).rstrip() for line, _ in lines] == [
        "!! Asynchronous copies of         12.5 %",
        "   pageable memory make the host wait",
    ]
    assert [entry for _, entry in lines] == [FIRST] * 2
    assert {piece.tone for line, _ in lines for piece in line} == {"accent"}


def test_what_is_chosen_stays_as_close_as_there_is_something() -> None:
    entries = EntryList(TITLES, {"findings": findings("high")}, waits=False)
    assert entries.nearest(ReportEntry("findings", 7)) == FIRST
    assert entries.nearest(ReportEntry("no such")) == FIRST
    assert EntryList(TITLES, {}, waits=True).nearest(FIRST) == ReportEntry("findings")


# Places


@given(random_trees, st.data())
def test_a_row_leads_to_the_widest_frame_of_its_name_below_the_others(
    tree: object, data: st.DataObject
) -> None:
    number = data.draw(st.integers(1, len(tree) - 1)) if len(tree) > 1 else 0  # type: ignore[arg-type]
    if not number:
        return
    path = tree.names(number)  # type: ignore[attr-defined]
    names = path[:1] + path[-1:] if len(path) > 1 else path
    shown = SimpleNamespace(view=SimpleNamespace(tree=tree))
    place = Place(("", ""), tuple(names), tree.metric.key)  # type: ignore[attr-defined]
    node = node_at(shown, place)  # type: ignore[arg-type]
    total = tree.total  # type: ignore[attr-defined]
    fitting = [
        at
        for at in range(1, len(tree))  # type: ignore[arg-type]
        if (other := tree.names(at))[-1] == names[-1]  # type: ignore[attr-defined]
        and (len(names) == 1 or names[0] in other[:-1])
    ]
    assert node in fitting
    assert total[node] == np.max(total[fitting])


def test_another_metric_or_no_such_name_leads_nowhere_in_this_tree() -> None:
    from tests.tui.trees import stack_tree

    tree = stack_tree({("a", "b"): 5})
    shown = SimpleNamespace(view=SimpleNamespace(tree=tree))
    metric = tree.metric.key
    assert node_at(shown, Place(("kernel",), ("no such",), metric)) == -1  # type: ignore[arg-type]
    assert node_at(shown, Place(("kernel",), ("b",), "another")) == -1  # type: ignore[arg-type]
    assert node_at(shown, Place(("kernel",), (), metric)) == -1  # type: ignore[arg-type]


# Remarks


def test_findings_are_told_of_frames_that_they_lead_to_or_name() -> None:
    known = {"findings": findings("high", "high", place=Place(("kernel",), ("norm",)))}
    for name in ("norm", "gemm"):
        [(label, text)] = remarks_on(known, name, Kind.KERNEL)
        assert (label, text) == ("finding", "high: high one")
    assert remarks_on(known, "gem", Kind.KERNEL) == []
    assert remarks_on(known, "other", Kind.KERNEL) == []


def test_tails_are_told_of_kernels_alone() -> None:
    columns = (
        TableColumn("name", "kernel"),
        TableColumn("excess_ns", "excess", "ns"),
        TableColumn("is", "is"),
    )
    rows = (("gemm", 5_000, "tail"), ("gemm", 2_000, "tail"), ("gemm", 7, ""), ("norm", 1, "mixed"))
    table = Table("rows", "", columns, rows, 4)
    known = {"tails": WrittenSection.of(Section("tails", "Tails", tables=(table,)))}
    assert remarks_on(known, "gemm", Kind.KERNEL) == [
        ("slow ones", "tail, 7.00 µs above the median")
    ]
    assert remarks_on(known, "norm", Kind.KERNEL) == [("slow ones", "mixed, 1 ns above the median")]
    assert remarks_on(known, "gemm", Kind.PYTHON) == []


def test_causes_of_idle_time_are_those_of_all_gpus_the_longest_first() -> None:
    columns = (TableColumn("gpu", "GPU"), TableColumn("part", "part"), TableColumn("ns", "", "ns"))
    rows = (
        *(("GPU0", "compute", 9_000), ("GPU0", "idle: sync", 3_000), ("GPU0", "idle: alloc", 10)),
        *(("GPU1", "idle: host code", 4_000), ("GPU1", "idle: sync", 2_000)),
        ("GPU1", "idle: unknown", 20),
    )
    table = Table("parts", "", columns, rows, len(rows))
    known = {"budget": WrittenSection.of(Section("budget", "", tables=(table,)))}
    text = "sync 5.00 µs, host code 4.00 µs, unknown 20 ns (! has all)"
    assert why_idle(known) == [("causes", text)]
    busy = {"budget": WrittenSection.of(Section("budget", "", tables=(table.first(1),)))}
    assert why_idle(busy) == why_idle({"budget": "no GPU"}) == why_idle({}) == []
