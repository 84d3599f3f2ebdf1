"""List the sections of a report, and work out each when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable

from flame.core.model.profile import Profile
from flame.core.report.findings import section as findings
from flame.core.report.parties import communication, devices, processes, ranks, threads
from flame.core.report.program import experts, iterations, layers, phases
from flame.core.report.scope import Scope
from flame.core.report.sections import (
    api,
    budget,
    copies,
    coverage,
    idle,
    kernels,
    launches,
    memory,
    metrics,
    os_calls,
    products,
    ranges,
    states,
    summary,
    syncs,
    tails,
    utilization,
)
from flame.core.report.table import Section, SectionKind

SECTIONS = {
    module.NAME: SectionKind(module.NAME, module.TITLE, build)
    for module, build in (
        (findings, findings.findings_section),
        (summary, summary.summary_section),
        (coverage, coverage.coverage_section),
        (budget, budget.budget_section),
        (utilization, utilization.utilization_section),
        (idle, idle.idle_section),
        (kernels, kernels.kernels_section),
        (copies, copies.copies_section),
        (products, products.products_section),
        (tails, tails.tails_section),
        (launches, launches.launches_section),
        (api, api.api_section),
        (syncs, syncs.syncs_section),
        (memory, memory.memory_section),
        (ranges, ranges.ranges_section),
        (phases, phases.phases_section),
        (layers, layers.layers_section),
        (experts, experts.experts_section),
        (iterations, iterations.iterations_section),
        (communication, communication.communication_section),
        (states, states.states_section),
        (processes, processes.processes_section),
        (devices, devices.devices_section),
        (threads, threads.threads_section),
        (ranks, ranks.ranks_section),
        (os_calls, os_calls.os_section),
        (metrics, metrics.metrics_section),
    )
}
"""All sections, in the order in which they are shown."""


OF_STACKS = (summary.NAME, kernels.NAME)
"""The sections of a file of resolved stacks."""

OF_MEMORY = (findings.NAME, memory.NAME)
"""Those that it has besides where it tells who held the memory of GPUs."""

_NO_ACTIVITIES = "a file of stacks knows no activities and no times of them"
_ONLY_MEMORY = "a memory snapshot knows no activities of GPUs"


class Report:
    """Work out sections of a scope; each once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[str, Section] = {}

    def section(self, name: str) -> Section:
        """Get a section by its name; KeyError where there is none such."""
        if name not in self._known:
            self._known[name] = self._build(SECTIONS[name])
        return self._known[name]

    def _build(self, kind: SectionKind[Scope]) -> Section:
        if self.scope.profile.resolved and (why := _lacking(self.scope.profile, kind.name)):
            return Section(kind.name, kind.title, why=why)
        return kind.build(self.scope)

    def sections(self, names: Iterable[str] = SECTIONS) -> list[Section]:
        """Get several sections."""
        return [self.section(name) for name in names]


def _lacking(profile: Profile, name: str) -> str:
    """Why there is no section ``name`` of ready-made stacks; empty where there is."""
    if profile.memory is None:
        return "" if name in OF_STACKS else _NO_ACTIVITIES
    return "" if name in (*OF_STACKS, *OF_MEMORY) else _ONLY_MEMORY
