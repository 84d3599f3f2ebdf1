"""Compute the top table: a row per frame of a tree, in several orders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.estimated_times import estimate_percentiles
from flame.core.analysis.frame_parts import (
    FrameParts,
    parts_by_device,
    parts_by_file,
    spread_of,
)
from flame.core.analysis.frame_totals import FrameTotals, Percentiles, frame_totals, percentiles
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I4, I8, Bool, Column, order_by, unique
from flame.core.efficiency.columns import WorkColumns
from flame.core.efficiency.measured_frames import MeasuredFrames
from flame.core.model.frames import PART_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter
from flame.core.ranks.node_spread import NodeSpread
from flame.core.units import format_count, format_percent, format_value
from flame.tui.session.tree_view import NO_NAME
from flame.tui.views.top_columns import BAR_CELLS, OF_TIMES, part_key, spread_key
from flame.tui.views.top_metrics import metric_cell

NONE = "–"
UNKNOWN = "…"

_BARS = " ▏▎▍▌▋▊▉█"
_SPREAD = ("p50", "p95", "p99", "maximum", "tail")


class SlowColumns(NamedTuple):
    """What takes its time: percentiles where the metric has any, orders by key, and parts.

    ``parts`` are the devices and the files by a word for them, where there are several. ``ranks``
    is how those of a summary are spread, ``work`` how near the rows are to the peak, ``measured``
    what GPU metrics say.
    """

    spread: Percentiles | None
    orders: dict[str, I4]
    parts: dict[str, FrameParts]
    ranks: NodeSpread | None = None
    work: WorkColumns | None = None
    measured: MeasuredFrames | None = None


class TopTable:
    """One row per frame of ``tree``; ``orders`` holds rows by key, largest first, names A to Z."""

    def __init__(self, tree: StackTree) -> None:
        self.tree = tree
        self.totals = frame_totals(tree)
        self.spread: Percentiles | None = None
        self.parts: dict[str, FrameParts] = {}
        self.work: WorkColumns | None = None
        self._unknown: dict[str, int] = {}
        self.measured: MeasuredFrames | None = None
        self._of_parts: dict[str, Column] = {}
        kinds = tree.frames.kind[self.totals.frame]
        self._kinds = kinds
        self.kinds = tuple(Kind(kind) for kind in unique(kinds).tolist())
        self._heaviest = order_by([-self.totals.total]).astype(np.int32)
        keys = ("own", "total", "count", "mean")
        self.orders = {key: self._order(self._column(key)) for key in keys}

    def __len__(self) -> int:
        return len(self.totals)

    @property
    def is_complete(self) -> bool:
        """Whether what takes its time is there, so that all cells say something."""
        return self.spread is not None

    @property
    def besides(self) -> tuple[bool, bool, bool]:
        """Whether rows have what GPU metrics say, work, and shares of a peak."""
        rated = self.work is not None and bool(self.work.counts.rated.any())
        return self.measured is not None, self.work is not None, rated

    def parts_of(self, profile: Profile, where: tuple[Filter, ...]) -> dict[str, FrameParts]:
        """What each row weighs on every GPU, and in every file, where there are several."""
        given = (profile, self.tree, where, self.totals.frame)
        parts = {"GPU": parts_by_device(*given), "file": parts_by_file(*given)}
        return {by: found for by, found in parts.items() if found is not None}

    def later(
        self, members: NodeActivities | None, values: I8, parts: dict[str, FrameParts]
    ) -> SlowColumns:
        """Percentiles of ``values`` per row of the metric's table, and the orders still missing.

        ``parts`` are those of the rows, by a word for what they are.
        """
        orders = {"name": self._by_name()}
        orders |= {key: self._order(column) for key, column in _part_columns(parts).items()}
        if members is None:
            return SlowColumns(None, orders, parts)
        return self._spread_out(percentiles(members, values, self.totals.frame), orders, parts)

    def estimated(self, profile: Profile) -> SlowColumns:
        """Percentiles by the histograms of the ranks that ``profile`` sums up, if it has them."""
        found = estimate_percentiles(profile, self.tree, self.totals.frame)
        return self._spread_out(found, {"name": self._by_name()}, {})

    def _spread_out(
        self, found: Percentiles, orders: dict[str, I4], parts: dict[str, FrameParts]
    ) -> SlowColumns:
        for key in _SPREAD:
            orders[key] = self._order(_of_spread(found, key))
        return SlowColumns(found, orders, parts)

    def take(self, later: SlowColumns) -> None:
        """Add what `later` has found."""
        self.spread, self.parts = later.spread, later.parts
        self._of_parts = _part_columns(later.parts)
        self.orders |= later.orders
        if later.measured is not None:
            self.measured = later.measured
        columns: dict[str, Column] = {}
        if self.measured is not None:
            columns |= self.measured.columns
        if later.work is not None:
            self.work = later.work
            columns |= later.work.values
        self.orders |= {key: self._order(column) for key, column in columns.items()}
        self._unknown = {key: int(np.isnan(each).sum()) for key, each in columns.items()}

    def _column(self, key: str) -> Column:
        found: FrameTotals = self.totals
        if key == "mean":
            return found.total / np.maximum(found.count, 1)
        column: I8 = getattr(found, key)
        return column

    def _order(self, column: Column) -> I4:
        """Rows by ``column``, the largest first; equal ones by their total."""
        keys = -column[self._heaviest]
        is_whole = keys.dtype == np.int64
        return self._heaviest[order_by([keys]) if is_whole else np.argsort(keys, kind="stable")]

    def _by_name(self) -> I4:
        names = [self.tree.text[frame] for frame in self.totals.frame.tolist()]
        return np.array(sorted(range(len(names)), key=names.__getitem__), np.int32)

    # Choosing rows

    def rows(self, key: str, backwards: bool, kind: Kind | None, fits: Bool | None) -> I4:
        """Sort the rows of ``kind`` (None: all) whose frames ``fits`` (bool[frames]) by ``key``.

        Those without a value come last, ``backwards`` too.
        """
        order = self.orders[key]
        if backwards:
            known = len(order) - self._unknown.get(key, 0)
            order = np.concatenate([order[:known][::-1], order[known:]])
        if kind is None and fits is None:
            return order
        return order[self._of_kind(kind)[order] & self._matching(fits)[order]]

    def number(self, kind: Kind | None) -> int:
        """Tell how many rows there are of ``kind``."""
        return int(self._of_kind(kind).sum())

    def _of_kind(self, kind: Kind | None) -> Bool:
        return np.ones(len(self), bool) if kind is None else self._kinds == kind

    def _matching(self, fits: Bool | None) -> Bool:
        return np.ones(len(self), bool) if fits is None else fits[self.totals.frame]

    def row_of(self, frame: int) -> int:
        """Return the row of ``frame``, -1 if it has none, as the root."""
        row = int(np.searchsorted(self.totals.frame, frame))
        return row if row < len(self) and self.totals.frame[row] == frame else -1

    # Writing

    def name(self, row: int) -> str:
        """Return the display name of the frame in ``row``, never empty."""
        return self.tree.text[int(self.totals.frame[row])] or NO_NAME

    def cell(self, row: int, key: str) -> str:
        """Return what stands in ``row`` under the column called ``key``."""
        if key in OF_TIMES and self._kinds[row] in PART_KINDS:
            return NONE
        if key in _SPREAD:
            return self._spread_cell(row, key)
        if key in self._of_parts:
            return self._part_cell(row, key)
        if self.work is not None and key in self.work.values:
            return self.work.cell(row, key)
        if self.measured is not None and key in self.measured.columns:
            return metric_cell(self.measured, row, key)
        total, own, count = (int(c[row]) for c in self._plain)
        whole, unit = int(self.tree.total[0]), self.tree.metric.unit
        cells = {
            "own": lambda: format_value(own, unit) if own else NONE,
            "own share": lambda: format_percent(own, whole) if own else NONE,
            "total": lambda: format_value(total, unit),
            "share": lambda: format_percent(total, whole),
            "bar": lambda: bar(total, whole),
            "count": lambda: format_count(count),
            "mean": lambda: format_value(total / count, unit) if count else NONE,
        }
        return cells[key]() if key in cells else UNKNOWN

    @property
    def _plain(self) -> tuple[I8, I8, I8]:
        return self.totals.total, self.totals.own, self.totals.count

    def _part_cell(self, row: int, key: str) -> str:
        value = self._of_parts[key][row]
        if key in map(spread_key, self.parts):
            return times(float(value), 1)
        return format_value(int(value), self.tree.metric.unit) if value else NONE

    def _spread_cell(self, row: int, key: str) -> str:
        if self.spread is None:
            return UNKNOWN
        found, unit = self.spread, self.tree.metric.unit
        if found.estimated and not found.maximum[row]:
            return NONE
        about = "≈" if found.estimated and key != "maximum" else ""
        if key == "tail":
            return about + times(int(found.p99[row]), int(found.p50[row]))
        return about + format_value(int(getattr(found, key)[row]), unit)


def _part_columns(parts: dict[str, FrameParts]) -> dict[str, Column]:
    """The columns of ``parts``, and how far they are spread, by key."""
    columns: dict[str, Column] = {}
    for by, found in parts.items():
        columns[spread_key(by)] = spread_of(found.total)
        columns |= {part_key(by, place): total for place, total in enumerate(found.total)}
    return columns


def _of_spread(found: Percentiles, key: str) -> Column:
    if key == "tail":
        return np.where(found.p50, found.p99 / np.maximum(found.p50, 1), 0.0)
    column: I8 = getattr(found, key)
    return column


def bar(part: int, whole: int) -> str:
    """Draw ``part`` of ``whole`` as a bar; nothing above zero is drawn as nothing."""
    eighths = -(-part * BAR_CELLS * 8 // whole) if whole else 0
    full, rest = divmod(min(eighths, BAR_CELLS * 8), 8)
    return (_BARS[8] * full + (_BARS[rest] if rest else "")).ljust(BAR_CELLS)


def times(value: float, base: float) -> str:
    """Write how many times ``base`` the ``value`` is, in at most eight cells."""
    if not base:
        return NONE
    ratio = value / base
    return f"{ratio:.1f}×" if ratio < 100 else f"{ratio:,.0f}×" if ratio < 99_999 else ">99,999×"
