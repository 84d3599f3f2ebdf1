"""Write a page that needs nothing else: the flame graph, the frames that weigh most, a summary."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from html import escape
from typing import BinaryIO

from flame._version import __version__
from flame.core.analysis.trace_summary import summarize
from flame.core.analysis.utilization import utilizations
from flame.core.analysis.words.busy import busy_words
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.selection import Selection
from flame.core.report.table import Table, TableColumn, Value
from flame.core.shown_text import cut, printable
from flame.core.units import format_count, format_ns, format_percent, format_value
from flame.exporters.pictures import svg, svg_script
from flame.exporters.pictures.html_head import SCRIPT, head
from flame.exporters.tables.frame_table import FrameColumns

_MOST = 200
"""Frames in the table."""

_LONGEST_NAME, _LONGEST_TIP = 160, 1_000


def write(
    tree: StackTree, profile: Profile, selection: Selection, file: BinaryIO, *, name: str
) -> list[str]:
    """Write ``tree``, which is of ``profile`` under ``selection``, as a page called ``name``.

    It loads nothing from anywhere: a browser that obeys it refuses to. Returns a note of what is
    not drawn.
    """
    title = _text(name)
    found = FrameColumns(profile, tree, selection)
    table = found.table(found.rows("self")[:_MOST])
    parts = [
        head(f"{title} – flame", (SCRIPT, svg_script.SCRIPT)),
        f"<body>\n<h1>{title}</h1>\n",
        *(f"<p>{_text(line)}</p>\n" for line in _summary(profile, selection)),
        svg.draw(tree, svg.titled(tree, name)),
        *(f'<p class="note">{_text(note)}</p>\n' for note in svg.left_out(tree)),
        "<h2>Frames that weigh most</h2>\n",
        _table(tree, table, len(found.totals)),
        *(f'<p class="note">{_text(note)}</p>\n' for note in (*profile.warnings, *found.notes)),
        f'<p class="about">flame {__version__}</p>\n',
        f"<script>{SCRIPT}</script>\n<script>{svg_script.SCRIPT}</script>\n</body>\n</html>\n",
    ]
    file.write("".join(parts).encode())
    return [*svg.left_out(tree), *found.notes]


def _summary(profile: Profile, selection: Selection) -> Iterator[str]:
    """What ran on which GPUs, and how busy they were."""
    summary = summarize(profile)
    counted = f"{format_count(summary.activities)} {summary.noun}"
    if summary.resolved:
        yield counted
        return
    busy = busy_words(utilizations(profile, selection.where))
    words = [", ".join(summary.device_names), busy.length, busy.each or busy.busy, busy.idle]
    yield " · ".join(filter(None, [*words, f"GPU time {format_ns(summary.gpu_time)}", counted]))
    whole = sum(part.ns for part in summary.categories.values())
    kinds = (f"{key} {format_percent(part.ns, whole)}" for key, part in summary.categories.items())
    if text := ", ".join(kinds):
        yield f"kernels: {text}"


def _table(tree: StackTree, table: Table, frames: int) -> str:
    cell = partial(_cell, tree.metric.unit)
    heads = "".join(f"<th{_side(column)}>{_text(column.title)}</th>" for column in table.columns)
    rows = ("".join(map(cell, table.columns, row)) for row in table.rows)
    body = "".join(f"<tr>{cells}</tr>\n" for cells in rows)
    more = frames - len(table.rows)
    note = f'<p class="note">… and {more:,} more</p>\n' if more else ""
    return (
        f'<div class="scroll"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n{note}"
    )


def _side(column: TableColumn) -> str:
    return ' class="n"' if column.is_number else ""


def _cell(unit: str, column: TableColumn, value: Value) -> str:
    if value is None:
        return f'<td{_side(column)} data-v=""></td>'
    if isinstance(value, str):
        shown = printable(value)
        title = f' title="{escape(cut(shown, _LONGEST_TIP))}"' if len(shown) > _LONGEST_NAME else ""
        return f"<td{title}>{escape(cut(shown, _LONGEST_NAME))}</td>"
    return f'<td class="n" data-v="{value}">{_number(column, value, unit)}</td>'


def _number(column: TableColumn, value: float, unit: str) -> str:
    if column.unit == "percent":
        return format_percent(value, 100)
    if column.unit == "number":
        return str(value)
    if column.unit == "ratio":
        return f"{value:.1f}×"
    if column.unit == "ns":
        return escape(format_ns(value))
    return format_count(value) if column.title == "count" else escape(format_value(value, unit))


def _text(text: str) -> str:
    return escape(printable(text))
