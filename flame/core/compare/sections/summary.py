"""Say in one table how both sides compare as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.compare.comparable import compare_facts
from flame.core.compare.comparison import Comparison
from flame.core.compare.sections.cells import (
    change_columns,
    change_percent,
    plain,
    scaled,
    suffix_of,
    units_of,
)
from flame.core.compare.sides import SIDES
from flame.core.compare.verdict import find_verdict
from flame.core.report.table import Section, Table, TableColumn, Value
from flame.core.units import format_percent

NAME, TITLE = "summary", "BASE → NEW"


def summary_section(comparison: Comparison) -> Section:
    """Tell the totals of both sides, and what they are of."""
    metric, basis, changes = comparison.metric, comparison.basis, comparison.changes
    unit, change = units_of(metric, basis)
    sides = (changes.base, changes.new)
    base, new = (plain(scaled(side.value[:1], metric, basis)[0]) for side in sides)
    counts = [int(side.count[0]) for side in sides]
    suffix = suffix_of(unit)
    columns = (TableColumn("measure", "measure"), *change_columns(unit, change, suffix))
    title = " ".join(filter(None, (metric.title, basis.words)))
    row: tuple[Value, ...] = (title, base, new, plain(new - base), change_percent(new - base, base))
    return Section(
        NAME,
        find_verdict(comparison).words,
        facts={
            **find_verdict(comparison).facts,
            "notes": [note._asdict() for note in compare_facts(comparison).notes],
            "metric": metric.key,
            "per": basis.kind,
            "divisors": list(map(plain, basis.divisor)),
            "levels": list(comparison.selection.levels or ()),
            "runs": [_run_facts(comparison, at) for at in range(len(comparison.sides.runs))],
            "counts": counts,
        },
        tables=(Table.of("rows", "", columns, [row]),),
        notes=tuple(_notes(comparison)),
    )


def _run_facts(comparison: Comparison, at: int) -> dict[str, Value]:
    side = comparison.sides.side_of_run[at]
    total = int(comparison.union.total[at, 0])
    count = int(comparison.union.count[at, 0])
    return {
        "side": SIDES[side].lower(),
        "label": comparison.sides.runs[at].label,
        "total": total,
        "count": count,
    }


def _notes(comparison: Comparison) -> Iterator[str]:
    left_out = {f"{each.level} is {each.why}" for each in comparison.left_out}
    yield from (note.text for note in compare_facts(comparison).notes if note.text not in left_out)
    for each in comparison.left_out:
        yield f"{each.level} is left out: {each.why}"
    if comparison.basis.kind == "step" and comparison.sides.has_summary:
        yield "sums of ranks by the number of their steps: the warm-up is in them"
    elif comparison.basis.kind == "step":
        yield from _outside(comparison)
    elif comparison.basis.kind == "share":
        yield "shares of each side's own total hide a change that is the same everywhere"


def _outside(comparison: Comparison) -> Iterator[str]:
    """How much of what passes the filters is in no iteration that counts."""
    shares = []
    for at, run in enumerate(comparison.whole.runs):
        whole = int(run.tree(comparison.selection).total[0])
        shares.append((run.label, whole - int(comparison.union.total[at, 0]), whole))
    words = ", ".join(f"{format_percent(left, whole)} of {label}" for label, left, whole in shares)
    yield f"warm-up and what no iteration launched is left out: {words}"
