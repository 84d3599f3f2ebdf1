"""Tell how long the ranks took for each step, and whether one is always the slowest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.report.table import Section, Table, TableColumn, Value

NAME, TITLE = "steps", "Steps by rank"

_COLUMNS = (
    TableColumn("step", "step", "number"),
    TableColumn("there", "ranks", "count"),
    TableColumn("min_ns", "min", "ns"),
    TableColumn("median_ns", "median", "ns"),
    TableColumn("max_ns", "max", "ns"),
    TableColumn("worst", "slowest", "number"),
    TableColumn("percent", "above median", "percent"),
)
_SLOWEST = (
    TableColumn("rank", "slowest rank", "number"),
    TableColumn("steps", "steps", "count"),
    TableColumn("percent", "of all", "percent"),
)


def steps_section(questions: RankQuestions) -> Section:
    """List the steps, those first in which the slowest rank is farthest above the median."""
    found, slowest = questions.steps, questions.slowest
    if not len(found):
        how = "mark them by ranges such as step 7, or name the ranges: flame ranks --iteration RE"
        return Section(NAME, TITLE, why="no steps were recorded", how=how)
    facts: dict[str, object] = {
        "count": len(found),
        "compared": slowest.of if slowest else 0,
        "slowest": questions.info[slowest.worst].rank if slowest else None,
        "slowest_steps": slowest.steps if slowest else 0,
        "repeats": slowest.repeats if slowest else None,
        "iteration": _expressions(questions),
    }
    tables = (
        Table.of("rows", "by what the slowest rank takes longer", _COLUMNS, _rows(questions)),
        Table.of("slowest", "how often a rank is the slowest", _SLOWEST, _slowest(questions)),
    )
    return Section(NAME, TITLE, facts, tables, tuple(_notes(questions)))


def _rows(questions: RankQuestions) -> Iterator[tuple[Value, ...]]:
    found = questions.steps
    for at in np.argsort(found.median - found.most, kind="stable").tolist():
        worst, median, most = int(found.worst[at]), int(found.median[at]), int(found.most[at])
        yield (
            int(found.number[at]),
            int(found.there[at]),
            int(found.least[at]),
            median,
            most,
            questions.info[worst].rank if worst >= 0 else None,
            round(100 * (most - median) / median, 3) if median else None,
        )


def _slowest(questions: RankQuestions) -> Iterator[tuple[Value, ...]]:
    worst = questions.steps.worst
    counts = np.bincount(worst[worst >= 0], minlength=questions.ranks)
    for at in np.argsort(-counts, kind="stable").tolist():
        if counts[at]:
            number = int(counts[at])
            yield questions.info[at].rank, number, round(100 * number / int(counts.sum()), 3)


def _expressions(questions: RankQuestions) -> list[str]:
    """What the iterations of the ranks were told by, each once; '' without an expression."""
    return sorted({one.iteration for one in questions.info if one.step_numbers})


def _notes(questions: RankQuestions) -> Iterator[str]:
    slowest = questions.slowest
    if len(named := _expressions(questions)) > 1:
        ways = ", ".join(f"--iteration {one}" if one else "none" for one in named)
        yield f"iterations were named differently ({ways}): a number may be of different things"
    if slowest is None:
        yield "no step is known of two ranks or more"
    elif slowest.repeats:
        told = f"in {100 * slowest.share:.0f} % of the steps"
        yield f"{questions.rank_name(slowest.worst)} is the slowest beyond chance: {told}"
    else:
        yield "the slowest rank rotates: none is it more often than chance makes one"
