"""Write the table of a tree's frames for spreadsheets and scripts: CSV, JSON, Parquet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, BinaryIO

from flame.core.lazy_regex import lazy_regex
from flame.core.model.tree import StackTree
from flame.core.report.table import Table, Value
from flame.exporters.stacks import encodable
from flame.exporters.tables.dataframes import imported

CONTRACT = 1
"""Of the JSON; counts up when something is renamed or goes, not by what is added."""

_FORMULA = lazy_regex(r'^(?=[\t\r\n])|(^|[;\t\r\n]"*+)(?=[=+\-@＝＋－＠])')
"""Where a spreadsheet takes a text for a formula, which may start programs: where it begins, and
behind what separates cells in some countries, where quotes count only at the beginning of a row."""


def as_csv(table: Table) -> str:
    """Write a table as RFC 4180 has it: all rows, the keys of columns with their units."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.key for column in table.columns])
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return encodable(text.getvalue())


def _cell(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(r"\1'", value)


def as_json(table: Table, tree: StackTree, name: str) -> str:
    """Write ``table`` and what ``tree``, of the trace ``name``, measures; a frame on a line.

    It is plain ASCII, which no pipe, terminal or locale can damage.
    """
    metric = tree.metric
    about = {
        "flame_top": CONTRACT,
        "title": encodable(name),
        "metric": {"key": metric.key, "title": metric.title, "unit": metric.unit},
        "levels": tree.levels,
        "total": int(tree.total[0]),
        "frames": table.total,
    }
    keys = [column.key for column in table.columns]
    rows = (dict(zip(keys, map(_encodable, row), strict=True)) for row in table.rows)
    lines = ",\n".join(map(json.dumps, rows))
    return f'{json.dumps(about)[:-1]}, "rows": [\n{lines}\n]}}\n'


def write_parquet(table: Table, tree: StackTree, name: str, file: BinaryIO) -> None:
    """Write ``table`` in Parquet, the metric and levels of ``tree`` beside it.

    Raises UsageError where pyarrow is not installed.
    """
    parquet = imported("pyarrow.parquet", "Parquet")
    arrow = imported("pyarrow", "Parquet")
    columns: dict[str, Any] = {}
    for at, column in enumerate(table.columns):
        values = [_encodable(row[at]) for row in table.rows]
        columns[column.key] = arrow.array(values, arrow.string() if column.unit == "text" else None)
    metric = tree.metric
    about = {"title": encodable(name), "metric": metric.key, "unit": metric.unit}
    about["levels"] = ",".join(tree.levels)
    made = arrow.table(columns).replace_schema_metadata({f"flame.{k}": v for k, v in about.items()})
    parquet.write_table(made, file)


def _encodable(value: Value) -> Value:
    return encodable(value) if isinstance(value, str) else value
