"""Tell in which collectives ranks waited longest, and for whom."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.ranks.communication.worst import WorstCollectives
from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.ranks.rank_sections.rank_findings import late_by
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share

NAME, TITLE = "collectives", "Collectives that cost most waiting"

_KINDS = (
    TableColumn("collective", "collective"),
    TableColumn("communicator", "of"),
    TableColumn("ranks", "ranks", "count"),
    TableColumn("calls", "calls", "count"),
    TableColumn("waited_ns", "waited", "ns"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("waiting_percent", "of its time", "percent"),
    TableColumn("transfer_ns", "", "ns"),
    TableColumn("last_rank", "mostly for", "number"),
    TableColumn("last_calls", "", "count"),
    TableColumn("last_percent", "of that", "percent"),
)
_CALLS = (
    TableColumn("collective", "collective"),
    TableColumn("communicator", "of"),
    TableColumn("number", "number", "number"),
    TableColumn("ranks", "", "count"),
    TableColumn("waited_ns", "waited", "ns"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("transfer_ns", "transfer", "ns"),
    TableColumn("last_rank", "last rank", "number"),
    TableColumn("by", "late by"),
    TableColumn("by_percent", "", "percent"),
    TableColumn("first_rank", "", "number"),
    TableColumn("longest_wait_ns", "", "ns"),
)


def collectives_section(questions: RankQuestions) -> Section:
    """List kinds of collectives, and single ones, those that cost most waiting first."""
    worst = questions.worst
    if worst is None:
        return Section(NAME, TITLE, **questions.not_late._asdict())
    facts: dict[str, object] = {
        "collectives": questions.collectives.matched,
        "waiting_ns": worst.waited,
    }
    paths = {one.rank: one.path for one in questions.info}
    places = [Place(file=paths[one.last]) if one.last in paths else None for one in worst.calls]
    tables = (
        Table.of("kinds", "by kind, all ranks together", _KINDS, _kinds(worst)),
        Table.of("calls", "one by one", _CALLS, _calls(worst), places),
    )
    notes = () if worst.calls else ("no rank waited for another",)
    return Section(NAME, TITLE, facts, tables if worst.calls else tables[:1], notes)


def _kinds(worst: WorstCollectives) -> Iterator[tuple[Value, ...]]:
    for one in worst.kinds:
        yield (
            one.name,
            one.communicator,
            one.ranks,
            one.calls,
            one.waited,
            share(one.waited, worst.waited),
            share(one.waited, one.waited + one.transfer),
            one.transfer,
            one.last,
            one.last_calls,
            share(one.last_caused, one.waited),
        )


def _calls(worst: WorstCollectives) -> Iterator[tuple[Value, ...]]:
    for one in worst.calls:
        cause, part = late_by(one.by_work, one.by_idle)
        yield (
            one.name,
            one.communicator,
            one.number,
            one.ranks,
            one.waited,
            share(one.waited, worst.waited),
            one.transfer,
            one.last,
            cause or None,
            None if part is None else round(100 * part, 1),
            one.first,
            one.longest,
        )
