"""List the sections of a comparison, and work out those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from flame.core.compare.comparison import Comparison
from flame.core.compare.sections import (
    budget,
    finding_changes,
    frames,
    kernels,
    replaced,
    summary,
)
from flame.core.report.table import Section, SectionKind

SECTIONS = {
    module.NAME: SectionKind(module.NAME, module.TITLE, build)
    for module, build in (
        (summary, summary.summary_section),
        (budget, budget.budget_section),
        (frames, frames.frames_section),
        (replaced, replaced.replaced_section),
        (kernels, kernels.kernels_section),
        (finding_changes, finding_changes.finding_changes_section),
    )
}
"""All sections by name, in the order in which they are shown."""


def diff_sections(comparison: Comparison, names: Iterable[str] = SECTIONS) -> list[Section]:
    """Work out sections by their ``names``; KeyError where there is none such."""
    return [SECTIONS[name].build(comparison) for name in names]
