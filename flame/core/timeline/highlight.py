"""Highlight what passes the filters and matches the search on the timeline."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.model.activities import Activities, RangePieces
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter, passing_rows
from flame.core.regex import matching
from flame.core.timeline.intervals import Timeline


@dataclass(frozen=True, eq=False)
class Light:
    """Which intervals of a timeline are bright.

    ``passing`` (bool[n]): pass the filters. ``matching`` (bool[n], None without a search): of
    these, what the search finds. ``bright`` is what is drawn so; ``sums`` (i8[n+1]) adds up its
    visible lengths, and by activity kind those of ``sums_of`` (kernels and ranges are the rest).
    """

    passing: Bool
    matching: Bool | None
    sums: I8
    sums_of: dict[Kind, I8]

    @property
    def bright(self) -> Bool:
        """What the search finds, or what passes the filters."""
        return self.passing if self.matching is None else self.matching


def light(timeline: Timeline, passing: Bool, matching: Bool | None = None) -> Light:
    """Add up what is bright: what passes and, while searching, matches as well."""
    bright = passing if matching is None else passing & matching
    length = np.diff(timeline.before)
    others = np.flatnonzero(np.bincount(timeline.kind, minlength=len(Kind)))
    sums_of = {
        Kind(kind): _sums(np.where(bright & (timeline.kind == kind), length, 0))
        for kind in others.tolist()
        if kind in ACTIVITY_KINDS and kind != Kind.KERNEL
    }
    sums = timeline.before if bright.all() else _sums(np.where(bright, length, 0))
    return Light(passing, None if matching is None else bright, sums, sums_of)


def _sums(length: I8) -> I8:
    return np.concatenate([[0], np.cumsum(length)])


def passing(
    timeline: Timeline, profile: Profile, tree: StackTree, where: tuple[Filter, ...]
) -> Bool:
    """Which intervals are part of ``tree``, which `project` has made of ``profile``.

    Of activities those that it counts; of ranges those in which any of these was launched, or all
    where nothing is filtered.
    """
    if not where and tree.metric.table == "gpu":
        return np.ones(len(timeline), bool)
    table = profile.table(tree.metric)
    rows = tree.node_of_group[table.groups.of_row] >= 0
    chosen = passing_rows(profile, table, where)
    if chosen is not None:
        rows &= chosen
    found = np.zeros(len(timeline), bool)
    is_range = timeline.kind == Kind.NVTX
    if tree.metric.table == "gpu":
        found[~is_range] = rows[timeline.source[~is_range]]
    if timeline.pieces is not None and len(timeline.pieces):
        pieces = timeline.source[is_range]
        found[is_range] = not where or _holding(timeline.pieces, table, rows)[pieces]
    return found


def _holding(pieces: RangePieces, table: Activities, rows: Bool) -> Bool:
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
    holding: Bool = last > first
    return holding


def matches(timeline: Timeline, tree: StackTree, mask: Bool, pattern: re.Pattern[str]) -> Bool:
    """Which intervals a search finds: ranges by name, activities by theirs or any frame above.

    ``mask`` (bool[nodes]) are the nodes of ``tree`` that match ``pattern``.
    """
    fits = np.zeros(len(tree.text), bool)
    used = np.flatnonzero(np.bincount(timeline.frame, minlength=len(fits)))
    fits[matching(tree.text, used, pattern)] = True
    found = fits[timeline.frame]
    if tree.metric.table == "gpu":
        reach = np.maximum.accumulate(np.where(mask, tree.end, 0))
        below = tree.groups_below(np.arange(len(tree)) < reach)
        work = np.flatnonzero(timeline.kind != Kind.NVTX)
        group = timeline.table.groups.of_row[timeline.source[work]]
        found[work] |= below[group]
    return found
