"""Tell the files that could not be read, each with its reason."""

from __future__ import annotations

from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.report.table import Section, Table, TableColumn

NAME, TITLE = "lost", "Ranks that are not in it"

_COLUMNS = (TableColumn("path", "file"), TableColumn("reason", "why"))


def lost_section(questions: RankQuestions) -> Section:
    """List what could not be read."""
    table = Table.of("rows", "", _COLUMNS, questions.lost)
    notes = () if questions.lost else ("all files were read",)
    return Section(NAME, TITLE, {"count": len(questions.lost)}, (table,), notes)
