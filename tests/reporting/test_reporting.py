"""A report as text, Markdown, JSON and CSV: safe whatever names are, and never wider than asked."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from flame.core.errors import UsageError
from flame.core.report.table import Place, Section, Table, TableColumn
from flame.core.shown_text import printable
from flame.core.units import format_ns
from flame.exporters.stacks import encodable
from flame.exporters.tables.files import as_csv
from flame.reporting.csv_files import write_csv
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.reporting.text import as_text

HOSTILE = (
    "plain",
    "\x1b[31mred\x1b]0;title\x07",
    "line\nbreak\r| x |",
    "a|b`c``d",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "-1+2",
    "\u202eright to left",
    "\udcff lone",
    "名" * 80,
    "",
)

COLUMNS = (
    TableColumn("name", "name"),
    TableColumn("gpu", "GPU"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("bytes", "moved", "bytes"),
    TableColumn("absent", "absent", "count"),
)


def table(names: tuple[str, ...] = HOSTILE, key: str = "rows") -> Table:
    rows = [
        (name, "GPU0", 1_234_567 * at, 12.345, None if at else 5e9, None)
        for at, name in enumerate(names)
    ]
    return Table.of(key, "by name", COLUMNS, rows)


def nowhere(place: Place | None) -> str | None:
    return None


def sections(names: tuple[str, ...] = HOSTILE) -> list[Section]:
    absent = Section("os", "The operating system", why="no OS runtime", how="nsys --trace=osrt")
    return [Section("kernels", "Kernels", {"count": 3}, (table(names),)), absent]


# Tables


def test_columns_of_which_nothing_is_known_are_left_out() -> None:
    assert [column.key for column in table().columns] == ["name", "gpu", "ns", "percent", "bytes"]


def test_an_empty_table_keeps_its_columns() -> None:
    assert table(()).columns == COLUMNS


def test_what_is_left_out_is_counted() -> None:
    assert (table().first(2).left_out, len(table().first(2).rows)) == (len(HOSTILE) - 2, 2)
    assert table().first(100).left_out == 0


# Text


@pytest.mark.parametrize("width", [50, 80, 120])
def test_text_is_no_wider_than_asked_and_obeys_nothing(width: int) -> None:
    text = as_text(sections(), width, 20)
    assert "\x1b" not in text and "\u202e" not in text and "\r" not in text
    assert all(_cells(line) <= width for line in text.splitlines())
    assert "plain" in text and format_ns(1_234_567) in text


def _cells(line: str) -> int:
    return len(line) + line.count("名")


def test_columns_for_which_there_is_no_room_are_named() -> None:
    text = as_text(sections(), 50, 3)
    assert "not shown for want of width: moved" in text
    assert "not shown" not in as_text(sections(), 200, 3)


def test_the_only_gpu_is_not_repeated_in_every_row() -> None:
    assert "GPU0" not in as_text(sections(), 100, 20)


def test_what_is_not_there_comes_last_with_the_remedy() -> None:
    assert as_text(sections(), 100, 20).splitlines()[-2:] == [
        "Not recorded",
        "  os: no OS runtime; nsys --trace=osrt",
    ]


def test_more_rows_than_wanted_are_counted() -> None:
    assert f"… and {len(HOSTILE) - 3} more" in as_text(sections(), 100, 3)


@pytest.mark.parametrize(
    ("unit", "shown"),
    [("ns", "1,234,567"), ("us", "1,234.567"), ("ms", "1.235"), ("s", "0.001235")],
)
def test_times_in_one_unit(unit: str, shown: str) -> None:
    lines = as_text(sections(("a", "b")), 100, 9, unit).splitlines()
    head, row = (next(line for line in lines if part in line) for part in ("  name", "  b "))
    assert f"[{'µs' if unit == 'us' else unit}]" in head
    assert shown in row


# Markdown


def test_markdown_has_a_row_per_row_whatever_names_are() -> None:
    text = as_markdown(sections(), 20)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(HOSTILE) + 2
    bars = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert len(set(bars)) == 1, "a name has made a column"
    assert "<script>" not in re.sub(r"`+[^`]*`+", "", text)


BARS = ("a|b", "a\\|b", "a\\\\|b", "|", "\\|", "x\\", "`|`", "a``|\\|`")


@pytest.mark.parametrize("name", [*HOSTILE[:-1], *BARS, "[x](http://e)", "![i](j)", "&lt;b&gt;"])
def test_a_renderer_reads_names_as_they_are(name: str) -> None:
    text = as_markdown([Section("s", name, tables=(table((name,)),), notes=(name,))], 20)
    page = MarkdownIt("commonmark").enable("table").render(text)
    cells = [html.unescape(cell) for cell in re.findall(r"<td.*?>(.*?)</td>", page, re.DOTALL)]
    assert len(cells) == 4
    # An odd number of backslashes before a bar cannot be written: there is one more.
    wanted = re.sub(r"(?<!\\)(\\\\)*\\(?=\|)", lambda one: one[0] + "\\", printable(name))
    assert cells[0] == f"<code>{wanted}</code>"
    tags = set(re.findall(r"<(\w+)", page))
    assert tags <= {"h3", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "p"}
    [title] = re.findall(r"<h3>(.*?)</h3>", page)
    assert html.unescape(title.replace("<!-- -->", "")) == printable(name).strip()


def test_notes_mention_nobody_and_lead_nowhere() -> None:
    note = "see http://x.y, HTTPS://z, www.x.y, @someone, #12"
    text = as_markdown([Section("s", "S", notes=(note,))], 20)
    assert not re.search(r"(?<!\\)(://|#12)|www\.x|@some", text)


@pytest.mark.parametrize(("name", "shown"), [("a`b", "``a`b``"), ("`a", "`` `a ``"), ("x", "`x`")])
def test_names_are_code_whatever_backticks_they_have(name: str, shown: str) -> None:
    assert f"| {shown} |" in as_markdown(sections((name,)), 20)


# JSON


def test_json_is_ascii_and_has_all_numbers() -> None:
    text = as_json(sections(), 1_000, nowhere, {"path": ["a"]})
    assert text.isascii() and text.endswith("\n")
    found = json.loads(text)
    assert (found["flame_report"], found["path"]) == (1, ["a"])
    assert found["kernels"]["available"] and found["kernels"]["count"] == 3
    assert found["kernels"]["rows"][1]["ns"] == 1_234_567
    assert found["os"] == {"available": False, "why": "no OS runtime", "how": "nsys --trace=osrt"}


def test_json_says_how_many_rows_it_leaves_out() -> None:
    found = json.loads(as_json(sections(), 2, nowhere, {}))["kernels"]
    assert (len(found["rows"]), found["more"]) == (2, {"rows": len(HOSTILE) - 2})


# CSV


def test_csv_is_read_back_and_holds_no_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(table()))))
    assert rows[0] == ["name", "gpu", "ns", "percent", "bytes"]
    for row, name in zip(rows[1:], HOSTILE, strict=True):
        assert row[0].removeprefix("'") == encodable(name)
        assert not row[0].startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_text_is_a_formula_and_every_number_is_one(begin: str) -> None:
    name = f'{begin}HYPERLINK("http://x",1)'
    found = Table.of("rows", "", COLUMNS, [(name, "g", -5, -1.5, None, None)])
    [_, row] = list(csv.reader(io.StringIO(as_csv(found), newline="")))
    assert row == [f"'{name}", "g", "-5", "-1.5"]


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("name", ["x{}=1", "x{}+1", 'x{}=H("a",1)', "{}-1", "x{0}{0}@a", 'x{}"=1'])
def test_no_cell_is_a_formula_where_another_separator_is_usual(separator: str, name: str) -> None:
    text = name.format(separator)
    written = as_csv(Table.of("rows", "", COLUMNS, [("k", text, 1, 1.5, None, None)]))
    cells = written.replace(separator, "\n").splitlines()
    assert not [cell for cell in cells if cell.lstrip('"').startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("name", ["a-b", "f(int; a)", "x; -1", "a=b;c", "x\n  - y", "a\r\n\tb"])
def test_other_texts_stay_as_they_are_in_csv(name: str) -> None:
    found = Table.of("rows", "", COLUMNS, [(name, "g", 1, 1.5, None, None)])
    [_, row] = list(csv.reader(io.StringIO(as_csv(found), newline="")))
    assert row[0] == name


def test_csv_files_are_named_by_section_and_table(tmp_path: Path) -> None:
    both = [Section("idle", "Idle", tables=(table(key="causes"), table(key="rows")))]
    written = write_csv(both, tmp_path / "out", replace=False)
    assert [path.name for path in written] == ["idle_causes.csv", "idle.csv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "idle.csv",
        "idle_causes.csv",
    ]


def test_a_folder_with_something_in_it_is_written_to_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "kernels.csv").write_text("mine")
    with pytest.raises(UsageError, match="not empty; --force"):
        write_csv(sections(), tmp_path, replace=False)
    assert (tmp_path / "kernels.csv").read_text() == "mine"
    write_csv(sections(), tmp_path, replace=True)
    assert (tmp_path / "kernels.csv").read_text().startswith("name,gpu,ns")
