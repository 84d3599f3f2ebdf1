"""Test that JSON with an indent is what Python itself writes, character by character."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from flame.core.report.table import Value
from flame.reporting.indented_json import FlatRows, indented

_TEXTS = st.text() | st.sampled_from(["},\n  {", '"},{"', "\\", "\n", "\ud800", "}]"])
_CELLS = st.none() | st.integers() | st.floats() | st.booleans() | _TEXTS
_ROWS = st.lists(st.dictionaries(_TEXTS, _CELLS, min_size=1, max_size=3), max_size=4)
_VALUES = st.recursive(
    _CELLS | _ROWS.map(FlatRows),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_it_is_what_the_standard_library_writes(value: object) -> None:
    assert indented(value) == json.dumps(value, indent=2)


def test_rows_of_a_table_within_a_section() -> None:
    rows: list[dict[str, Value]] = [{"name": "},\n{", "ns": 1}, {"name": "", "ns": None}]
    document = {"version": 1, "kernels": {"none": FlatRows(), "rows": FlatRows(rows)}}
    assert indented(document) == json.dumps(document, indent=2)
