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
from flame.core.efficiency.columns import (
    BANDWIDTH,
    BOUND,
    COMPUTE,
    RATED,
    TFLOPS,
    WorkColumns,
)
from flame.core.efficiency.measured_frames import (
    MOVED,
    MeasuredFrames,
    are_measured,
    measure_frames,
)
from flame.core.efficiency.sums import count_frames
from flame.core.errors import InputError
from flame.core.gpu_metrics.averages import left_out_note
from flame.core.gpu_metrics.kernels import DRAM, EXPOSURE
from flame.core.gpu_metrics.names import MetricKey
from flame.core.model.frames import PART_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter
from flame.core.projection.matching import matching_frames
from flame.core.projection.project import shown_profile
from flame.core.projection.selection import Selection
from flame.core.report.table import Table, TableColumn, Unit, Value
from flame.core.units import FLOP

ORDERS = ("self", "total", "count", "mean", "p50", "p95", "p99", "max")
"""What rows are sorted by, the largest first."""

WORK_ORDERS = {
    "tflops": "TFLOP/s",
    "peak": "peak %",
    "bandwidth": "bandwidth %",
    "bound": "bound %",
}
"""The same by how near frames are to the peak of the GPU: titles of columns."""

METRIC_ORDERS = {
    "sm": "SM %",
    "tensor": "tensor %",
    "dram": "DRAM %",
    "sampled": "sampled",
    "moved": "× bytes",
}
"""The same by what GPU metrics say while kernels ran."""

_OF_WORK = (
    (TFLOPS, 1, TableColumn("tflops", "TFLOP/s", "number")),
    (COMPUTE, 100, TableColumn("compute_percent", "peak %", "percent")),
    (BANDWIDTH, 100, TableColumn("bandwidth_percent", "bandwidth %", "percent")),
    (BOUND, 100, TableColumn("bound_percent", "bound %", "percent")),
    (RATED, 100, TableColumn("rated_percent", "rated %", "percent")),
)
"""The key in `WorkColumns`, what it is multiplied by, and the column."""

_OF_METRICS = (
    (MetricKey.SM, TableColumn("sm_active_percent", "SM %", "percent")),
    (MetricKey.TENSOR, TableColumn("tensor_active_percent", "tensor %", "percent")),
    (DRAM, TableColumn("dram_percent", "DRAM %", "percent")),
    (EXPOSURE, TableColumn("sampled_ns", "sampled", "ns")),
)
"""The key in `MeasuredFrames.columns`, and the column."""

_SHARED = TableColumn("shared", "beside others")
_MOVED = TableColumn("moved_ratio", "× bytes", "ratio")

_UNITS: dict[str, Unit] = {"ns": "ns", "bytes": "bytes", FLOP: "FLOP"}
_TOLD = ("ns", "bytes")
"""Units that are the ends of keys."""


class FrameColumn(NamedTuple):
    """Hold a column of numbers, a value per frame; those not ``known`` (bool[n]) are left out."""

    column: TableColumn
    values: Column
    known: Column


