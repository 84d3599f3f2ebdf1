"""Make a table of the frames of a tree: what each weighs itself and with all below it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.analysis.frame_totals import (
    FrameTotals,
    Percentiles,
    frame_totals,
    percentiles,
)
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I8, Bool, Column
from flame.core.model.frames import PART_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter
from flame.core.projection.matching import matching_frames
from flame.core.report.table import Table, TableColumn, Unit, Value

ORDERS = ("self", "total", "count", "mean", "p50", "p95", "p99", "max")
"""What rows are sorted by, the largest first."""

_UNITS: dict[str, Unit] = {"ns": "ns", "bytes": "bytes"}


class FrameColumn(NamedTuple):
    """Hold a column of numbers, a value per frame; those not ``known`` (bool[n]) are left out."""

    column: TableColumn
    values: Column
    known: Column


class FrameColumns:
    """Hold what is known of the frames of ``tree``, which `project` made of ``profile``.

    ``numbers`` are columns by what ORDERS calls them, ``where`` the filters of the tree.
    """

    def __init__(self, profile: Profile, tree: StackTree, where: tuple[Filter, ...]) -> None:
        self.tree = tree
        self.totals = frame_totals(tree)
        self.unit: Unit = _UNITS.get(tree.metric.unit, "count")
        self.numbers = {one.column.title: one for one in self._numbers(profile, where)}

    @property
    def orders(self) -> list[str]:
        """The columns that rows can be sorted by."""
        return [title for title in ORDERS if title in self.numbers]

    def rows(self, by: str, kind: Kind | None = None, fits: Bool | None = None) -> I8:
        """List frames (places in ``totals``) sorted ``by`` one of `orders`.

        Only those of ``kind``, and those that ``fits`` (bool[totals]), where these are given.
        Those of which that is not known come last.
        """
        number = self.numbers[by]
        totals = self.totals
        order: I8 = np.lexsort((totals.frame, -totals.total, -number.values, ~number.known))
        wanted = np.ones(len(totals), bool) if fits is None else fits
        if kind is not None:
            wanted = wanted & (self.tree.frames.kind[totals.frame] == kind)
        found: I8 = order[wanted[order]]
        return found

    def matching(self, pattern: re.Pattern[str]) -> Bool:
        """Tell which frames of ``totals`` have a name that ``pattern`` finds, bool[totals]."""
        used = self.totals.frame.astype(np.int64)
        return np.isin(used, matching_frames(self.tree.frames, self.tree.text, used, pattern))

    def table(self, rows: I8) -> Table:
        """Put the frames in ``rows`` into a table."""
        frames = [self.tree.frames[frame] for frame in self.totals.frame[rows].tolist()]
        names = [self.tree.text[frame] for frame in self.totals.frame[rows].tolist()]
        texts: list[Sequence[Value]] = [names, [frame.kind.title for frame in frames]]
        numbers = [_cells(number, rows) for number in self.numbers.values()]
        places: list[Sequence[Value]] = [
            [frame.file or None for frame in frames],
            [frame.line or None for frame in frames],
        ]
        columns = (
            TableColumn("name", "name"),
            TableColumn("level", "level"),
            *(number.column for number in self.numbers.values()),
            TableColumn("file", "file"),
            TableColumn("line", "line", "number"),
        )
        cells = zip(*texts, *numbers, *places, strict=True)
        return Table.of("frames", "", columns, cells)

    def _numbers(self, profile: Profile, where: tuple[Filter, ...]) -> Iterator[FrameColumn]:
        totals, whole = self.totals, int(self.tree.total[0])
        known = np.ones(len(totals), bool)
        yield FrameColumn(self._weight("self"), totals.own, known)
        yield FrameColumn(_SHARES[0], _percent(totals.own, whole), known)
        yield FrameColumn(self._weight("total"), totals.total, known)
        yield FrameColumn(_SHARES[1], _percent(totals.total, whole), known)
        if self.tree.metric.noun != "activities":
            return
        known = ~np.isin(self.tree.frames.kind[totals.frame], [*PART_KINDS])
        yield FrameColumn(TableColumn("count", "count", "count"), totals.count, known)
        if self.tree.metric.unit != "ns":
            return
        mean = totals.total / np.maximum(totals.count, 1)
        yield FrameColumn(TableColumn("mean_ns", "mean", "ns"), mean, known)
        if profile.totals is None and len(self.tree.node_of_group):  # of a whole projection
            yield from _spread(_percentiles(profile, self.tree, where, totals), known)

    def _weight(self, name: str) -> TableColumn:
        ending = f"_{self.unit}" if self.unit in _UNITS.values() else ""
        return TableColumn(f"{name}{ending}", name, self.unit)


_SHARES = (
    TableColumn("self_percent", "self %", "percent"),
    TableColumn("total_percent", "total %", "percent"),
)


def _percent(part: I8, whole: int) -> Column:
    return 100 * part / max(whole, 1)


def _percentiles(
    profile: Profile, tree: StackTree, where: tuple[Filter, ...], totals: FrameTotals
) -> Percentiles:
    members = NodeActivities.from_tree(profile, tree, where)
    values = tree.metric.values(profile.table(tree.metric))
    return percentiles(members, values, totals.frame)


def _spread(found: Percentiles, known: Column) -> Iterator[FrameColumn]:
    for title, values in zip(
        ORDERS[4:], (found.p50, found.p95, found.p99, found.maximum), strict=True
    ):
        yield FrameColumn(TableColumn(f"{title}_ns", title, "ns"), values, known)


def _cells(number: FrameColumn, rows: I8) -> list[Value]:
    values, known = number.values[rows].tolist(), number.known[rows].tolist()
    return [value if there else None for value, there in zip(values, known, strict=True)]
