"""List the sections on ranks, and work out those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from flame.core.ranks.rank_sections import (
    clocks,
    collectives,
    findings,
    frames,
    late,
    lost,
    only_some,
    outliers,
    steps,
    summary,
)
from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.report.table import Section, SectionKind

SECTIONS = {
    module.NAME: SectionKind(module.NAME, module.TITLE, build)
    for module, build in (
        (findings, findings.findings_section),
        (summary, summary.summary_section),
        (late, late.late_section),
        (collectives, collectives.collectives_section),
        (outliers, outliers.outliers_section),
        (only_some, only_some.only_some_section),
        (frames, frames.frames_section),
        (steps, steps.steps_section),
        (clocks, clocks.clocks_section),
        (lost, lost.lost_section),
    )
}
"""All sections by name, in the order in which they are shown."""


def rank_sections(questions: RankQuestions, names: Iterable[str] = SECTIONS) -> list[Section]:
    """Work out sections by their ``names``; KeyError where there is none such."""
    return [SECTIONS[name].build(questions) for name in names]
