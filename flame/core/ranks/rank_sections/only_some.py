"""Tell the frames that only some ranks run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.only_some import rank_words
from flame.core.ranks.rank_sections.questions import ONE_RANK, RankQuestions
from flame.core.report.table import Place, Section, Table, TableColumn, Unit, Value

NAME, TITLE = "only_some", "Frames that only some ranks run"

MOST = 1_000
"""Frames that are listed."""


def _columns(unit: Unit) -> tuple[TableColumn, ...]:
    return (
        TableColumn("frame", "frame"),
        TableColumn("there", "on ranks", "count"),
        TableColumn("ranks", "ranks"),
        TableColumn("most", "most", unit),
        TableColumn("total", "in all", unit),
    )


def only_some_section(questions: RankQuestions) -> Section:
    """List the leaves that not all ranks have, the one with the most on any rank first."""
    if questions.ranks < 2:
        return Section(NAME, TITLE, **ONE_RANK._asdict())
    found, tree = questions.only_some, questions.tree
    places = [
        Place(tree.levels, tree.names(node), tree.metric.key) for node in found.node[:MOST].tolist()
    ]
    table = Table.of("rows", "", _columns(questions.unit), _rows(questions), places)
    facts: dict[str, object] = {"count": len(found), "unsure": found.unsure}
    return Section(NAME, TITLE, facts, (table,), tuple(_notes(questions)))


def _rows(questions: RankQuestions) -> Iterator[tuple[Value, ...]]:
    found = questions.only_some
    for at, node in enumerate(found.node[:MOST].tolist()):
        there = np.flatnonzero(found.is_there[at])
        yield (
            questions.path_of(node),
            len(there),
            rank_words(questions.numbers(there)),
            int(found.most[at]),
            int(found.total[at]),
        )


def _notes(questions: RankQuestions) -> Iterator[str]:
    found = questions.only_some
    if not len(found):
        yield "all ranks run the same frames"
    if found.unsure:
        yield (
            f"of {found.unsure:,} small frames it is not known who has them: they were left out "
            "of the summary"
        )
