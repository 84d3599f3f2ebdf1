"""Tell which frames changed: what grew, shrank, came and went, where it stands in the stack."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.compare.changes import Changes, heirs
from flame.core.compare.comparison import Comparison
from flame.core.compare.evidence import EvidenceLevel, find_evidence
from flame.core.compare.noise.beyond_noise import changed_nodes
from flame.core.compare.over_ranks.waiting import changed_by_waiting
from flame.core.compare.sections.cells import (
    cause_columns,
    change_cells,
    change_columns,
    divided_nodes,
    path_words,
    place_of,
    suffix_of,
    units_of,
)
from flame.core.compare.sections.frames_over_ranks import frames_over_ranks
from flame.core.kept_results import kept
from flame.core.report.table import Section, Table, TableColumn, Value

NAME, TITLE = "frames", "Which frames changed"

_EVIDENCE = (
    TableColumn("evidence", "known from"),
    TableColumn("low_percent", "from", "percent_change"),
    TableColumn("high_percent", "to", "percent_change"),
    TableColumn("chance", "", "ratio"),
)
_MOST = 1_000
"""Rows of a table that are made."""


class ChangedFrames(NamedTuple):
    """List nodes of the union by how they changed, the largest change first; i8[n] each."""

    grew: I8
    shrank: I8
    new: I8
    gone: I8


@kept
def changed_frames(comparison: Comparison) -> ChangedFrames:
    """Choose the nodes that tell of all changes which count.

    A change is told of the deepest frame that has at least 80 % of it. Of what is on one side only
    the outermost frame's change is told.
    """
    changes, tree, marked = comparison.changes, comparison.union.tree, changed_nodes(comparison)
    heir = heirs(tree, changes.delta)
    last = heir < 0
    one_sided = changes.is_new | changes.is_gone
    one_sided[0] = False
    told = marked & last & ~one_sided
    told[0] = False
    outer = np.flatnonzero(marked & one_sided & ~one_sided[tree.parent])
    deepest = _ends(heir)[outer]
    return ChangedFrames(
        _by_size(np.flatnonzero(told & (changes.delta > 0)), changes),
        _by_size(np.flatnonzero(told & (changes.delta < 0)), changes),
        _by_size(deepest[changes.is_new[deepest]], changes),
        _by_size(deepest[changes.is_gone[deepest]], changes),
    )


def _by_size(nodes: I8, changes: Changes) -> I8:
    return nodes[np.argsort(-np.abs(changes.delta[nodes]), kind="stable")]


def _ends(heir: I8) -> I8:
    """Follow heirs to the last one; parents stand before their children."""
    ends = np.arange(len(heir))
    ends[heir >= 0] = heir[heir >= 0]
    while True:
        further = ends[ends]
        if (further == ends).all():
            return ends
        ends = further


def frames_section(comparison: Comparison) -> Section:
    """Tell which frames changed."""
    found = changed_frames(comparison)
    by_waiting = changed_by_waiting(comparison)
    tables = [
        _table(comparison, "grew", "grew", found.grew[~by_waiting[found.grew]]),
        _table(comparison, "shrank", "shrank", found.shrank[~by_waiting[found.shrank]]),
        _table(comparison, "new", "only in NEW", found.new, "new"),
        _table(comparison, "gone", "only in BASE", found.gone, "base"),
    ]
    both = np.concatenate([found.grew, found.shrank])
    tables += frames_over_ranks(comparison, _by_size(both[by_waiting[both]], comparison.changes))
    notes = () if any(table.total for table in tables) else ("no frame changed beyond noise",)
    return Section(NAME, TITLE, tables=tuple(tables), notes=notes)


def _table(comparison: Comparison, key: str, title: str, nodes: I8, alone: str = "") -> Table:
    """List ``nodes``; people see of what is on one side ``alone`` nothing of the other."""
    metric, basis = comparison.metric, comparison.basis
    unit, change = units_of(metric, basis)
    suffix = suffix_of(unit)
    numbers = [*change_columns(unit, change, suffix), *cause_columns(change, suffix)]
    if alone:
        numbers = [_of_side(column, alone) for column in numbers]
    columns = (TableColumn("frame", "frame ‹ below"), TableColumn("name", ""), *numbers, *_EVIDENCE)
    rows = nodes[:_MOST].tolist()
    tree = comparison.union.tree
    cells = change_cells(comparison.changes, rows, metric, basis, divided_nodes(tree))
    texts = ((path_words(tree, node), tree.name(node)) for node in rows)
    told = _evidence_cells(comparison, rows)
    made = Table.of(
        key,
        title,
        columns,
        ((*text, *cell, *how) for text, cell, how in zip(texts, cells, told, strict=True)),
        [place_of(comparison, node) for node in rows],
    )
    return replace(made, total=len(nodes))


def _evidence_cells(comparison: Comparison, rows: Sequence[int]) -> Iterator[tuple[Value, ...]]:
    """What each change is known from, its interval in percent of the base, and the chance."""
    found = find_evidence(comparison)
    for row in rows:
        level = EvidenceLevel(int(found.level[row]))
        if level == EvidenceLevel.NONE:
            yield None, None, None, None
            continue
        low, high, p = (float(column[row]) for column in (found.low, found.high, found.adjusted))
        bounds = (None, None) if math.isnan(low + high) else (_percent(low), _percent(high))
        yield level.name.lower(), *bounds, None if math.isnan(p) else float(f"{p:.3g}")


def _percent(part: float) -> float | None:
    return round(100 * part, 3) if math.isfinite(part) else None


def _of_side(column: TableColumn, side: str) -> TableColumn:
    """Show a column to people where it is of ``side``, its count too."""
    if not column.key.startswith(f"{side}_") and column.key != side:
        return column._replace(title="")
    return column._replace(title="count" if column.key.endswith("_count") else side)
