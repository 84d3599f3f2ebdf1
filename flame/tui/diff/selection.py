"""Say what to show of a comparison, besides what is selected of each side."""

from __future__ import annotations

from dataclasses import fields
from typing import Literal

from flame.core.compare.basis import Per
from flame.core.compare.changes import USUAL_LIMITS, Limits, Width
from flame.core.compare.colouring import Measured
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.selection import Selection

TimelineSide = Literal["new", "base"]
WIDTHS: tuple[Width, ...] = ("both", "new", "base")


@dataclass(frozen=True)
class DiffSelection(Selection):
    """Select what to compare, ``per`` which basis, and how to draw it.

    Frames are as wide as one of the sides, or the wider. They are coloured by the change of what is
    ``measured``: those that have changed by more than may be chance, or ``all_changes``. The
    ``timeline`` is that of one side: no common clock is pretended.
    """

    per: Per = ""
    width: Width = "both"
    measured: Measured = "total"
    all_changes: bool = False
    timeline: TimelineSide = "new"
    limits: Limits = USUAL_LIMITS

    @property
    def common(self) -> Selection:
        """What is selected of each side."""
        return Selection(**{one.name: getattr(self, one.name) for one in fields(Selection)})

    @property
    def compared(self) -> tuple[Selection, Per, Limits]:
        """What a comparison depends on."""
        return self.common, self.per, self.limits


def diff_selection(
    selection: Selection,
    per: Per = "",
    width: Width = "both",
    measured: Measured = "total",
    all_changes: bool = False,
    timeline: TimelineSide = "new",
    limits: Limits = USUAL_LIMITS,
) -> DiffSelection:
    """Compare what ``selection`` selects of each side."""
    given = {one.name: getattr(selection, one.name) for one in fields(Selection)}
    return DiffSelection(
        **given,
        per=per,
        width=width,
        measured=measured,
        all_changes=all_changes,
        timeline=timeline,
        limits=limits,
    )
