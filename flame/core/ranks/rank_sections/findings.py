"""Tell the findings on ranks, with what to do next."""

from __future__ import annotations

from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.ranks.rank_sections.rank_findings import abstained_on_ranks, find_in_ranks
from flame.core.report.findings.section import NAME, TITLE
from flame.core.report.table import Section, Table, TableColumn

_COLUMNS = (
    TableColumn("severity", "severity"),
    TableColumn("id", "finding"),
    TableColumn("gpu", "who"),
    TableColumn("rank", "", "number"),
    TableColumn("title", "title"),
    TableColumn("claim", "claim"),
    TableColumn("advice", "advice"),
    TableColumn("rule", "rule"),
    TableColumn("section", "numbers in"),
)
_NOTHING = "Nothing beyond chance: no rank makes others wait, and no frame takes one far longer."


def findings_section(questions: RankQuestions) -> Section:
    """List the findings; what could not be judged is said in the notes."""
    found, abstained = find_in_ranks(questions), abstained_on_ranks(questions)
    rows = (
        (
            one.severity,
            one.id,
            one.where,
            one.rank,
            one.title,
            one.claim,
            one.advice,
            one.rule,
            one.section,
        )
        for one in found
    )
    facts: dict[str, object] = {
        "all": True,
        "apart": True,
        "nothing": _NOTHING,
        "evidence": [],
        "abstained": [one._asdict() for one in abstained],
    }
    table = Table.of("rows", "", _COLUMNS, rows, [one.place for one in found])
    return Section(NAME, TITLE, facts, (table,))
