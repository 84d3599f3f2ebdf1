"""Tell how far the clocks of ranks are apart, by the ends of collectives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.communication.clocks import RankClocks
from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.report.table import Section, Table, TableColumn, Value
from flame.core.units import format_ns

NAME, TITLE = "clocks", "Clocks of the ranks"

_COLUMNS = (
    TableColumn("rank", "rank", "number"),
    TableColumn("part", "joined with", "number"),
    TableColumn("offset_ns", "behind", "ns"),
    TableColumn("error_ns", "to", "ns"),
)
_WHY = "no collective is known to end at a time of day on several ranks"
_HOW = "name the traces of all ranks at once: summaries do not keep it"


def clocks_section(questions: RankQuestions) -> Section:
    """List the ranks, the clock that is farthest behind first."""
    clocks = questions.clocks
    if clocks is None or not len(clocks.rank):
        if questions.late is None:
            return Section(NAME, TITLE, **questions.not_late._asdict())
        return Section(NAME, TITLE, why=_WHY, how=_HOW)
    facts: dict[str, object] = {
        "apart_ns": clocks.apart,
        "error_ns": int(clocks.error.max(initial=0)),
    }
    table = Table.of("rows", "", _COLUMNS, _rows(clocks))
    return Section(NAME, TITLE, facts, (table,), tuple(_notes(clocks)))


def _rows(clocks: RankClocks) -> Iterator[tuple[Value, ...]]:
    several = clocks.part.any()
    for at in np.lexsort((-clocks.offset, clocks.part)).tolist():
        part = int(clocks.part[at]) if several else None
        yield int(clocks.rank[at]), part, int(clocks.offset[at]), int(clocks.error[at])


def _notes(clocks: RankClocks) -> Iterator[str]:
    if clocks.part.any():
        yield "no chain of collectives joins all ranks: clocks compare within a part alone"
    error = int(clocks.error.max(initial=0))
    if error > clocks.apart:
        yield (
            f"collectives tell them no better than {format_ns(error)}: times of day are not "
            "compared across ranks"
        )
    yield "who was late is told by each rank's own clock, and does not depend on this"
