"""Tell what the frames at the end of stacks cost on either side, wherever they ran."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.compare.changes import Changes, side_sums
from flame.core.compare.comparison import Comparison
from flame.core.compare.sections.cells import (
    cause_columns,
    change_cells,
    change_columns,
    divided_nodes,
    suffix_of,
    units_of,
)
from flame.core.report.table import Place, Section, Table, TableColumn

NAME, TITLE = "kernels", "What the innermost frames cost, wherever they ran"


def changes_by_frame(comparison: Comparison) -> Changes:
    """Sum up, for every frame of the union, what ends in it; by frame id."""
    union, size = comparison.union, len(comparison.union.tree.text)

    def by_frame(own: I8) -> I8:
        return np.stack([sum_by(union.tree.frame, column, size) for column in own])

    runs = comparison.sides.side_of_run
    total, count = by_frame(union.own), by_frame(union.own_count)
    return side_sums(comparison.basis, runs, total, count, union.total[:, 0])


def kernels_section(comparison: Comparison) -> Section:
    """List the innermost frames, the largest change first."""
    metric, basis, text = comparison.metric, comparison.basis, comparison.union.tree.text
    changes = changes_by_frame(comparison)
    there = np.flatnonzero(changes.base.is_there | changes.new.is_there)
    rows = there[np.argsort(-np.abs(changes.delta[there]), kind="stable")].tolist()
    unit, change = units_of(metric, basis)
    suffix = suffix_of(unit)
    columns = (
        TableColumn("name", "name"),
        *change_columns(unit, change, suffix),
        *cause_columns(change, suffix),
    )
    divided = np.zeros(len(text), bool)
    divided[comparison.union.tree.frame[divided_nodes(comparison.union.tree)]] = True
    cells = change_cells(changes, rows, metric, basis, divided)
    named = ((text[row], *cell) for row, cell in zip(rows, cells, strict=True))
    places = [Place((), (text[row],), metric.key) for row in rows]
    return Section(NAME, TITLE, tables=(Table.of("rows", "", columns, named, places),))
