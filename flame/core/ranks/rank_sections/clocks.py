"""Tell how far the clocks of ranks are apart, by the ends of collectives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.questions import RankClocks, RankQuestions
from flame.core.report.table import Section, Table, TableColumn, Value
from flame.core.units import format_ns

NAME, TITLE = "clocks", "Clocks of the ranks"

_COLUMNS = (
    TableColumn("rank", "rank", "number"),
    TableColumn("offset_ns", "behind", "ns"),
    TableColumn("error_ns", "to", "ns"),
    TableColumn("path", ""),
)


def clocks_section(questions: RankQuestions) -> Section:
    """List the ranks, the clock that is farthest behind first."""
    clocks = questions.clocks
    if clocks is None or not clocks.is_known.any():
        why = "no collective ends at a known time of day on several ranks"
        return Section(NAME, TITLE, why=why)
    facts: dict[str, object] = {"apart_ns": clocks.apart, "error_ns": clocks.uncertainty}
    table = Table.of("rows", "", _COLUMNS, _rows(questions, clocks))
    return Section(NAME, TITLE, facts, (table,), tuple(_notes(clocks)))


def _rows(questions: RankQuestions, clocks: RankClocks) -> Iterator[tuple[Value, ...]]:
    known = np.flatnonzero(clocks.is_known)
    for at in known[np.argsort(-clocks.offset[known], kind="stable")].tolist():
        info = questions.info[at]
        yield info.rank, int(clocks.offset[at]), int(clocks.error[at]), info.path


def _notes(clocks: RankClocks) -> Iterator[str]:
    if clocks.uncertainty > clocks.apart:
        yield (
            f"collectives tell them no better than {format_ns(clocks.uncertainty)}: times of day "
            "are not compared across ranks"
        )
    yield "who was late is told by each rank's own clock, and does not depend on this"
