"""Tell how the widest frames are spread over ranks."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.columns import F8
from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.report.table import Place, Section, Table, TableColumn, Unit, Value

NAME, TITLE = "frames", "How frames are spread over ranks"


def _columns(unit: Unit) -> tuple[TableColumn, ...]:
    return (
        TableColumn("frame", "frame"),
        TableColumn("mean", "mean", unit),
        TableColumn("min", "min", unit),
        TableColumn("median", "median", unit),
        TableColumn("p95", "p95", unit),
        TableColumn("max", "max", unit),
        TableColumn("worst", "worst", "number"),
        TableColumn("imbalance_percent", "imbalance", "percent"),
        TableColumn("deviation_percent", "", "percent"),
        TableColumn("there", "on ranks", "count"),
        TableColumn("total", "", unit),
    )


def frames_section(questions: RankQuestions) -> Section:
    """List the widest frames, with all that have the same time below each other."""
    tree = questions.tree
    nodes = questions.widest.tolist()
    places = [Place(tree.levels, tree.names(node), tree.metric.key) for node in nodes]
    table = Table.of("rows", "", _columns(questions.unit), _rows(questions, nodes), places)
    facts: dict[str, object] = {"metric": tree.metric.key, "nodes": len(tree)}
    return Section(NAME, TITLE, facts, (table,))


def _rows(questions: RankQuestions, nodes: list[int]) -> Iterator[tuple[Value, ...]]:
    spread = questions.spread
    imbalance, deviation = _percent(spread.imbalance), _percent(spread.deviation)
    for at, node in enumerate(nodes):
        worst = int(spread.worst[at])
        yield (
            questions.path_of(node),
            round(float(spread.mean[at]), 3),
            int(spread.least[at]),
            int(spread.median[at]),
            int(spread.p95[at]),
            int(spread.most[at]),
            questions.info[worst].rank if worst >= 0 else None,
            imbalance[at],
            deviation[at],
            int(spread.there[at]),
            int(spread.total[at]),
        )


def _percent(parts: F8) -> list[Value]:
    """Parts in percent; None where they are not finite."""
    return [round(100 * one, 5) if abs(one) < float("inf") else None for one in parts.tolist()]
