"""Tell the frames that take a rank far longer than the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.ranks.only_some import rank_words
from flame.core.ranks.outliers import to_tell
from flame.core.ranks.rank_sections.questions import ALL_RANKS, ONE_RANK, RankQuestions
from flame.core.report.table import Place, Section, Table, TableColumn, Unit, Value

NAME, TITLE = "outliers", "Frames that take a rank far longer"


def _columns(unit: Unit) -> tuple[TableColumn, ...]:
    return (
        TableColumn("finding", "!"),
        TableColumn("frame", "frame"),
        TableColumn("rank", "rank", "number"),
        TableColumn("value", "it has", unit),
        TableColumn("median", "median", unit),
        TableColumn("excess", "excess", unit),
        TableColumn("percent", "above median", "percent"),
        TableColumn("deviations", "deviations", "ratio"),
        TableColumn("ranks", "ranks"),
        TableColumn("path", ""),
    )


def outliers_section(questions: RankQuestions) -> Section:
    """List the outliers, the largest excess first; `!` is at those to look at."""
    if questions.ranks < 2:
        return Section(NAME, TITLE, **ONE_RANK._asdict())
    if questions.ranks < 3:
        why = "two ranks cannot tell which is the odd one"
        return Section(NAME, TITLE, why=why, how=ALL_RANKS)
    found = questions.outliers
    paths = [questions.info[at].path for at in found.worst.tolist()]
    tree = questions.tree
    places = [
        Place(tree.levels, tree.names(node), tree.metric.key, file=path)
        for node, path in zip(found.node.tolist(), paths, strict=True)
    ]
    table = Table.of("rows", "", _columns(questions.unit), _rows(questions, paths), places)
    told = to_tell(found, tree.end)
    notes = () if told.any() else ("no frame takes any rank far longer than the others",)
    return Section(NAME, TITLE, {"count": len(found)}, (table,), notes)


def _rows(questions: RankQuestions, paths: list[str]) -> Iterator[tuple[Value, ...]]:
    found = questions.outliers
    told = to_tell(found, questions.tree.end).tolist()
    for at, node in enumerate(found.node.tolist()):
        excess, median = float(found.excess[at]), float(found.median[at])
        yield (
            "!" if told[at] else None,
            questions.path_of(node),
            questions.info[int(found.worst[at])].rank,
            int(found.value[at]),
            int(median),
            int(excess),
            round(100 * excess / median, 3),
            round(float(found.deviations[at]), 2),
            rank_words(questions.numbers(np.flatnonzero(found.is_far[at]))),
            paths[at],
        )
