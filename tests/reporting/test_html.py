"""A report as a page: nothing in it is of its names' making, and nothing comes from elsewhere."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from flame.core.report.table import Place, Section, Table, TableColumn
from flame.reporting.html import as_html
from tests.reporting.test_reporting import HOSTILE, nowhere, sections, table

LEADING = Place(("kernel",), ("x",))

OURS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "code", "nav", "a"),
    *("section", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "i"),
    *("summary", "span", "ul", "li", "script", "svg", "b", "strong", "small"),
}


class Page(HTMLParser):
    """Elements with their attributes, the text of each cell, and the scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.text: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        self.text[within] = self.text.get(within, "") + data
        if "code" not in self._open and {"td", "th"} & {*self._open}:
            self.cells[-1][-1] += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(
    found: list[Section], most: int = 20, title: str = "t", icicle: str = "<svg></svg>"
) -> str:
    return as_html(found, most, nowhere, title=title, icicle=icicle)


def test_names_make_no_elements_and_no_attributes() -> None:
    found = Page(page(sections(), title="".join(HOSTILE)))
    assert {tag for tag, _ in found.elements} <= OURS
    known = {"class", "id", "href", "title", "style", "data-v", "lang", "charset", "name"}
    known |= {"content", "http-equiv"}
    assert {key for _, attributes in found.elements for key in attributes} <= known
    assert all(str(one["href"]).startswith("#") for one in found.of("a"))
    assert len(found.of("script")) == 1
    assert [row[0] for row in found.cells[1:6]] == [
        "plain",
        r"\x1b[31mred\x1b]0;title\x07",
        r"line\nbreak\r| x |",
        "a|b`c``d",
        "<script>alert(1)</script>",
    ]
    assert {len(row) for row in found.cells} == {4}, "GPU0 is the only one, and not told"


def test_what_obeys_nothing_is_all_that_is_written() -> None:
    text = page(sections(), title="\u202e\udcff\x00\x1b")
    assert text.encode("utf-8").isascii() is False  # – and the names beyond ASCII
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
    assert r"<h1>\u202e\udcff\x00\x1b</h1>" in text


