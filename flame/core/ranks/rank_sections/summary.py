"""Tell what was read of how many ranks, and what their collectives and clocks tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from flame.core.ranks.rank_sections.questions import CollectiveCounts, RankQuestions
from flame.core.report.table import Section, Table, TableColumn, Value
from flame.core.units import format_count, format_counted, format_ns, format_percent, format_value

NAME, TITLE = "summary", "The ranks together"

_COLUMNS = (
    TableColumn("quantity", "of the ranks"),
    TableColumn("value", "value"),
)
_MOST_WARNINGS = 5


def summary_section(questions: RankQuestions) -> Section:
    """Tell ranks, GPU time, imbalance, collectives and clocks."""
    facts = _facts(questions)
    table = Table.of("rows", "", _COLUMNS, _rows(questions), whole=True)
    return Section(NAME, TITLE, facts, (table,), tuple(_warnings(questions)))


def _facts(questions: RankQuestions) -> dict[str, object]:
    spread, clocks = questions.spread, questions.clocks
    imbalance = float(spread.imbalance[0])
    return {
        "ranks": questions.ranks,
        "lost": len(questions.lost),
        "metric": questions.tree.metric.key,
        "levels": list(questions.tree.levels),
        "mean": float(spread.mean[0]),
        "imbalance": None if np.isnan(imbalance) else round(imbalance, 6),
        "left_out": int(questions.left_out.sum()),
        "collectives": _counts(questions.collectives),
        "clocks_apart_ns": clocks.apart if clocks else None,
        "clocks_error_ns": int(clocks.error.max(initial=0)) if clocks else None,
    }


def _counts(counts: CollectiveCounts) -> dict[str, object]:
    unmatched = [one._asdict() for one in counts.unmatched]
    return {"number": counts.number, "matched": counts.matched, "unmatched": unmatched}


def _rows(questions: RankQuestions) -> Iterator[tuple[Value, ...]]:
    spread, counts, clocks = questions.spread, questions.collectives, questions.clocks
    metric = questions.tree.metric
    yield "ranks", _read(questions)
    yield f"{metric.title} of a rank", format_value(float(spread.mean[0]), metric.unit)
    yield "imbalance", _imbalance(questions)
    if counts.number:
        yield "collectives", _collectives(questions)
    if clocks is not None:
        yield (
            "clocks",
            f"up to {format_ns(clocks.apart)} apart, told by the ends of collectives to "
            f"{format_ns(int(clocks.error.max(initial=0)))}",
        )


def _read(questions: RankQuestions) -> str:
    lost = f", {format_count(len(questions.lost))} could not be read" if questions.lost else ""
    return f"{format_count(questions.ranks)}{lost}"


def _imbalance(questions: RankQuestions) -> str:
    spread = questions.spread
    if not spread.total[0]:
        return "none of it"
    worst = questions.rank_name(int(spread.worst[0]))
    return f"{format_percent(float(spread.imbalance[0]), 1)} above the mean on {worst}"


def _collectives(questions: RankQuestions) -> str:
    counts = questions.collectives
    return f"{format_count(counts.matched)} of {format_count(counts.number)} matched on all ranks"


def _warnings(questions: RankQuestions) -> Iterator[str]:
    """What the ranks' files were warned of, with how many ranks; and what was left out."""
    found = Counter(one for info in questions.info for one in dict.fromkeys(info.warnings))
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    for text, number in ordered[:_MOST_WARNINGS]:
        some = "" if number == questions.ranks else f"{format_counted(number, 'rank', 'ranks')}: "
        yield some + text
    if left_out := int(questions.left_out.sum()):
        of = format_value(left_out, questions.tree.metric.unit)
        yield (
            f"small values of ranks were left out of the summary, {of} of all: sums are exact, "
            "what a single rank has may be more by its part of that"
        )
