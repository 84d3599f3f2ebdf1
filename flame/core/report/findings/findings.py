"""Apply all rules to a scope, and order what they find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flame.core.kept_results import kept
from flame.core.report.findings.alloc_rules import alloc_in_loop, memory_rules
from flame.core.report.findings.compute_rules import compute_rules
from flame.core.report.findings.copy_rules import copy_rules
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import ON_REQUEST, Abstained, Finding
from flame.core.report.findings.idle_rules import idle_rules
from flame.core.report.findings.iteration_rules import capture_window, slow_iterations
from flame.core.report.findings.kernel_rules import kernel_rules, many_experts_kernels
from flame.core.report.findings.rank_rules import rank_rules
from flame.core.report.findings.recording_rules import recording_rules
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets

_ORDER = ("high", "medium", "low", "info")
_FIRST = "capture-window"
"""What is told first: the shares of all others are of a window of which a part is not meant."""


class Findings(NamedTuple):
    """Hold what the rules say of a trace: the findings by severity and bound, and the others."""

    found: tuple[Finding, ...]
    abstained: tuple[Abstained, ...]


@kept
def find(scope: Scope) -> Findings:
    """Apply all rules; those of `ON_REQUEST` where ``scope`` has all findings."""
    said = [one for one in _all(scope) if one is not None]
    if not scope.all_findings:
        said = [one for one in said if one.id not in ON_REQUEST]
    found = [one for one in said if isinstance(one, Finding)]
    found.sort(key=lambda one: (one.id != _FIRST, _ORDER.index(one.severity), -(one.bound or 0)))
    abstained = dict.fromkeys(one for one in said if isinstance(one, Abstained))
    return Findings(tuple(found), tuple(abstained))


def _all(scope: Scope) -> Iterator[Finding | Abstained | None]:
    yield from memory_rules(scope)
    if not len(scope.rows):
        return
    for budget in budgets(scope):
        yield from _of_gpu(RuleFacts(scope, budget))
    yield slow_iterations(scope)


def _of_gpu(facts: RuleFacts) -> Iterator[Finding | Abstained | None]:
    idle = [one for one in idle_rules(facts) if one is not None]
    yield from idle
    yield alloc_in_loop(facts)
    yield from copy_rules(facts)
    yield from rank_rules(facts)
    yield from compute_rules(facts)
    yield capture_window(facts)
    yield from recording_rules(facts)
    if facts.scope.all_findings:
        yield from kernel_rules(facts)
        if any(isinstance(one, Finding) and one.id == "launch-bound" for one in idle):
            yield many_experts_kernels(facts)
