"""Lay rows of the icicle out: frames as cells, those too narrow to read merged into runs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.tui.session.joined_rows import ALL_CLOSED, JoinedRows, OpenChains

NARROW = 1.5
"""Frames under this many cells are merged with their neighbours: siblings of one width all are."""

_SHOWN = 0.5
"""Share of a cell that narrow frames must fill; frames below them then never show without them."""


class Span(NamedTuple):
    """A stretch of the tree's horizontal axis, in metric units: [low, high)."""

    low: int
    high: int


class Item(NamedTuple):
    """Cells [left, right) of a row, showing the frames at places [first, last) of that row.

    ``node`` is the frame where it is one (of a closed chain the first), -1 for a run of several
    narrow ones; ``cover`` is how much of the cells the frames really fill, 0..1.
    """

    left: int
    right: int
    first: int
    last: int
    node: int
    cover: float

    @property
    def frames(self) -> int:
        """Number of frames shown as this item."""
        return self.last - self.first


@dataclass(frozen=True)
class LayoutRow:
    """The frames of one row that have any width, left to right, i8[n] each.

    Of a closed chain it is the first frame. ``low`` and ``high`` are their edges in metric units;
    ``before`` the summed widths of those to the left.
    """

    nodes: I8
    low: I8
    high: I8
    before: I8

    def within(self, span: Span) -> tuple[int, int]:
        """Places [first, last) of the frames that overlap ``span``."""
        first = np.searchsorted(self.high, span.low, "right")
        last = np.searchsorted(self.low, span.high, "left")
        return int(first), int(max(first, last))

    def place(self, node: int) -> int:
        """Tell where ``node`` stands in this row, -1 if it has no width."""
        place = int(np.searchsorted(self.nodes, node))
        held = place < len(self.nodes) and self.nodes[place] == node
        return place if held else -1


@dataclass(frozen=True)
class RowLayout:
    """Where the frames of a tree lie; a row is gathered from the columns when first shown.

    ``joined`` says which frames share a row.
    """

    tree: StackTree
    joined: JoinedRows
    _rows: dict[int, LayoutRow] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: StackTree, opened: OpenChains = ALL_CLOSED) -> RowLayout:
        """Lay ``tree`` out with the chains that are ``opened``."""
        return cls(tree, JoinedRows(tree, opened))

    def reopened(self, opened: OpenChains) -> RowLayout:
        """Lay the same tree out with other chains open."""
        return RowLayout(self.tree, self.joined.reopened(opened))

    @cached_property
    def whole(self) -> Span:
        """The span of the root."""
        return self.span(0)

    def span(self, node: int) -> Span:
        """Return the span of ``node``."""
        low = int(self.tree.x[node])
        return Span(low, low + int(self.tree.total[node]))

    def row(self, number: int) -> LayoutRow:
        """Return the row below ``number`` others; empty where there is none."""
        if number not in self._rows:
            self._rows[number] = self._gather(number)
        return self._rows[number]

    def _gather(self, number: int) -> LayoutRow:
        rows = self.joined.rows
        nodes = rows[number] if 0 <= number < len(rows) else np.zeros(0, np.int64)
        total = self.tree.total[nodes]
        if not total.all():
            nodes, total = nodes[total > 0], total[total > 0]
        low = self.tree.x[nodes]
        return LayoutRow(nodes, low, low + total, np.cumsum(total) - total)

    def items(self, number: int, span: Span, width: int) -> list[Item]:
        """Return what row ``number`` shows of ``span`` in ``width`` cells, left to right.

        Work grows with ``width`` and the logarithm of the row, not with the row: only frames under
        the middle of a cell can be wider than one, all others are summed up.
        """
        row = self.row(number)
        first, last = row.within(span)
        if first == last or width < 1:
            return []
        scale = width / (span.high - span.low)
        wide = _wide(row, (first, last), span, width, scale)
        return sorted(wide + _runs(row, wide, span, width, scale))


def _wide(
    row: LayoutRow, places: tuple[int, int], span: Span, width: int, scale: float
) -> list[Item]:
    """Frames of at least `NARROW` cells; edges are rounded, so that neighbours share theirs."""
    middles = np.floor(span.low + (np.arange(width) + 0.5) / scale).astype(np.int64)
    under = np.searchsorted(row.low, middles, "right") - 1
    under = under[(under >= places[0]) & (under < places[1])]
    under = under[np.concatenate([[True], under[1:] != under[:-1]])] if len(under) else under
    low, high = np.maximum(row.low[under], span.low), np.minimum(row.high[under], span.high)
    kept = (high - low) * scale >= NARROW
    left = _cells(low, span, scale)
    right = _cells(high, span, scale)
    columns = (left[kept], right[kept], under[kept], row.nodes[under[kept]])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Item(low, high, place, place + 1, node, 1.0) for low, high, place, node in rows]


def _cells(edges: I8, span: Span, scale: float) -> I8:
    cells: I8 = np.rint((edges - span.low) * scale).astype(np.int64)
    return cells


def _runs(row: LayoutRow, wide: list[Item], span: Span, width: int, scale: float) -> list[Item]:
    """Neighbouring cells that narrow frames fill, as one item each."""
    free = np.ones(width, bool)
    for item in wide:
        free[item.left : item.right] = False
    if not free.any():
        return []
    bounds = span.low + np.arange(width + 1) / scale
    cover = np.diff(_covered(row, bounds)) * scale
    gaps = _Gaps([item.right for item in wide], [item.left for item in wide], wide)
    runs = []
    for left, right in _stretches(free & (cover >= _SHOWN)):
        reach = Span(math.floor(bounds[left]), math.ceil(bounds[right]))
        first, last = gaps.clip(row.within(reach), left, right)
        node = int(row.nodes[first]) if last - first == 1 else -1
        filled = min(float(cover[left:right].mean()), 1.0)
        if last > first:
            runs.append(Item(left, right, first, last, node, filled))
    return runs


def _covered(row: LayoutRow, bounds: F8) -> F8:
    """How much of the row's frames lies left of each of ``bounds``, in metric units."""
    place = np.searchsorted(row.low, np.floor(bounds).astype(np.int64), "right") - 1
    frame = np.maximum(place, 0)
    part = np.clip(bounds - row.low[frame], 0, row.high[frame] - row.low[frame])
    covered: F8 = row.before[frame] - row.before[frame[0]] + np.where(place >= 0, part, 0)
    return covered


def _stretches(shown: Bool) -> list[tuple[int, int]]:
    """The [left, right) of every stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], shown, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


class _Gaps(NamedTuple):
    """The room between wide frames, which may reach into it by less than half a cell."""

    rights: list[int]
    lefts: list[int]
    wide: list[Item]

    def clip(self, places: tuple[int, int], left: int, right: int) -> tuple[int, int]:
        """``places`` without the wide frames on either side of cells [left, right).

        Where these touch the cells, with the narrow ones under their rounded edges.
        """
        first, last = places
        before, after = bisect_right(self.rights, left), bisect_left(self.lefts, right)
        if before:
            beside = self.wide[before - 1]
            first = beside.last if beside.right == left else max(first, beside.last)
        if after < len(self.wide):
            beside = self.wide[after]
            last = beside.first if beside.left == right else min(last, beside.first)
        return first, last
