"""Tell the findings: what to look at first, with what mending it can save at most."""

from __future__ import annotations

from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import find
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share

NAME, TITLE = "findings", "What to look at first"

MOST = 7
"""Findings that text shows."""

_COLUMNS = (
    TableColumn("severity", "severity"),
    TableColumn("id", "finding"),
    TableColumn("gpu", "GPU"),
    TableColumn("bound_ns", "at most", "ns"),
    TableColumn("percent", "of window", "percent"),
    TableColumn("title", "title"),
    TableColumn("claim", "claim"),
    TableColumn("advice", "advice"),
    TableColumn("part", "part of the budget"),
    TableColumn("rule", "rule"),
)


def findings_section(scope: Scope) -> Section:
    """Judge the trace; empty where nothing is wrong, or too little is known."""
    if not scope.gpus:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    findings = find(scope)
    table = Table.of(
        "rows",
        "",
        _COLUMNS,
        [_row(scope, one) for one in findings.found],
        [one.place for one in findings.found],
    )
    facts = {"abstained": [one._asdict() for one in findings.abstained]}
    return Section(NAME, TITLE, facts=facts, tables=(table,))


def _row(scope: Scope, one: Finding) -> tuple[Value, ...]:
    gpu = next(gpu for gpu in scope.gpus if gpu.device == one.device)
    percent = None if one.bound is None else share(one.bound, gpu.length)
    told = (one.title, one.claim, one.advice, one.part or None, one.rule)
    return one.severity, one.id, gpu.label, one.bound, percent, *told
