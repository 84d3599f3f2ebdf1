"""Compare the ranks of two runs: who was late, what collectives took, the steps, who is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Column
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.questions import both_questions
from flame.core.compare.over_ranks.waiting import waiting_changes
from flame.core.compare.sections.cells import (
    change_columns,
    change_percent,
    plain,
    suffix_of,
    units_of,
)
from flame.core.compare.sides import SIDES
from flame.core.projection.filters import Ranks
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.only_some import rank_words
from flame.core.ranks.rank_diff import (
    collective_times,
    compare_collectives,
    kind_names,
)
from flame.core.ranks.rank_sections.late import late_section
from flame.core.ranks.rank_sections.questions import RankQuestions, collective_nodes
from flame.core.ranks.rank_sections.rank_findings import why_late
from flame.core.report.table import Section, Table, TableColumn, Value, share
from flame.core.units import format_count, format_counted

NAME, TITLE = "ranks", "The ranks, before and after"

_CHANGES = change_columns("ns", "ns_change", "_ns")
_COLLECTIVES = (
    TableColumn("collective", "collective"),
    TableColumn("part", "of a rank, each"),
    *_CHANGES,
)
_STEPS = (TableColumn("rank", "a step of the"), *_CHANGES)
_LATE = (
    TableColumn("rank", "rank", "number"),
    TableColumn("base_ns", "base", "ns"),
    TableColumn("base_percent", "of all", "percent"),
    TableColumn("new_ns", "new", "ns"),
    TableColumn("new_percent", "of all", "percent"),
    TableColumn("base_last", "last in", "count"),
    TableColumn("new_last", "now", "count"),
    TableColumn("base_finding", "late in BASE"),
    TableColumn("new_finding", "in NEW"),
)
_NO_SUMMARIES = "BASE and NEW are not both summaries of ranks"


def ranks_section(comparison: Comparison) -> Section:
    """Compare both sides by their ranks; of several runs, the first of each."""
    both = both_questions(comparison)
    if both is None:
        how = "sum the ranks of each run up: flame ranks 'runs/*.sqlite' -o run.flamesum"
        return Section(NAME, TITLE, why=_NO_SUMMARIES, how=how)
    tables = (*_parts(comparison), _late(both), *_collectives(comparison), *_steps(both))
    return Section(NAME, TITLE, _facts(both), tables, tuple(_notes(comparison, both)))


def _facts(both: Sequence[RankQuestions]) -> dict[str, object]:
    base, new = (_numbers(side) for side in both)
    return {
        "base_ranks": len(base),
        "new_ranks": len(new),
        "only_base": sorted({*base} - {*new}),
        "only_new": sorted({*new} - {*base}),
        "base_lost": len(both[0].lost),
        "new_lost": len(both[1].lost),
        "base_imbalance": _imbalance(both[0]),
        "new_imbalance": _imbalance(both[1]),
    }


def _numbers(side: RankQuestions) -> list[int]:
    return [one.rank for one in side.info]


def _imbalance(side: RankQuestions) -> float | None:
    found = float(side.spread.imbalance[0])
    return None if np.isnan(found) else round(found, 6)


def _changed(base: float, new: float) -> tuple[Value, ...]:
    return (*map(plain, (base, new, new - base)), change_percent(new - base, base))


# Where the GPU time of a rank went


def _parts(comparison: Comparison) -> Iterator[Table]:
    """Divide what is compared by work, transfer and waiting; without waits by collectives alone."""
    if comparison.metric.key != "gpu" or comparison.basis.kind == "activity":
        return
    changes, tree, waits = comparison.changes, comparison.union.tree, waiting_changes(comparison)
    inside = np.flatnonzero(collective_nodes(tree))
    both = []
    for at, side in enumerate((changes.base, changes.new)):
        whole, communicated = float(side.value[0]), float(side.value[inside].sum())
        waited = 0.0
        if waits is not None:
            waited = float((waits.base, waits.new)[at].value[0])
        both.append((whole, whole - communicated, communicated - waited, waited))
    names = ("all", "work", "collectives: transfer", "collectives: waiting")
    rows = [
        (name, *_changed(*pair)) for name, pair in zip(names, zip(*both, strict=True), strict=True)
    ]
    if waits is None:
        rows = [*rows[:2], ("collectives", *rows[2][1:])]
    if len(inside):
        unit, change = units_of(comparison.metric, comparison.basis)
        title = " ".join(filter(None, (comparison.metric.title, comparison.basis.words)))
        columns = (TableColumn("part", title), *change_columns(unit, change, suffix_of(unit)))
        yield Table.of("parts", "", columns, rows, whole=True)


# Who was late


class _Late(NamedTuple):
    """Say how long others waited for a rank, how often it came last, and why if beyond chance."""

    caused: int | None = None
    percent: float | None = None
    last: int | None = None
    why: str | None = None


def _late(both: Sequence[RankQuestions]) -> Table:
    """List the ranks that are late beyond chance on a side, who cost most first."""
    sides = [_late_by_rank(side) for side in both]
    ranks = {rank for side in sides for rank, one in side.items() if one.why}
    found = [(rank, sides[0].get(rank, _Late()), sides[1].get(rank, _Late())) for rank in ranks]
    found.sort(key=lambda one: (-max(one[1].caused or 0, one[2].caused or 0), one[0]))
    rows = [
        (
            rank,
            base.caused,
            base.percent,
            new.caused,
            new.percent,
            base.last,
            new.last,
            base.why,
            new.why,
        )
        for rank, base, new in found
    ]
    return Table.of("late", "how long all others together waited for a rank", _LATE, rows)


def _late_by_rank(side: RankQuestions) -> dict[int, _Late]:
    late = side.late
    if late is None:
        return {}
    whole = int(late.caused.sum())
    rows = zip(late.caused.tolist(), late.last.tolist(), strict=True)
    return {
        side.info[at].rank: _Late(caused, share(caused, whole), last, _why(side, at))
        for at, (caused, last) in reversed([*enumerate(rows)])
    }


def _why(side: RankQuestions, at: int) -> str | None:
    assert side.late is not None
    if not side.late.is_late[at]:
        return None
    cause, _ = why_late(side.late, at)
    return f"by {cause}" if cause else "beyond chance"


# Collectives


def _collectives(comparison: Comparison) -> Iterator[Table]:
    """Compare matched collectives by what they are: transfer and waiting apart."""
    summaries = [side[0].summary for side in comparison.sides]
    base, new = (one for one in summaries if one is not None)
    times = [collective_times(one.collectives, _matched(one)) for one in (base, new)]
    found = compare_collectives(*times)
    names = kind_names(found.kind, base.collectives, new.collectives)
    rows = []
    for at, name in enumerate(names):
        for part, before, after in (
            ("transfer", found.base_transfer, found.new_transfer),
            ("waiting", found.base_wait, found.new_wait),
        ):
            rows.append((name, part, *_changed(float(before[at]), float(after[at]))))
    if rows:
        yield Table.of("collectives", "collectives of both", _COLLECTIVES, rows)


def _matched(summary: RankSummary) -> Column:
    return match_table(summary.collectives, len(summary)).matched


# Steps


def _steps(both: Sequence[RankQuestions]) -> Iterator[Table]:
    """Compare the steps that all ranks have: the median of the median ranks, and of the slowest."""
    medians = []
    for side in both:
        found = side.steps
        whole = found.there == side.ranks
        if not whole.any():
            return
        medians.append((_median(found.median[whole]), _median(found.most[whole])))
    names = ("median rank", "slowest rank")
    pairs = zip(names, zip(*medians, strict=True), strict=True)
    yield Table.of(
        "steps", "the median of the steps", _STEPS, [(n, *_changed(*p)) for n, p in pairs]
    )


def _median(times: I8) -> float:
    return float(np.median(times))


# Notes


def _notes(comparison: Comparison, both: Sequence[RankQuestions]) -> Iterator[str]:
    base, new = both
    if base.ranks != new.ranks and comparison.basis.kind == "rank":
        yield (
            f"BASE has {_ranks(base.ranks)}, NEW {format_count(new.ranks)}: compared is the mean "
            "of the ranks of each, so a width is the sum by their number"
        )
    for name, one, other in zip(SIDES, both, reversed(both), strict=True):
        alone = sorted({*_numbers(one)} - {*_numbers(other)})
        if alone:
            yield f"only in {name}: {'rank' if len(alone) == 1 else 'ranks'} {rank_words(alone)}"
    for name, side in zip(SIDES, both, strict=True):
        yield from _notes_on(name, side)
    if comparison.metric.key == "gpu" and waiting_changes(comparison) is None:
        yield "how long ranks waited in which frame is not known of both: see collectives"
    if any(isinstance(one, Ranks) for one in comparison.selection.where):
        yield "who is late, collectives and steps are of all ranks"
    if any(len(side) > 1 for side in comparison.sides):
        yield "of several runs of a side the first is told here"


def _notes_on(name: str, side: RankQuestions) -> Iterator[str]:
    if side.late is None:
        why = late_section(side).why
        yield f"{name}: who makes the others wait is not known: {why}"
    elif not side.late.is_late.any():
        yield f"{name}: no rank is late beyond chance"
    counts, slowest = side.collectives, side.slowest
    if lacking := counts.number - counts.matched:
        number = format_count(counts.number)
        yield f"{name}: {format_count(lacking)} of {number} collectives do not match over ranks"
    if slowest is not None and slowest.repeats:
        yield (
            f"{name}: {side.rank_name(slowest.worst)} is the slowest in "
            f"{100 * slowest.share:.0f} % of the steps, beyond chance"
        )


def _ranks(number: int) -> str:
    return format_counted(number, "rank", "ranks")
