"""Tell the findings: what to look at first, with what mending it can save at most."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.report.allocations.stacks import devices_with_memory, gpu_name
from flame.core.report.findings.advice import advice
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import NUMBERS, Finding
from flame.core.report.findings.findings import Findings, find
from flame.core.report.findings.frameworks import framework_of
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget, budgets
from flame.core.report.table import Section, Table, TableColumn, Value, share
from flame.core.units import format_percent

NAME, TITLE = "findings", "What to look at first"

_TOLD = 3
"""Parts of the budget that are named."""

MOST = 7
"""Findings that text shows, where not all are asked for."""

_COLUMNS = (
    TableColumn("severity", "severity"),
    TableColumn("id", "finding"),
    TableColumn("gpu", "GPU"),
    TableColumn("bound_ns", "at most", "ns"),
    TableColumn("percent", "of window", "percent"),
    TableColumn("title", "title"),
    TableColumn("claim", "claim"),
    TableColumn("confidence_note", "caution"),
    TableColumn("advice", "advice"),
    TableColumn("part", "part of the budget"),
    TableColumn("rule", "rule"),
    TableColumn("section", "numbers in"),
)
_NOTHING_OF_MEMORY = (
    "Nothing that the rules know: see whose the memory at the peak is (--section memory)."
)
ALL_GPUS = "all GPUs"
"""Where a finding is of no single GPU."""


def findings_section(scope: Scope) -> Section:
    """Judge the trace; empty where nothing is wrong, or too little is known."""
    has_memory = bool(devices_with_memory(scope))
    if not scope.gpus and not has_memory:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    found = find(scope)
    places = [one.place for one in found.found]
    facts: dict[str, object] = {
        "gpus": [_headline(scope, one) for one in budgets(scope)],
        "all": scope.all_findings,
        "evidence": list(_evidence(scope, found)),
        "abstained": [one._asdict() for one in found.abstained],
    }
    if has_memory and not scope.gpus:
        facts["nothing"] = _NOTHING_OF_MEMORY
    table = Table.of("rows", "", _COLUMNS, _rows(scope, found), places)
    return Section(NAME, TITLE, facts, (table,))


def _headline(scope: Scope, budget: Budget) -> dict[str, object]:
    """What most of the window of a GPU is, with its largest parts in words, and its kernels."""
    facts = RuleFacts(scope, budget)
    name, time = facts.heaviest_of(facts.kernels)
    parts = sorted(budget.parts, key=lambda part: -part[1])[:_TOLD]
    told = [f"{name} {format_percent(ns, budget.window)}" for name, ns in parts]
    return {
        "gpu": budget.gpu.label,
        "window_ns": budget.window,
        "character": budget.character,
        "parts": told,
        "busy_percent": share(budget.gpu.busy, budget.window),
        "top_kernel": name or None,
        "top_kernel_percent": share(time, facts.gpu_time),
    }


def _rows(scope: Scope, found: Findings) -> Iterator[tuple[Value, ...]]:
    framework = framework_of(scope) if found.found else ""
    for one in found.found:
        length = next((gpu.length for gpu in scope.gpus if gpu.device == one.device), 0)
        percent = None if one.bound is None else share(one.bound, length)
        told = (
            one.title,
            one.claim,
            one.caution or None,
            advice(one.advice or one.id, framework),
            one.part or None,
            one.rule,
            NUMBERS[one.id],
        )
        yield one.severity, one.id, _gpu(scope, one), one.bound, percent, *told


def _evidence(scope: Scope, found: Findings) -> Iterator[dict[str, Value]]:
    """The numbers that findings rest on, one by one."""
    for one in found.found:
        for each in one.evidence:
            yield {"id": one.id, "gpu": _gpu(scope, one), **each._asdict()}


def _gpu(scope: Scope, one: Finding) -> str:
    """The GPU that a finding is about."""
    busy = {gpu.device: gpu.label for gpu in scope.gpus}
    if one.device is None or one.device in busy:
        return ALL_GPUS if one.device is None else busy[one.device]
    return gpu_name(scope, one.device) if one.device >= 0 else ALL_GPUS
