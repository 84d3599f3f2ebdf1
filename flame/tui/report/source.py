"""Say what sections there are of a report, and work them out: on a trace, or on something else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from flame.core.model.tree import TreeLayout
from flame.core.projection.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from flame.core.report.table import Section
    from flame.tui.session.session import Projection


class SectionTitle(NamedTuple):
    """Name a section as options do, and as people do."""

    name: str
    title: str


class OpenReport(NamedTuple):
    """List the sections of a report; ``section`` works one out by its name."""

    titles: tuple[SectionTitle, ...]
    section: Callable[[str], Section]


class ReportSource(Protocol):
    """Open reports on what is shown; what they are made of is imported then."""

    def subject(self, selection: Selection) -> Selection:
        """Return what of ``selection`` makes a difference to the report."""

    def open(self, shown: Projection) -> OpenReport:
        """Open the report on ``shown``, in the thread that works it out."""


class TraceReports:
    """Open reports on a trace."""

    def subject(self, selection: Selection) -> Selection:
        """Return ``selection`` without what is only drawn, as reports have metrics of their own."""
        return replace(selection, metric=None, colours="level", layout=TreeLayout())

    def open(self, shown: Projection) -> OpenReport:
        """Open the report of `flame report`."""
        from flame.core.report.report import SECTIONS, Report
        from flame.core.report.scope import Scope

        report = Report(Scope(shown.profile, self.subject(shown.selection)))
        titles = tuple(SectionTitle(kind.name, kind.title) for kind in SECTIONS.values())
        return OpenReport(titles, report.section)
