"""Show every frame of a comparison in a table: what it was, is, and why it has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from flame.core.analysis.frame_parts import FrameParts
from flame.core.analysis.frame_totals import outermost_by_frame
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I4, I8, U1, Column
from flame.core.compare.amounts import Amounts, format_ratio
from flame.core.compare.changes import Changes
from flame.core.compare.noise.beyond_noise import BeyondNoise, FrameVerdict, NoiseMarks, noise_marks
from flame.core.compare.sided_tree import SidedTree
from flame.core.model.frames import PART_KINDS
from flame.tui.diff.session import DiffProjection
from flame.tui.session.session import Projection
from flame.tui.session.wording import lasts
from flame.tui.views.top_columns import Head, TopColumns
from flame.tui.views.top_pane import TopPane
from flame.tui.views.top_rows import TableRows
from flame.tui.views.top_table import NONE, UNKNOWN, SlowColumns, TopTable

HEADS = (
    Head("base", "base", 10, "base"),
    Head("new", "new", 10, "new"),
    Head("delta", "Δ", 11, "delta"),
    Head("ratio", "Δ %", 10, "ratio"),
    Head("by count", "by count", 11, "by count"),
    Head("by duration", "by dur.", 11, "by duration"),
    Head("own delta", "self Δ", 11, "own delta"),
    Head("base count", "# base", 11, "base count"),
    Head("new count", "# new", 11, "new count"),
    Head("evidence", "evidence", 11, "evidence"),
)
_PLAIN = HEADS[:-1]
"""Columns that are known at once."""

_WORDS = {
    FrameVerdict.UNTESTED: NONE,
    FrameVerdict.UNCLEAR: "unclear",
    FrameVerdict.SAME: "same",
    FrameVerdict.SMALL: "small",
    FrameVerdict.WORST: "worst rank",
    FrameVerdict.CHANGED: "changed",
}

_TIMES = frozenset(("by count", "by duration", "base count", "new count"))
"""Columns of metrics that are times of single activities."""

_KEPT_LONGEST = (
    "delta", "new", "base", "ratio", "by count", "by duration",
    "evidence", "own delta", "base count", "new count",
)  # fmt: skip


class DiffColumns(TopColumns):
    """Choose the columns of a comparison."""

    @property
    def heads(self) -> tuple[Head, ...]:
        return HEADS if self.timed else tuple(head for head in HEADS if head.key not in _TIMES)

    @property
    def kept_longest(self) -> tuple[str, ...]:
        return _KEPT_LONGEST


class _Changed(NamedTuple):
    """The changes of each row: of all that is below the frame too, and of itself alone."""

    total: Changes
    own: Changes
    amounts: Amounts


class DiffTable(TopTable):
    """One row per frame of two ``sides``; orders by changes have the largest, up or down, first.

    By evidence those are first of which the ``marks`` say that they have changed beyond noise.
    """

    def __init__(self, sides: SidedTree, marks: NoiseMarks) -> None:
        self._of_changes: dict[str, Column] = {}
        super().__init__(sides.tree)
        self._marks = marks
        self._verdicts: tuple[BeyondNoise, U1] | None = None
        self._changed = _changes_by_row(sides, self.totals.frame)
        self._is_gone = self._changed.total.is_gone
        self._of_changes = {key: make(self._changed) for key, make in _COLUMNS.items()}
        self.orders |= {head.sorts: self._order(np.abs(self._column(head.key))) for head in _PLAIN}

    def later(
        self, members: NodeActivities | None, values: I8, parts: dict[str, FrameParts]
    ) -> SlowColumns:
        found = super().later(members, values, parts)
        return found._replace(orders=found.orders | self.by_evidence())

    def by_evidence(self) -> dict[str, I4]:
        """Order rows by evidence, and by the size of the change, by key; not before it is known."""
        verdicts = self._evidence()
        if verdicts is None:
            return {}
        largest = self.orders["delta"]
        return {"evidence": largest[np.argsort(-verdicts[largest].astype(np.int64), kind="stable")]}

    def _evidence(self) -> U1 | None:
        """The `FrameVerdict` of each row, None as long as nothing is known."""
        found = self._marks.found
        if found is None:
            return None
        if self._verdicts is None or self._verdicts[0] is not found:
            frame, delta = self.totals.frame, self._changed.total.delta
            self._verdicts = found, found.places.verdicts(frame.astype(np.int64), delta)
        return self._verdicts[1]

    def _column(self, key: str) -> Column:
        return self._of_changes[key] if key in self._of_changes else super()._column(key)

    def cell(self, row: int, key: str) -> str:
        if key == "evidence":
            verdicts = self._evidence()
            return UNKNOWN if verdicts is None else _WORDS[FrameVerdict(int(verdicts[row]))]
        if key not in _COLUMNS:
            return UNKNOWN
        if key in _TIMES and self._kinds[row] in PART_KINDS:
            return NONE
        value = float(self._column(key)[row])
        if key == "ratio":
            return self._ratio(row, value)
        if key in ("base count", "new count"):
            return Amounts("count").value(value) if value else NONE
        if key in ("base", "new"):
            return self._changed.amounts.value(value) if value else NONE
        return self._changed.amounts.delta(value) if value else NONE

    def _ratio(self, row: int, value: float) -> str:
        if self._is_gone[row]:
            return "gone"
        return format_ratio(value) if value else NONE


_COLUMNS: dict[str, Callable[[_Changed], Column]] = {
    "base": lambda rows: rows.total.base.value,
    "new": lambda rows: rows.total.new.value,
    "delta": lambda rows: rows.total.delta,
    "ratio": lambda rows: rows.total.ratio,
    "by count": lambda rows: rows.total.by_count,
    "by duration": lambda rows: rows.total.by_duration,
    "own delta": lambda rows: rows.own.delta,
    "base count": lambda rows: rows.amounts.counts(rows.total.base),
    "new count": lambda rows: rows.amounts.counts(rows.total.new),
}


def _changes_by_row(sides: SidedTree, frames: Column) -> _Changed:
    """Sum both sides up by frame, recursion counted once."""
    tree = sides.tree
    size = len(tree.text)
    nodes, frame = outermost_by_frame(tree)
    total = sides.sums(nodes, frame, size)
    own = sides.own_sums(tree.frame.astype(np.int64), size)
    return _Changed(total.at(frames), own.at(frames), sides.amounts)


_NO_STEPS: I8 = np.zeros(0, np.int64)


class DiffTopPane(TopPane):
    """Show what each frame was and is, and why it has changed."""

    FIRST: ClassVar[str] = "delta"

    def _make(self, shown: Projection) -> TopTable:
        assert isinstance(shown, DiffProjection)
        return DiffTable(shown.colouring.sides, noise_marks(shown.comparison))

    def _complete(self, table: TopTable, shown: Projection) -> SlowColumns:
        return table.later(None, _NO_STEPS, {})

    def learn(self) -> None:
        """Show which changes are beyond noise: that has just been found out."""
        self.query_one(TableRows).forget()
        table = self._table
        if isinstance(table, DiffTable):
            self._work(lambda: SlowColumns(None, table.by_evidence(), {}))

    @property
    def _steps(self) -> I8:
        """None: a step of one trace is not one of the other."""
        return _NO_STEPS

    @property
    def _columns(self) -> TopColumns:
        return DiffColumns(lasts(self.shown.metric), self._wanted[0])
