"""Tell which findings appeared, went, or changed their severity."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.compare.comparison import Comparison
from flame.core.compare.kept.base_file import KeptFinding
from flame.core.compare.over_ranks.questions import ask
from flame.core.compare.sides import KeptRun, Run
from flame.core.ranks.rank_sections.rank_findings import find_in_ranks
from flame.core.report.findings.findings import find
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value

NAME, TITLE = "finding_changes", "Findings that came and went"

_COLUMNS = (
    TableColumn("change", "change"),
    TableColumn("rule", "rule"),
    TableColumn("gpu", "GPU"),
    TableColumn("title", "finding"),
    TableColumn("base_severity", "base"),
    TableColumn("new_severity", "new"),
)
_OF_RANKS = tuple(
    TableColumn("where", "of") if column.key == "gpu" else column for column in _COLUMNS
)


def finding_changes_section(comparison: Comparison) -> Section:
    """Compare the findings of both sides; of several runs, those of the first are told."""
    runs, first_of_new = comparison.sides.runs, len(comparison.sides.base)
    first = (0, first_of_new)
    if comparison.sides.are_summaries:
        base, new = (findings_on_ranks(runs[at], comparison.scopes[at]) for at in first)
    else:
        base, new = (run_findings(runs[at], comparison.scopes[at]) for at in first)
    if base is None or new is None:
        return Section(NAME, TITLE, why=_why_none(comparison))
    rows = [*_rows(base, new)]
    notes = () if rows else ("the same findings on both sides",)
    columns = _OF_RANKS if comparison.sides.are_summaries else _COLUMNS
    return Section(NAME, TITLE, tables=(Table.of("rows", "", columns, rows),), notes=notes)


def _why_none(comparison: Comparison) -> str:
    if comparison.sides.has_summary:
        return "findings on ranks and on a trace have nothing in common"
    if any(isinstance(run, KeptRun) for run in comparison.sides.runs):
        return "findings were kept of all names: compare without filters"
    return "there are no findings on a file of stacks"


def run_findings(run: Run, scope: Scope) -> list[KeptFinding] | None:
    """List the findings on ``run``, each once; None where there can be none."""
    if isinstance(run, KeptRun):
        return None if scope.selection.where else run.part.findings
    if run.profile.resolved or run.summary is not None:
        return None
    label = {gpu.device: gpu.label for gpu in scope.gpus}
    found: dict[tuple[str, str], KeptFinding] = {}
    for one in find(scope).found:
        gpu = "" if one.device is None else label.get(one.device, "")
        found.setdefault((one.id, gpu), KeptFinding(one.id, gpu, one.severity, one.title))
    return [*found.values()]


def findings_on_ranks(run: Run, scope: Scope) -> list[KeptFinding] | None:
    """List the findings on the ranks of ``run``, each once; None of a trace."""
    questions = ask(run, scope.selection)
    if questions is None:
        return None
    found: dict[tuple[str, str], KeptFinding] = {}
    for one in find_in_ranks(questions):
        told = KeptFinding(one.id, one.where, one.severity, one.title)
        found.setdefault((one.id, one.where), told)
    return [*found.values()]


def _rows(base: list[KeptFinding], new: list[KeptFinding]) -> Iterator[tuple[Value, ...]]:
    sides = [{(one.rule, one.gpu): one for one in side} for side in (base, new)]
    for key in dict.fromkeys([*sides[1], *sides[0]]):
        before, after = (side.get(key) for side in sides)
        severities = [one.severity if one else None for one in (before, after)]
        if severities[0] == severities[1]:
            continue
        one = after or before
        change = "appeared" if before is None else "went" if after is None else "changed"
        yield change, *key, one.title if one else "", *severities
