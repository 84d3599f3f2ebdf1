"""Which columns people see: not those for scripts, nor places of which there is one alone."""

from __future__ import annotations

import json

import pytest

from flame.core.report.table import Section, Table, TableColumn
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.reporting.text import as_text

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


def test_scripts_see_all() -> None:
    [row] = json.loads(as_json([section("GPU0")], 10, lambda place: None))["kernels"]["rows"]
    assert row == {"gpu": "GPU0", "name": "gemm", "ns": 1_500, "exact_ns": 1_501}
