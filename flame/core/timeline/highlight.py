"""Highlight what passes the filters and matches the search on the timeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, U1, Bool, Column
from flame.core.model.activities import Activities, RangePieces
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.kernel_category import CATEGORIES
from flame.core.projection.filters import Filter, passing_rows
from flame.core.projection.matching import matching_frames
from flame.core.timeline.intervals import Timeline


@dataclass(frozen=True, eq=False)
class Highlight:
    """Mark the intervals of a timeline that are drawn bright, and add up their lengths.

    ``passing`` (bool[n]): pass the filters. ``matching`` (bool[n], None without a search): of
    these, what the search finds. ``sums`` (i8[n+1]) adds up the visible lengths of the ``bright``
    intervals, ``sums_by_look`` those of activities of some looks; those of the ``usual`` look, and
    ranges, are the rest. ``looks`` (u1[n]): what decides on an interval's colour, its `Kind` or,
    from `CATEGORY_LOOKS` on, its category.
    """

    passing: Bool
    matching: Bool | None
    sums: I8
    sums_by_look: dict[int, I8]
    looks: U1
    usual: int

    @property
    def bright(self) -> Bool:
        """What the search finds, or what passes the filters."""
        return self.passing if self.matching is None else self.matching


CATEGORY_LOOKS = 64
"""The look of what is of the first of `CATEGORIES`; the others follow."""


def category_looks(timeline: Timeline, profile: Profile) -> U1:
    """Give what ran on a GPU the look of its category, and all else that of its kind, u1[n]."""
    of_frame = profile.frames.kind.copy()
    category = profile.grouping.category
    for frame in np.unique(category[category >= 0]).tolist():
        place = CATEGORIES.index(profile.frames[frame].name)
        of_frame[np.flatnonzero(category == frame)] = CATEGORY_LOOKS + place
    looks = of_frame[timeline.frame]
    return np.where(looks >= CATEGORY_LOOKS, looks, timeline.kind).astype(np.uint8)


def highlight(
    timeline: Timeline, passing: Bool, matching: Bool | None = None, by_category: U1 | None = None
) -> Highlight:
    """Highlight the intervals that are ``passing`` and, while searching, ``matching`` as well.

    They look as their kind, or as `category_looks` say.
    """
    looks, usual = timeline.kind, int(Kind.KERNEL)
    if by_category is not None:
        looks, usual = by_category, CATEGORY_LOOKS
    bright = passing if matching is None else passing & matching
    length = np.diff(timeline.before)
    sums_by_look = {
        look: _sums(np.where(bright & (looks == look), length, 0))
        for look in np.flatnonzero(np.bincount(looks)).tolist()
        if (look in ACTIVITY_KINDS or look >= CATEGORY_LOOKS) and look != usual
    }
    sums = timeline.before if bright.all() else _sums(np.where(bright, length, 0))
    matching = None if matching is None else bright
    return Highlight(passing, matching, sums, sums_by_look, looks, usual)


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
    exact: bool = False,
    unfolded: Sequence[str] = (),
) -> Bool:
    """Find the intervals that match: ranges by name, activities by theirs or any frame above.

    ``mask`` (bool[nodes]) are the nodes of ``tree`` that match ``pattern``, a name in full if
    ``exact``. ``unfolded`` (by frame id) are the names with all their numbers, of which ranges may
    have any.
    """
    fits = np.zeros(len(tree.text), bool)
    used = np.flatnonzero(np.bincount(timeline.frame, minlength=len(fits)))
    for text in filter(None, (tree.text, unfolded)):
        fits[matching_frames(tree.frames, text, used, pattern, exact)] = True
    hits = fits[timeline.frame]
    if tree.metric.table == "gpu":
        reach = np.maximum.accumulate(np.where(mask, tree.end, 0))
        below = tree.groups_below(np.arange(len(tree)) < reach)
        work = np.flatnonzero(timeline.kind != Kind.NVTX)
        group = timeline.table.groups.of_row[timeline.source[work]]
        hits[work] |= below[group]
    return hits
