"""List the sections of a report, and work out each when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from flame.core.model.profile import Profile
from flame.core.report.scope import Scope
from flame.core.report.table import Section, SectionKind


def _kind(module: str, name: str, title: str) -> SectionKind[Scope]:
    """Describe the section that ``module`` builds, which is imported when it first does."""

    def build(scope: Scope) -> Section:
        of_section = import_module(f"flame.core.report.{module}")
        section: Section = getattr(of_section, f"{name}_section")(scope)
        return section

    return SectionKind(name, title, build)


SECTIONS = {
    name: _kind(module, name, title)
    for module, name, title in (
        ("findings.section", "findings", "What to look at first"),
        ("sections.summary", "summary", "What was recorded"),
        ("sections.coverage", "coverage", "How much is known"),
        ("sections.budget", "budget", "Where the time of each GPU went"),
        ("sections.utilization", "utilization", "How busy each GPU was"),
        ("sections.idle", "idle", "When the GPUs ran nothing, and why"),
        ("sections.kernels", "kernels", "What ran on the GPUs"),
        ("sections.copies", "copies", "What was copied, and how fast"),
        ("program.efficiency", "efficiency", "How near the GPUs were to their peaks"),
        ("sections.tails", "tails", "Slow among equals"),
        ("sections.launches", "launches", "Launches"),
        ("sections.api", "api", "API calls of the host"),
        ("sections.syncs", "syncs", "Waiting for the GPU"),
        ("sections.memory", "memory", "Memory of the GPUs"),
        ("sections.ranges", "ranges", "Ranges and operators"),
        ("program.phases", "phases", "How the GPU time divides among phases"),
        ("program.layers", "layers", "How the layers of the model compare"),
        ("program.experts", "experts", "What the mixture of experts takes, by names"),
        ("program.iterations", "iterations", "How long each iteration took"),
        ("parties.communication", "communication", "How GPUs communicated, and who waited"),
        ("sections.states", "states", "What held the program up"),
        ("parties.processes", "processes", "What each process did"),
        ("parties.devices", "devices", "What each GPU did"),
        ("parties.threads", "threads", "What the threads of the host did"),
        ("parties.ranks", "ranks", "How the ranks compare"),
        ("sections.os_calls", "os", "Calls of the operating system"),
        ("sections.metrics", "metrics", "GPU metrics"),
    )
}
"""All sections, in the order in which they are shown."""


OF_STACKS = ("summary", "kernels")
"""The sections of a file of resolved stacks."""

OF_MEMORY = ("findings", "memory")
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
