"""Show the sections of a comparison as the report view shows those of a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flame.core.model.tree import TreeLayout
from flame.core.projection.selection import Selection
from flame.tui.diff.selection import DiffSelection
from flame.tui.diff.session import DiffProjection
from flame.tui.report.pane import ReportPane
from flame.tui.report.source import OpenReport, SectionTitle
from flame.tui.session.session import Projection

if TYPE_CHECKING:
    from flame.core.report.table import Section
    from flame.tui.report.content import ReportContent


class ComparisonReports:
    """Open reports on a comparison."""

    def subject(self, selection: Selection) -> Selection:
        """Return ``selection`` without how it is drawn."""
        assert isinstance(selection, DiffSelection)
        usual = DiffSelection()
        return replace(
            selection,
            width=usual.width,
            measured=usual.measured,
            all_changes=usual.all_changes,
            timeline=usual.timeline,
            layout=TreeLayout(),
        )

    def open(self, shown: Projection) -> OpenReport:
        """Open the sections of `flame diff`."""
        from flame.core.compare.sections.diff_report import SECTIONS, usual_sections

        assert isinstance(shown, DiffProjection)
        comparison = shown.comparison

        def section(name: str) -> Section:
            return SECTIONS[name].build(comparison)

        kinds = (SECTIONS[name] for name in usual_sections(comparison))
        titles = (SectionTitle(kind.name, kind.title) for kind in kinds)
        return OpenReport(tuple(titles), section)


class DiffReportPane(ReportPane):
    """Show what `flame diff` tells: no findings of one trace."""

    @property
    def _is_live(self) -> bool:
        return False

    def _make_content(self) -> ReportContent:
        from flame.tui.report.content import ReportContent

        return ReportContent(*self._wanted, judges=False, everything="flame diff --json")
