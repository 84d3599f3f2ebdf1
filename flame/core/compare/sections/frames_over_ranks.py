"""Tell which frames changed by waiting alone, and which on the worst rank alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import I8
from flame.core.compare.comparison import Comparison
from flame.core.compare.noise.beyond_noise import changed_nodes
from flame.core.compare.over_ranks.waiting import waiting_changes
from flame.core.compare.over_ranks.worst_ranks import WorstRanks, worst_ranks
from flame.core.compare.sections.cells import (
    change_columns,
    change_percent,
    path_words,
    place_of,
    plain,
    suffix_of,
    units_of,
)
from flame.core.report.table import Table, TableColumn, Value

_MOST = 1_000


def frames_over_ranks(comparison: Comparison, by_waiting: I8) -> Iterator[Table]:
    """List the nodes that changed ``by_waiting`` alone, and those that the worst rank alone has.

    There are none of these tables where ranks tell nothing.
    """
    if waiting_changes(comparison) is not None:
        yield _waiting(comparison, by_waiting[:_MOST])
    worst = worst_ranks(comparison)
    if worst is not None:
        yield _worst(comparison, worst)


def _waiting(comparison: Comparison, nodes: I8) -> Table:
    """List collectives, and frames around them, whose transfer and work is as before."""
    changes, waits = comparison.changes, waiting_changes(comparison)
    assert waits is not None
    unit, change = units_of(comparison.metric, comparison.basis)
    suffix = suffix_of(unit)
    columns = (
        TableColumn("frame", "frame ‹ below"),
        TableColumn("name", ""),
        *change_columns(unit, change, suffix),
        TableColumn(f"base_wait{suffix}", "waited", unit),
        TableColumn(f"new_wait{suffix}", "now", unit),
        TableColumn(f"wait_change{suffix}", "of the change", change),
    )
    rows = []
    for node in nodes.tolist():
        cells = [float(column[node]) for column in (changes.base.value, changes.new.value)]
        delta = cells[1] - cells[0]
        of_waits = (waits.base.value, waits.new.value, waits.delta)
        rows.append(
            (
                *_named(comparison, node),
                *map(plain, (*cells, delta)),
                change_percent(delta, cells[0]),
                *(plain(float(column[node])) for column in of_waits),
            )
        )
    places = [place_of(comparison, node) for node in nodes.tolist()]
    return Table.of("waiting", "changed by waiting in collectives alone", columns, rows, places)


def _worst(comparison: Comparison, worst: WorstRanks) -> Table:
    """List the frames whose worst rank changed, and not most of the others."""
    nodes = np.flatnonzero(worst.told & ~changed_nodes(comparison))
    nodes = nodes[np.argsort(-np.abs(worst.change[nodes]), kind="stable")][:_MOST]
    unit, change = units_of(comparison.metric, comparison.basis)
    suffix = suffix_of(unit)
    columns = (
        TableColumn("frame", "frame ‹ below"),
        TableColumn("name", ""),
        *change_columns(unit, change, suffix),
        TableColumn("base_rank", "rank", "number"),
        TableColumn("new_rank", "now rank", "number"),
    )
    rows = [_worst_row(comparison, worst, node) for node in nodes.tolist()]
    places = [place_of(comparison, node) for node in nodes.tolist()]
    return Table.of("worst", "changed on the worst rank, not on most", columns, rows, places)


def _worst_row(comparison: Comparison, worst: WorstRanks, node: int) -> tuple[Value, ...]:
    base, new = float(worst.base[node]), float(worst.new[node])
    there = (base > 0, new > 0)
    ranks = (int(worst.base_rank[node]), int(worst.new_rank[node]))
    return (
        *_named(comparison, node),
        *map(plain, (base, new, new - base)),
        change_percent(new - base, base),
        *(rank if is_there else None for rank, is_there in zip(ranks, there, strict=True)),
    )


def _named(comparison: Comparison, node: int) -> tuple[str, str]:
    tree = comparison.union.tree
    return path_words(tree, node), tree.name(node)
