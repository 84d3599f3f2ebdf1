"""Highlight what passes the filters and matches the search on the timeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.model.activities import Activities, RangePieces
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter, passing_rows
from flame.core.regex import find_matching
from flame.core.timeline.intervals import Timeline


@dataclass(frozen=True, eq=False)
class Highlight:
    """Mark the intervals of a timeline that are drawn bright, and add up their lengths.

    ``passing`` (bool[n]): pass the filters. ``matching`` (bool[n], None without a search): of
    these, what the search finds. ``sums`` (i8[n+1]) adds up the visible lengths of the ``bright``
    intervals, ``sums_by_kind`` those of some activity kinds (kernels and ranges are the rest).
    """

    passing: Bool
    matching: Bool | None
    sums: I8
    sums_by_kind: dict[Kind, I8]

    @property
    def bright(self) -> Bool:
        """What the search finds, or what passes the filters."""
        return self.passing if self.matching is None else self.matching


def highlight(timeline: Timeline, passing: Bool, matching: Bool | None = None) -> Highlight:
    """Highlight the intervals that are ``passing`` and, while searching, ``matching`` as well."""
    bright = passing if matching is None else passing & matching
    length = np.diff(timeline.before)
    others = np.flatnonzero(np.bincount(timeline.kind, minlength=len(Kind)))
    sums_by_kind = {
        Kind(kind): _sums(np.where(bright & (timeline.kind == kind), length, 0))
        for kind in others.tolist()
        if kind in ACTIVITY_KINDS and kind != Kind.KERNEL
    }
    sums = timeline.before if bright.all() else _sums(np.where(bright, length, 0))
    return Highlight(passing, None if matching is None else bright, sums, sums_by_kind)


def _sums(length: I8) -> I8:
    return np.concatenate([[0], np.cumsum(length)])


def passing_intervals(
    timeline: Timeline, profile: Profile, tree: StackTree, filters: tuple[Filter, ...]
) -> Bool:
    """Find the intervals that are part of ``tree``, made of ``profile`` by `project`, bool[n].

    Of activities those that it counts; of ranges those in which any of these was launched, or all
    where nothing is filtered.
    """
    if not filters and tree.metric.table == "gpu":
        return np.ones(len(timeline), bool)
    table = profile.table(tree.metric)
    rows = tree.node_of_group[table.groups.of_row] >= 0
    chosen = passing_rows(profile, table, filters)
    if chosen is not None:
        rows &= chosen
    passing = np.zeros(len(timeline), bool)
    is_range = timeline.kind == Kind.NVTX
    if tree.metric.table == "gpu":
        passing[~is_range] = rows[timeline.source[~is_range]]
    if timeline.pieces is not None and len(timeline.pieces):
        pieces = timeline.source[is_range]
        passing[is_range] = not filters or _contain_launches(timeline.pieces, table, rows)[pieces]
    return passing


def _contain_launches(pieces: RangePieces, table: Activities, rows: Bool) -> Bool:
    """The pieces of ranges in which any of ``rows`` was launched or, of a host table, began.

    As in attribution, what is launched at the moment in which a range ends is within it.
    """
    on_gpu = bool(table.launched.any())
    rows = rows & (table.thread >= 0) & (table.launched | (not on_gpu))
    time = (table.launch_start if on_gpu else table.start)[rows]
    base = min(int(pieces.start.min()), int(time.min(initial=pieces.start[0])))
    top = max(int(pieces.end.max()), int(time.max(initial=pieces.end[0])))

    def keys(thread: Column, time: I8) -> I8:
        shifted: I8 = thread.astype(np.int64) * (top - base + 1) + (time - base)
        return shifted

    moments = np.sort(keys(table.thread[rows], time))
    first = np.searchsorted(moments, keys(pieces.thread, pieces.start))
    ends = keys(pieces.thread, pieces.end)
    last = np.searchsorted(moments, ends, "right" if on_gpu else "left")
    launching: Bool = last > first
    return launching


def matching_intervals(
    timeline: Timeline,
    tree: StackTree,
    mask: Bool,
    pattern: re.Pattern[str],
    exact: Sequence[str] = (),
) -> Bool:
    """Find the intervals that match: ranges by name, activities by theirs or any frame above.

    ``mask`` (bool[nodes]) are the nodes of ``tree`` that match ``pattern``, ``exact`` (by frame id)
    the names with all their numbers, of which ranges may have any.
    """
    fits = np.zeros(len(tree.text), bool)
    used = np.flatnonzero(np.bincount(timeline.frame, minlength=len(fits)))
    for text in filter(None, (tree.text, exact)):
        fits[find_matching(text, used, pattern)] = True
    hits = fits[timeline.frame]
    if tree.metric.table == "gpu":
        reach = np.maximum.accumulate(np.where(mask, tree.end, 0))
        below = tree.groups_below(np.arange(len(tree)) < reach)
        work = np.flatnonzero(timeline.kind != Kind.NVTX)
        group = timeline.table.groups.of_row[timeline.source[work]]
        hits[work] |= below[group]
    return hits