def test_the_page_loads_nothing_and_runs_its_own_script_alone() -> None:
    text = page(sections())
    found = Page(text)
    [policy] = [one["content"] for one in found.of("meta") if "http-equiv" in one]
    script = re.search("<script>(.*?)</script>", text, re.DOTALL)
    assert script and policy
    known = b64encode(sha256(script[1].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{known}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in text and "@import" not in text and "http://" not in text
    assert "https://" not in text


def test_numbers_stand_at_the_right_and_know_their_values() -> None:
    found = Page(page(sections(("a", "b"))))
    assert [one.get("class") for one in found.of("th")] == [None, "n", "n", "n"]
    cells = found.of("td")
    assert [one.get("data-v") for one in cells[:4]] == [None, "0", "12.345", "5000000000.0"]
    assert [one.get("data-v") for one in cells[4:]] == [None, "1234567", "12.345", None]


def test_long_names_are_cut_also_where_the_pointer_rests() -> None:
    text = page(sections(("<b>" + "x" * 1_000_000,)))
    assert len(text) < 20_000
    [cell] = [row[0] for row in Page(text).cells[1:]]
    assert cell.startswith("<b>x") and "…" in cell and len(cell) == 160
    [tip] = [one["title"] for one in Page(text).of("span")]
    assert tip is not None and len(tip) == 1_000


def test_a_row_tells_the_command_that_leads_there() -> None:
    told = {LEADING: "flame view 'a<b>'"}
    rows = (("x", 1), ("y", 2))
    columns = (TableColumn("name", "name"), TableColumn("ns", "time", "ns"))
    section = Section("s", "S", tables=(Table.of("rows", "", columns, rows, (LEADING, None)),))
    text = as_html([section], 9, lambda one: told.get(one) if one else None, title="t", icicle="")
    assert text.count("<details>") == 1
    assert "<summary>x</summary><code>flame view &#x27;a&lt;b&gt;&#x27;</code>" in text
    told[LEADING] = "flame view " + "x" * 100_000
    text = as_html([section], 9, lambda one: told.get(one) if one else None, title="t", icicle="")
    assert "<details>" not in text, "nobody copies that"


def test_more_rows_than_wanted_are_counted() -> None:
    text = page(sections(), 3)
    assert len(Page(text).cells) == 4
    assert f"… and {len(HOSTILE) - 3} more" in text
    assert "more</p>" not in page(sections())


def test_what_is_not_there_comes_last_with_the_remedy() -> None:
    absent = Section("more", "More", why="no OS runtime", how="nsys --trace=osrt")
    text = page([*sections(), absent])
    assert "<li>os, more: no OS runtime; nsys --trace=osrt</li>" in text


def budget() -> Section:
    columns = (
        TableColumn("gpu", "GPU"),
        TableColumn("part", "part"),
        TableColumn("ns", "time", "ns"),
        TableColumn("percent", "of window", "percent"),
    )
    rows = [
        ("GPU0", "compute", 500, 50.0),
        ("GPU0", "idle: host code", 500, 50.0),
        ("GPU1 <b>", "copies, alone", 1_000, 100.0),
    ]
    return Section("budget", "B", tables=(Table.of("parts", "", columns, rows),))


def test_the_budget_of_each_gpu_is_a_bar_in_the_colours_of_the_table() -> None:
    text = page([budget()], 2)
    assert text.count('<div class="bar">') == 2, "also of GPUs whose rows are left out"
    assert "<h3>GPU1 &lt;b&gt;</h3>" in text
    pieces = re.findall(r'<i class="(p\d+)" style="width:([\d.]+)%" title="(.*?)">', text)
    assert pieces == [
        ("p0", "50.000", "compute 50.0 %"),
        ("p3", "50.000", "idle: host code 50.0 %"),
        ("p2", "100.000", "copies, alone 100.0 %"),
    ]
    keys = re.findall(r'<i class="key (p\d+)"></i>(.*?)</td>', text)
    assert keys == [("p0", "compute"), ("p3", "idle: host code")]


def test_findings_say_what_to_do() -> None:
    columns = [
        TableColumn(key, key, "ns" if key == "bound_ns" else "text")
        for key in ("id", "severity", "gpu", "title", "claim", "advice", "bound_ns", "section")
    ]
    rows = [("x", "high", "GPU0", "<Title>", "claim & more", "advice", 5_000_000, "copies")]
    facts = {
        "gpus": [{"gpu": "GPU<0>", "window_ns": 9, "character": "copies", "parts": ["a 1 %", "b"]}],
        "evidence": [
            {"id": "x", "gpu": "GPU0", "name": "at most", "value": 5_000_000, "unit": "ns"},
            {"id": "x", "gpu": "GPU0", "name": "rate", "value": 4.317, "unit": "GB/s"},
            {"id": "x", "gpu": "GPU0", "name": "<copies>", "value": 2, "unit": "count"},
            {"id": "x", "gpu": "GPU1", "name": "others", "value": 3, "unit": "count"},
        ],
    }
    tables = (Table.of("rows", "", columns, rows, (LEADING,)),)
    section = Section("findings", "F", facts, tables)
    text = as_html([section], 1, lambda place: place and "flame view x", title="t", icicle="")
    assert '<div class="find high">' in text
    assert "&lt;Title&gt;</strong> <small>(at most 5.00 ms)</small>" in text
    assert "<p>claim &amp; more</p>" in text and "<p>advice</p>" in text
    assert text.count("<code>flame view x</code>") == 2, "of all, and of the finding"
    assert "<p>GPU&lt;0&gt;, 9 ns, mostly copies: a 1 % · b</p>" in text
    assert "<small>rate 4.32 GB/s · &lt;copies&gt; 2</small>" in text, (
        "no link to what is not shown"
    )
    copies = Section("copies", "C", tables=(table(),))
    assert '· &lt;copies&gt; 2, more in <a href="#copies">copies</a>' in page([section, copies])
    none = Section("findings", "F", tables=(Table.of("rows", "", columns, ()),))
    assert "Nothing that the rules know" in page([none])


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_times_in_one_unit(unit: str) -> None:
    text = as_html(
        [Section("k", "K", tables=(table(),))], 9, nowhere, title="", icicle="", unit=unit
    )
    assert f'<th class="n">time [{"µs" if unit == "us" else unit}]</th>' in text
