"""Write JSON with an indent, and tables of many rows by what Python has compiled."""

from __future__ import annotations

import json

from flame.core.report.table import Value

_STEP = "  "


class FlatRows(list[dict[str, Value]]):
    """Rows of a table, none of which is empty."""


def indented(value: object, margin: str = "\n") -> str:
    """Write ``value``, whose keys are texts, as ``json.dumps`` with ``indent=2`` does.

    That is compiled only where nothing is indented. ``margin`` is what a line begins with.
    """
    inner = margin + _STEP
    if isinstance(value, FlatRows) and value:
        return _rows(value, margin, inner)
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}: {indented(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(items)}{margin}}}"
    return json.dumps(value, indent=len(_STEP)).replace("\n", margin)  # in no text: it is escaped


def _rows(rows: FlatRows, margin: str, inner: str) -> str:
    """Write rows without their lines, but with those of their cells, which no text can hold."""
    cell = inner + _STEP
    text = json.JSONEncoder(separators=(f",{cell}", ": ")).encode(rows)
    cells = text[2:-2].replace(f"}},{cell}{{", f"{inner}}},{inner}{{{cell}")
    return f"[{inner}{{{cell}{cells}{inner}}}{margin}]"
