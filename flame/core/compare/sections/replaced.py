"""Tell what may have been replaced: work that went and came below one frame."""

from __future__ import annotations

import numpy as np

from flame.core.compare.comparison import Comparison
from flame.core.compare.replaced import find_replaced
from flame.core.compare.sections.cells import place_of, plain, suffix_of, units_of
from flame.core.report.table import Section, Table, TableColumn

NAME, TITLE = "replaced", "What may have been replaced"

_MOST = 1_000


def replaced_section(comparison: Comparison) -> Section:
    """List pairs of frames with equal numbers of activities, and what went and came below which."""
    pairs, below = _pairs(comparison), _below(comparison)
    notes = () if pairs.rows or below.rows else ("nothing went and came below one frame",)
    return Section(NAME, TITLE, tables=(pairs, below), notes=notes)


def _pairs(comparison: Comparison) -> Table:
    found, tree, changes = find_replaced(comparison), comparison.union.tree, comparison.changes
    unit, change = units_of(comparison.metric, comparison.basis)
    suffix = suffix_of(unit)
    columns = (
        TableColumn("old", "gone"),
        TableColumn("new", "perhaps for it"),
        TableColumn("count", "each", "count"),
        TableColumn(f"old{suffix}", "base", unit),
        TableColumn(f"new{suffix}", "new", unit),
        TableColumn(f"change{suffix}", "change", change),
    )
    size = np.maximum(changes.base.value[found.old_node], changes.new.value[found.new_node])
    rows, places = [], []
    for at in np.argsort(-size, kind="stable")[:_MOST].tolist():
        old, new = int(found.old_node[at]), int(found.new_node[at])
        base, now = float(changes.base.value[old]), float(changes.new.value[new])
        count = int(changes.base.count[old])
        rows.append((tree.name(old), tree.name(new), count, *map(plain, (base, now, now - base))))
        places.append(place_of(comparison, new))
    return Table.of("pairs", "equally many, at the same place", columns, rows, places)


def _below(comparison: Comparison) -> Table:
    found, tree = find_replaced(comparison), comparison.union.tree
    unit, _ = units_of(comparison.metric, comparison.basis)
    suffix = suffix_of(unit)
    columns = (
        TableColumn("frame", "below"),
        TableColumn(f"gone{suffix}", "gone", unit),
        TableColumn(f"new{suffix}", "came", unit),
    )
    order = np.argsort(-found.amount, kind="stable")
    nodes = order[found.amount[order] > 0][:_MOST].tolist()
    rows = [(tree.name(node), plain(found.gone[node]), plain(found.new[node])) for node in nodes]
    places = [place_of(comparison, node) if node else None for node in nodes]
    return Table.of("below", "in all", columns, rows, places)
