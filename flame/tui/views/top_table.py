"""Fill the top table: columns that fit a width; rows by order, kind and search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.frame_totals import FrameTotals, Percentiles, frame_totals, percentiles
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import I4, I8, Bool, Column
from flame.core.model.frames import SAMPLE_KINDS, Kind
from flame.core.model.tree import StackTree
from flame.core.units import format_count, format_percent, format_value
from flame.tui.session.tree_view import NO_NAME

LEAST_NAME = 32
NAME_SHARE = 0.3
LONG_NAME_SHARE = 0.5
"""Cells, and part of the width, that the kind and the name keep when columns are chosen.

The larger part where there are few columns: names of functions are long.
"""

NONE = "–"
UNKNOWN = "…"

_BARS = " ▏▎▍▌▋▊▉█"
_BAR_CELLS = 6


class Head(NamedTuple):
    """A column: ``sorts`` is the key of the values it sorts by, ``width`` includes a gap."""

    key: str
    title: str
    width: int
    sorts: str


HEADS = (
    Head("own", "self", 9, "own"),
    Head("own share", "%", 8, "own"),
    Head("total", "total", 9, "total"),
    Head("share", "%", 8, "total"),
    Head("bar", "", _BAR_CELLS + 1, "total"),
    Head("count", "count", 10, "count"),
    Head("mean", "mean", 9, "mean"),
    Head("p50", "p50", 9, "p50"),
    Head("p95", "p95", 9, "p95"),
    Head("p99", "p99", 9, "p99"),
    Head("maximum", "max", 9, "maximum"),
    Head("tail", "tail", 9, "tail"),
)
NAME = Head("name", "name", 0, "name")
TITLES = {head.sorts: head.title for head in (*HEADS, NAME) if head.title not in ("", "%")}
"""What to call each order."""

_WANTED = (
    "own", "total", "share", "count", "p99", "p50", "maximum",
    "bar", "mean", "tail", "p95", "own share",
)  # fmt: skip
"""The columns, the one that a narrow table keeps longest first."""

_OF_TIMES = ("count", "mean", "p50", "p95", "p99", "maximum", "tail")
_SPREAD = ("p50", "p95", "p99", "maximum", "tail")


def heads_for(width: int, timed: bool, order: str = "own") -> tuple[Head, ...]:
    """Choose the columns before the name that fit ``width``, in order, that of ``order`` always.

    ``timed``: the metric is a time of single activities, which `wording.lasts` says.
    """
    fitting = {head.key: head for head in _heads_of(timed)}
    room = width - max(LEAST_NAME, int(width * (NAME_SHARE if timed else LONG_NAME_SHARE)))
    chosen: set[str] = set()
    for key in dict.fromkeys((order, *_WANTED)):
        if key in fitting:
            room -= fitting[key].width
            if room < 0:
                break
            chosen.add(key)
    return tuple(head for key, head in fitting.items() if key in chosen)


def orders_of(timed: bool) -> tuple[str, ...]:
    """List what a table can be sorted by, as its columns are ordered, even those without room."""
    return tuple(dict.fromkeys(head.sorts for head in (*_heads_of(timed), NAME)))


def _heads_of(timed: bool) -> list[Head]:
    if timed:
        return list(HEADS)
    return [head._replace(width=head.width + 3) for head in HEADS if head.key not in _OF_TIMES]


class SlowColumns(NamedTuple):
    """What takes its time: percentiles where the metric has any, and orders by key."""

    spread: Percentiles | None
    orders: dict[str, I4]


class TopTable:
    """One row per frame of ``tree``; ``orders`` holds rows by key, largest first, names A to Z."""

    def __init__(self, tree: StackTree) -> None:
        self.tree = tree
        self.totals = frame_totals(tree)
        self.spread: Percentiles | None = None
        kinds = tree.frames.kind[self.totals.frame]
        self._kinds = kinds
        self.kinds = tuple(Kind(kind) for kind in np.unique(kinds).tolist())
        self._heaviest = np.argsort(-self.totals.total, kind="stable").astype(np.int32)
        keys = ("own", "total", "count", "mean")
        self.orders = {key: self._order(self._column(key)) for key in keys}

    def __len__(self) -> int:
        return len(self.totals)

    def later(self, members: NodeActivities | None, values: I8) -> SlowColumns:
        """Percentiles of ``values`` per row of the metric's table, and the orders still missing."""
        orders = {"name": self._by_name()}
        if members is None:
            return SlowColumns(None, orders)
        found = percentiles(members, values, self.totals.frame)
        for key in _SPREAD:
            orders[key] = self._order(_of_spread(found, key))
        return SlowColumns(found, orders)

    def take(self, later: SlowColumns) -> None:
        """Add what `later` has found."""
        self.spread = later.spread
        self.orders |= later.orders

    def _column(self, key: str) -> Column:
        found: FrameTotals = self.totals
        if key == "mean":
            return found.total / np.maximum(found.count, 1)
        column: I8 = getattr(found, key)
        return column

    def _order(self, column: Column) -> I4:
        """Rows by ``column``, the largest first; equal ones by their total."""
        return self._heaviest[np.argsort(-column[self._heaviest], kind="stable")]

    def _by_name(self) -> I4:
        names = [self.tree.text[frame] for frame in self.totals.frame.tolist()]
        return np.array(sorted(range(len(names)), key=names.__getitem__), np.int32)

    # Choosing rows

    def rows(self, key: str, backwards: bool, kind: Kind | None, fits: Bool | None) -> I4:
        """Sort the rows of ``kind`` (None: all) whose frames ``fits`` (bool[frames]) by ``key``."""
        order = self.orders[key][:: -1 if backwards else 1]
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
        if key in _OF_TIMES and self._kinds[row] in SAMPLE_KINDS:
            return NONE
        if key in _SPREAD:
            return self._spread_cell(row, key)
        total, own, count = (int(c[row]) for c in self._plain)
        whole, unit = int(self.tree.total[0]), self.tree.metric.unit
        return {
            "own": lambda: format_value(own, unit) if own else NONE,
            "own share": lambda: format_percent(own, whole) if own else NONE,
            "total": lambda: format_value(total, unit),
            "share": lambda: format_percent(total, whole),
            "bar": lambda: bar(total, whole),
            "count": lambda: format_count(count),
            "mean": lambda: format_value(total / count, unit) if count else NONE,
        }[key]()

    @property
    def _plain(self) -> tuple[I8, I8, I8]:
        return self.totals.total, self.totals.own, self.totals.count

    def _spread_cell(self, row: int, key: str) -> str:
        if self.spread is None:
            return UNKNOWN
        if key == "tail":
            return times(int(self.spread.p99[row]), int(self.spread.p50[row]))
        return format_value(int(getattr(self.spread, key)[row]), self.tree.metric.unit)


def _of_spread(found: Percentiles, key: str) -> Column:
    if key == "tail":
        return np.where(found.p50, found.p99 / np.maximum(found.p50, 1), 0.0)
    column: I8 = getattr(found, key)
    return column


def bar(part: int, whole: int) -> str:
    """Draw ``part`` of ``whole`` as a bar; nothing above zero is drawn as nothing."""
    eighths = -(-part * _BAR_CELLS * 8 // whole) if whole else 0
    full, rest = divmod(min(eighths, _BAR_CELLS * 8), 8)
    return (_BARS[8] * full + (_BARS[rest] if rest else "")).ljust(_BAR_CELLS)


def times(value: int, base: int) -> str:
    """Write how many times ``base`` the ``value`` is, in at most eight cells."""
    if not base:
        return NONE
    ratio = value / base
    return f"{ratio:.1f}×" if ratio < 100 else f"{ratio:,.0f}×" if ratio < 99_999 else ">99,999×"
