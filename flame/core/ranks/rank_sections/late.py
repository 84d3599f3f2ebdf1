"""Tell which ranks come last to collectives, and how long the others wait for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.rank_sections.questions import LateRanks, RankQuestions
from flame.core.ranks.rank_sections.rank_findings import late_places, why_late
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share

NAME, TITLE = "late", "Who makes the others wait"

_COLUMNS = (
    TableColumn("finding", "!"),
    TableColumn("rank", "rank", "number"),
    TableColumn("last", "last in", "count"),
    TableColumn("caused_ns", "others waited", "ns"),
    TableColumn("percent", "of all waiting", "percent"),
    TableColumn("by", "late by"),
    TableColumn("by_percent", "of that", "percent"),
    TableColumn("waited_ns", "waited itself", "ns"),
    TableColumn("path", ""),
)


def late_section(questions: RankQuestions) -> Section:
    """List the ranks by how long others waited for them."""
    late = questions.late
    if late is None:
        return Section(NAME, TITLE, **questions.not_late._asdict())
    order = np.argsort(-late.caused, kind="stable").tolist()
    order = [at for at in order if late.last[at] or late.waited[at] > 0]
    facts: dict[str, object] = {
        "collectives": questions.collectives.matched,
        "waiting_ns": int(late.caused.sum()),
    }
    places = [Place(file=questions.info[at].path) for at in order]
    table = Table.of("rows", "", _COLUMNS, _rows(questions, late, order), places)
    notes = () if late_places(late) else ("no rank is late beyond chance",)
    return Section(NAME, TITLE, facts, (table,), notes)


def _rows(
    questions: RankQuestions, late: LateRanks, order: list[int]
) -> Iterator[tuple[Value, ...]]:
    told, whole = set(late_places(late)), int(late.caused.sum())
    for at in order:
        cause, part = why_late(late, at)
        yield (
            "!" if at in told else None,
            questions.info[at].rank,
            int(late.last[at]),
            int(late.caused[at]),
            share(int(late.caused[at]), whole),
            cause or None,
            None if part is None else round(100 * part, 1),
            int(late.waited[at]) if late.waited[at] >= 0 else None,
            questions.info[at].path,
        )
