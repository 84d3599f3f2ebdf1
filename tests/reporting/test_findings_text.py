"""Findings as text: those of several GPUs as one, commands that a shell puts together again."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from flame.core.report.findings.section import findings_section
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, TableColumn
from flame.core.shown_text import cells
from flame.reporting.findings_text import findings_lines
from flame.reporting.html import as_html
from flame.reporting.markdown import as_markdown
from tests.support.profiles.recorded import Recorded

US = 1_000

COMMAND = "flame view 'a trace.sqlite' --time 1ms/2ms --state '{\"view\":\"timeline\"}'"


def command(_: Place | None) -> str | None:
    return COMMAND


def section(*, all: bool = False, gpus: int = 2) -> Section:
    """Kernels with long pauses, the longest on the last GPU."""
    trace = Recorded()
    for number in range(60):
        for gpu in range(gpus):
            at = number * (600 + 100 * gpu) * US
            corr = 2 * number + gpu + 1
            trace.call("cudaLaunchKernel", at, at + US, corr)
            trace.kernel("gemm", at + US, at + 200 * US, corr, device=gpu)
    return findings_section(Scope(trace.profile(), all_findings=all))


def lines(found: Section, width: int = 80) -> list[str]:
    return list(findings_lines(found, width, command))


def test_one_finding_of_several_gpus_is_told_once() -> None:
    text = lines(section())
    assert text[0].startswith(
        "  GPU0, 35.6 ms, mostly host: idle: host code 66.2 % · compute 33.5 %"
    )
    assert text[1].startswith("  GPU1, ") and not text[2]
    titles = [line for line in text if line.startswith("  high")]
    assert titles == ["  high    GPU1: The GPU waits for the host  (at most 29.6 ms)"]
    assert "          Also GPU0 (at most 23.7 ms)." in text


def test_of_several_gpus_it_is_told_of_which_even_where_one_alone_has_findings() -> None:
    found = section()
    [table] = found.tables
    gpu = [column.key for column in table.columns].index("gpu")
    rows = tuple(row for row in table.rows if row[gpu] == "GPU1")
    places = table.places[: len(rows)]
    text = lines(replace(found, tables=(replace(table, rows=rows, places=places),)))
    assert "  high    GPU1: The GPU waits for the host  (at most 29.6 ms)" in text


def test_of_one_gpu_its_name_is_no_news() -> None:
    text = lines(section(gpus=1))
    assert "  high    The GPU waits for the host  (at most 23.7 ms)" in text
    assert not any("Also" in line for line in text)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_shell_puts_the_command_together(width: int) -> None:
    text = lines(section(gpus=1), width)
    begin = next(at for at, line in enumerate(text) if "flame view" in line)
    assert all(cells(line) <= width for line in text)
    assert shlex.split("\n".join(text[begin:]).replace("\\\n", "")) == shlex.split(COMMAND)


def test_a_command_that_does_not_fit_is_left_out() -> None:
    assert not any("flame view" in line for line in lines(section(gpus=1), 34))


@pytest.mark.parametrize(("all", "told"), [(False, 7), (True, 9)])
def test_the_first_seven_are_told(all: bool, told: int) -> None:
    found = section(all=all)
    [table] = found.tables
    at = [column.key for column in table.columns].index("id")
    row = table.rows[0]
    rows = tuple((*row[:at], f"finding {number}", *row[at + 1 :]) for number in range(9))
    many = replace(table, rows=rows, total=9, places=table.places[:1] * 9)
    text = lines(replace(found, tables=(many,)))
    assert sum(line.startswith("  high") for line in text) == told
    assert ("  … and 2 more: --all" in text) == (told < 9)


def test_what_is_not_judged_is_told_where_all_is_asked_for() -> None:
    assert "  Not judged" not in lines(section())
    text = lines(section(all=True))
    assert text[text.index("  Not judged") + 1].startswith("    ")
    assert any("tail: launch configurations" in line for line in text)


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        (0, "the GPUs are kept busy. What is left are the kernels themselves (--section"),
        (20, "see idle for what the GPUs waited for (--section idle)."),
    ],
)
def test_where_nothing_is_found_it_says_what_to_look_at(pause: int, expected: str) -> None:
    trace = Recorded()
    for number in range(3):
        trace.kernel("gemm", number * 100, number * 100 + 100 - pause)
    text = " ".join(map(str.strip, lines(findings_section(Scope(trace.profile())))))
    assert f"Nothing that the rules know: {expected}" in text
    assert ("most of all gemm with 100.0 % of GPU time" in text) == (pause == 0)


# Evidence and caution


def told(*, all: bool = False, caution: str | None = None) -> Section:
    """A finding with numbers, of which the claim has the first."""
    found = section(gpus=1, all=all)
    [table] = found.tables
    columns = [column.key for column in table.columns if column.key != "confidence_note"]
    known = dict(zip((one.key for one in table.columns), table.rows[0], strict=True))
    row = known | {"claim": "3 of 13 copies waited", "id": "made", "bound_ns": 23_660_000}
    rows = [{**one, "id": "made", "gpu": "GPU0"} for one in EVIDENCE]
    head = tuple(TableColumn(key, key) for key in (*columns, "confidence_note"))
    cells = (*(row[key] for key in columns), caution)
    kept = replace(table, columns=head, rows=(cells,), places=(None,), total=1)
    return replace(found, facts={**found.facts, "evidence": rows}, tables=(kept,))


EVIDENCE = (
    {"name": "at most", "value": 23_660_000, "unit": "ns"},
    {"name": "copies", "value": 3, "unit": "count"},
    {"name": "of load", "value": 1, "unit": "count"},
    {"name": "rate", "value": 4.325, "unit": "GB/s"},
    {"name": "in load of weights and biases", "value": 1_500_000, "unit": "ns"},
    {"name": "begin at", "value": 5_000_000_000, "unit": "moment"},
)


def test_a_line_of_evidence_has_what_the_claim_has_not() -> None:
    text = lines(told())
    at = text.index("          3 of 13 copies waited")
    assert (
        text[at + 1]
        == "          of load 1 · rate 4.33 GB/s · in load of weights and biases 1.50 ms"
    )
    assert lines(told(), 60)[at + 1] == "          of load 1 · rate 4.33 GB/s"


def test_all_of_it_is_told_where_all_is_asked_for() -> None:
    text = lines(told(all=True), 60)
    at = text.index("          3 of 13 copies waited")
    assert text[at + 1 : at + 4] == [
        "          copies 3 · of load 1 · rate 4.33 GB/s",
        "          in load of weights and biases 1.50 ms",
        "          begin at 5.000000 s",
    ]


def test_what_is_not_sure_is_told_before_what_to_try() -> None:
    text = lines(told(caution="half of it is known"))
    at = text.index("          Caution: half of it is known.")
    assert text[at - 1].endswith("1.50 ms") and text[at + 1].strip().startswith("See what")
    assert not any("Caution" in line for line in lines(told()))


@pytest.mark.parametrize("all", [False, True])
def test_markdown_and_html_have_both(all: bool) -> None:
    found = told(all=all, caution="half of it is known")
    markdown = as_markdown([found], 10)
    assert "rate 4\\.33" in markdown or "rate 4.33" in markdown
    assert ("copies 3" in markdown) == all
    assert "Caution: half of it is known." in markdown
    assert "<p>Caution: half of it is known.</p>" in as_html(
        [found], 10, lambda _: None, title="t", icicle=""
    )