class FrameColumns:
    """Hold what is known of the frames of ``tree``, which `project` made of ``profile``.

    ``numbers`` are columns by their titles, as ORDERS, `WORK_ORDERS` and `METRIC_ORDERS` have them,
    ``selection`` is that of the tree. ``work`` is None where no operator has shapes, ``measured``
    where there are no GPU metrics, or these cannot be read, as ``notes`` say.
    """

    def __init__(self, profile: Profile, tree: StackTree, selection: Selection) -> None:
        # Groups of a tree are those of the profile that is shown.
        profile, where = shown_profile(profile, selection), selection.where
        self.tree = tree
        self.totals = frame_totals(tree)
        self.unit: Unit = _UNITS.get(tree.metric.unit, "count")
        self.work = self._work(profile, where)
        self.notes: tuple[str, ...] = ()
        self.measured = self._metrics(profile, where)
        self.numbers = {one.column.title: one for one in self._numbers(profile, where)}

    @property
    def orders(self) -> list[str]:
        """The columns that rows can be sorted by."""
        known = {**dict(zip(ORDERS, ORDERS, strict=True)), **WORK_ORDERS, **METRIC_ORDERS}
        return [name for name, title in known.items() if title in self.numbers]

    def rows(self, by: str, kind: Kind | None = None, fits: Bool | None = None) -> I8:
        """List frames (places in ``totals``) sorted ``by`` one of `orders`.

        Only those of ``kind``, and those that ``fits`` (bool[totals]), where these are given.
        Those of which that is not known come last.
        """
        number = self.numbers[{**WORK_ORDERS, **METRIC_ORDERS}.get(by, by)]
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
        columns: dict[TableColumn, Sequence[Value]] = {
            TableColumn("name", "name"): names,
            TableColumn("level", "level"): [frame.kind.title for frame in frames],
        }
        for number in self.numbers.values():
            columns[number.column] = _cells(number, rows)
            if self.work is not None and number.column is _OF_WORK[-1][-1]:
                columns[TableColumn("verdict", "verdict")] = _verdicts(self.work, rows)
            if self.measured is not None and number.column is _OF_METRICS[-1][-1]:
                columns[_SHARED] = [*map(_yes, self.measured.metrics.shared[rows])]
        columns[TableColumn("file", "file")] = [frame.file or None for frame in frames]
        columns[TableColumn("line", "line", "number")] = [frame.line or None for frame in frames]
        return Table.of("frames", "", columns, zip(*columns.values(), strict=True))

    def _work(self, profile: Profile, where: tuple[Filter, ...]) -> WorkColumns | None:
        tree = self.tree
        # Only of a whole projection are activities known, and none are kept of sums.
        if profile.totals is not None or not len(tree.node_of_group):
            return None
        if tree.metric.table != "gpu" or not profile.sized_operators:
            return None
        counts = count_frames(profile, tree, where)
        return WorkColumns(counts) if counts is not None and counts.covered.any() else None

    def _numbers(self, profile: Profile, where: tuple[Filter, ...]) -> Iterator[FrameColumn]:
        totals, whole = self.totals, int(self.tree.total[0])
        known = np.ones(len(totals), bool)
        yield FrameColumn(self._weight("self"), totals.own, known)
        yield FrameColumn(_SHARES[0], _percent(totals.own, whole), known)
        yield FrameColumn(self._weight("total"), totals.total, known)
        yield FrameColumn(_SHARES[1], _percent(totals.total, whole), known)
        for key, scale, column in _OF_WORK if self.work is not None else ():
            assert self.work is not None
            values = np.round(scale * self.work.values[key], 3)
            yield FrameColumn(column, values, ~np.isnan(values))
        yield from self._measured()
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

    def _metrics(self, profile: Profile, where: tuple[Filter, ...]) -> MeasuredFrames | None:
        if not are_measured(profile, self.tree.metric):
            return None
        try:
            members = NodeActivities.from_tree(profile, self.tree, where)
            return measure_frames(profile, members, self.totals.frame)
        except InputError as error:
            self.notes = (left_out_note(error),)
            return None

    def _measured(self) -> Iterator[FrameColumn]:
        """What GPU metrics say, and how many times what was counted memory moved."""
        if self.measured is None:
            return
        columns = self.measured.columns
        for key, column in _OF_METRICS:
            share = columns[key]
            values = self.measured.metrics.exposure if key == EXPOSURE else np.round(share, 3)
            yield FrameColumn(column, values, ~np.isnan(share))
        if self.work is not None:
            ratio = np.round(columns[MOVED], 3)
            yield FrameColumn(_MOVED, ratio, ~np.isnan(ratio))

    def _weight(self, name: str) -> TableColumn:
        ending = f"_{self.unit}" if self.unit in _TOLD else ""
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


def _yes(holds: bool) -> str | None:
    return "yes" if holds else None


def _verdicts(work: WorkColumns, rows: I8) -> list[Value]:
    found = map(work.verdict, rows.tolist())
    return [None if verdict is None else verdict.key for verdict in found]


def _cells(number: FrameColumn, rows: I8) -> list[Value]:
    values, known = number.values[rows].tolist(), number.known[rows].tolist()
    return [value if there else None for value, there in zip(values, known, strict=True)]
