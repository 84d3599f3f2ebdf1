"""List the sections of a comparison, and work out those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from flame.core.compare.comparison import Comparison
from flame.core.compare.sections import (
    budget,
    finding_changes,
    frames,
    kernels,
    ranks,
    replaced,
    summary,
)
from flame.core.report.table import Section, SectionKind

SECTIONS = {
    module.NAME: SectionKind(module.NAME, module.TITLE, build)
    for module, build in (
        (summary, summary.summary_section),
        (ranks, ranks.ranks_section),
        (budget, budget.budget_section),
        (frames, frames.frames_section),
        (replaced, replaced.replaced_section),
        (kernels, kernels.kernels_section),
        (finding_changes, finding_changes.finding_changes_section),
    )
}
"""All sections by name, in the order in which they are shown."""


def usual_sections(comparison: Comparison) -> list[str]:
    """List the sections that are shown unless others are asked for, by name.

    Ranks are compared where both sides have some, and budgets, which need times, where none has.
    """
    lacking = {
        ranks.NAME: not comparison.sides.are_summaries,
        budget.NAME: comparison.sides.has_summary,
    }
    return [name for name in SECTIONS if not lacking.get(name)]


def diff_sections(comparison: Comparison, names: Iterable[str] | None = None) -> list[Section]:
    """Work out sections by their ``names``; KeyError where there is none such."""
    chosen = usual_sections(comparison) if names is None else names
    return [SECTIONS[name].build(comparison) for name in chosen]
