"""Make the columns and cells that the sections of a comparison have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import F8, Bool
from flame.core.compare.basis import Basis
from flame.core.compare.changes import Changes
from flame.core.compare.comparison import Comparison
from flame.core.frame import PART_KINDS
from flame.core.model.metrics import Metric
from flame.core.model.tree import StackTree
from flame.core.report.table import ChangeUnit, Place, TableColumn, Unit, Value
from flame.core.units import FLOP

_DIGITS = 3
_UNITS: dict[str, tuple[Unit, ChangeUnit]] = {
    "ns": ("ns", "ns_change"),
    "bytes": ("bytes", "bytes_change"),
    FLOP: ("FLOP", "FLOP_change"),
}
_NUMBERS: tuple[Unit, ChangeUnit] = ("ratio", "ratio_change")
_PERCENT: tuple[Unit, ChangeUnit] = ("percent", "percent_change")
_NO_CAUSES = (None,) * 4
"""Of what counts nothing that happened: the lines of a file of stacks are no calls."""

_BELOW = " ‹ "
"""Between a frame and the one it stands below."""

_ONE_EACH = 2
"""Runs of both sides together where each has one: what is counted is whole then."""


def units_of(metric: Metric, basis: Basis) -> tuple[Unit, ChangeUnit]:
    """Choose the units of values and of changes of ``metric``, as they are shown."""
    if basis.kind == "share":
        return _PERCENT
    if metric.unit == "count" and basis.kind == "total" and len(basis.divisor) == _ONE_EACH:
        return "count", "count_change"
    return _UNITS.get(metric.unit, _NUMBERS)


def change_columns(unit: Unit, change: ChangeUnit, suffix: str) -> tuple[TableColumn, ...]:
    """Make the columns of both sides and the change, whose keys end in ``suffix``."""
    return (
        TableColumn(f"base{suffix}", "base", unit),
        TableColumn(f"new{suffix}", "new", unit),
        TableColumn(f"change{suffix}", "change", change),
        TableColumn("change_percent", "of base", "percent_change"),
    )


def cause_columns(change: ChangeUnit, suffix: str) -> tuple[TableColumn, ...]:
    """Make the columns that say what a change is due to, and the counts of both sides."""
    return (
        TableColumn(f"by_count{suffix}", "by count", change),
        TableColumn(f"by_duration{suffix}", "by duration", change),
        TableColumn("base_count", "", "count"),
        TableColumn("new_count", "", "count"),
    )


def suffix_of(unit: Unit) -> str:
    """Choose the end of keys for values of ``unit``: none for plain numbers."""
    return {"ns": "_ns", "bytes": "_bytes", "percent": "_percent"}.get(unit, "")


def place_of(comparison: Comparison, node: int) -> Place:
    """Say where a row leads that is about a ``node`` of the union."""
    tree = comparison.union.tree
    return Place(tree.levels, tree.names(node), tree.metric.key)


def path_words(tree: StackTree, node: int) -> str:
    """Name a frame and those above it, the innermost first."""
    return _BELOW.join(reversed(tree.names(node)))


def plain(value: float) -> int | float:
    """Round a number for JSON; a whole one has no point."""
    rounded = round(float(value), _DIGITS)
    return int(rounded) if rounded.is_integer() else rounded


def change_percent(delta: float, base: float) -> float | None:
    """Say what part of ``base`` a change is, in percent; None where there is no base."""
    return round(100 * delta / base, _DIGITS) if base else None


def scaled(values: F8, metric: Metric, basis: Basis) -> F8:
    """Return ``values`` as they are shown: those of a fraction's parts as the fraction."""
    if basis.kind != "share" and metric.unit.startswith("1e-"):
        parts: F8 = values / 10 ** int(metric.unit.removeprefix("1e-"))
        return parts
    return values


def divided_nodes(tree: StackTree) -> Bool:
    """Mark the nodes that have parts of activities alone, whose numbers say nothing, bool[n]."""
    divided: Bool = np.isin(tree.frames.kind, PART_KINDS)[tree.frame]
    if divided.any():
        for row in tree.rows[1:]:
            divided[row] |= divided[tree.parent[row]]
    return divided


def change_cells(
    changes: Changes, rows: Sequence[int], metric: Metric, basis: Basis, divided: Bool
) -> Iterator[tuple[Value, ...]]:
    """List, for each of ``rows``, the cells of `change_columns` and `cause_columns`.

    Of what a change is due to nothing is known where rows are no activities, or ``divided`` ones.
    """
    at = np.array(rows, np.int64)
    values = (changes.base.value, changes.new.value, changes.delta)
    causes = (changes.by_count, changes.by_duration)
    shown = [scaled(column[at], metric, basis).tolist() for column in (*values, *causes)]
    counts = [side.count[at].tolist() for side in (changes.base, changes.new)]
    whole = (~divided[at] & (metric.noun == "activities")).tolist()
    told = zip(whole, *shown, *counts, strict=True)
    for is_whole, base, new, delta, often, longer, base_count, new_count in told:
        known = (plain(often), plain(longer), base_count, new_count)
        yield (
            *(plain(base), plain(new), plain(delta), change_percent(delta, base)),
            *(known if is_whole else _NO_CAUSES),
        )
