"""Tell which findings appeared, went, or changed their severity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flame.core.compare.comparison import Comparison
from flame.core.report.findings.finding import Finding
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


class _Key(NamedTuple):
    """What findings of two runs have in common that are the same."""

    rule: str
    gpu: str


def finding_changes_section(comparison: Comparison) -> Section:
    """Compare the findings of both sides; of several runs, those of the first are told."""
    if any(run.profile.resolved for run in comparison.sides.runs):
        return Section(NAME, TITLE, why="there are no findings on a file of stacks")
    scopes, first_of_new = comparison.scopes, len(comparison.sides.base)
    base, new = _findings(scopes[0]), _findings(scopes[first_of_new])
    rows = [*_rows(base, new)]
    notes = () if rows else ("the same findings on both sides",)
    return Section(NAME, TITLE, tables=(Table.of("rows", "", _COLUMNS, rows),), notes=notes)


def _findings(scope: Scope) -> dict[_Key, Finding]:
    label = {gpu.device: gpu.label for gpu in scope.gpus}
    found: dict[_Key, Finding] = {}
    for one in find(scope).found:
        gpu = "" if one.device is None else label.get(one.device, "")
        found.setdefault(_Key(one.id, gpu), one)
    return found


def _rows(base: dict[_Key, Finding], new: dict[_Key, Finding]) -> Iterator[tuple[Value, ...]]:
    for key in dict.fromkeys([*new, *base]):
        before, after = base.get(key), new.get(key)
        severities = [one.severity if one else None for one in (before, after)]
        if severities[0] == severities[1]:
            continue
        one = after or before
        change = "appeared" if before is None else "went" if after is None else "changed"
        yield change, key.rule, key.gpu, one.title if one else "", *severities
