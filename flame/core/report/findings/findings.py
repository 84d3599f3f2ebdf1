"""Apply all rules to a scope, and order what they find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flame.core.model.frames import Kind
from flame.core.report.findings.copy_rules import copy_rules
from flame.core.report.findings.facts import GpuFacts
from flame.core.report.findings.finding import Abstained, Finding
from flame.core.report.findings.idle_rules import idle_rules
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.units import format_ns, format_percent

_ORDER = ("high", "medium", "low", "info")
HIDDEN = 0.01
"""From which share of the GPU time on graphs traced as a whole hide kernels."""


class Findings(NamedTuple):
    """Hold what the rules say of a trace: the findings by severity and bound, and the others."""

    found: tuple[Finding, ...]
    abstained: tuple[Abstained, ...]


def find(scope: Scope) -> Findings:
    """Apply all rules."""
    said = [one for one in _all(scope) if one is not None]
    found = [one for one in said if isinstance(one, Finding)]
    found.sort(key=lambda one: (_ORDER.index(one.severity), -(one.bound or 0)))
    abstained = dict.fromkeys(one for one in said if isinstance(one, Abstained))
    return Findings(tuple(found), tuple(abstained))


def _all(scope: Scope) -> Iterator[Finding | Abstained | None]:
    for budget in budgets(scope):
        facts = GpuFacts(scope, budget)
        yield from idle_rules(facts)
        yield from copy_rules(facts)
        yield _hidden_graphs(facts)


def _hidden_graphs(facts: GpuFacts) -> Finding | None:
    table = facts.scope.profile.activities
    hidden = int(table.duration[facts.of_kinds(Kind.GRAPH)].sum())
    whole = int(table.duration[facts.rows].sum())
    if hidden < HIDDEN * whole or not hidden:
        return None
    return Finding(
        "hidden-graphs",
        facts.gpu.device,
        "info",
        "CUDA graphs hide their kernels",
        f"{format_ns(hidden)} ({format_percent(hidden, whole)} of GPU time) is graphs that were "
        "traced as a whole: their kernels and layers are not known",
        "Record with --cuda-graph-trace=node; times of graphs are then 30 to 60 % too long.",
        "graphs traced as a whole are 1 % of GPU time or more",
    )
