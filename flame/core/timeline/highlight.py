"""Highlight what passes the filters and matches the search on the timeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flame.core.columns import I8, U1, Bool, Column
from flame.core.model.activities import Activities, ThreadPieces
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter, passing_rows
from flame.core.regex import find_matching
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import KINDS, Track


@dataclass(frozen=True, eq=False)
class Highlight:
    """Mark the intervals of a timeline that are drawn bright, and add up their lengths.

    ``passing`` (bool[n]): pass the filters. ``matching`` (bool[n], None without a search): of
    these, what the search finds. ``sums`` (i8[n+1]) adds up the visible lengths of the ``bright``
    intervals, ``sums_by_slot`` those of kinds that have this place in `KINDS` of their track;
    those in the first place are the rest.
    """

    passing: Bool
    matching: Bool | None
    sums: I8
    sums_by_slot: dict[int, I8]

    @property
    def bright(self) -> Bool:
        """What the search finds, or what passes the filters."""
        return self.passing if self.matching is None else self.matching


def highlight(timeline: Timeline, passing: Bool, matching: Bool | None = None) -> Highlight:
    """Highlight the intervals that are ``passing`` and, while searching, ``matching`` as well."""
    bright = passing if matching is None else passing & matching
    length, slot = np.diff(timeline.before), slots(timeline.kind)
    used = np.flatnonzero(np.bincount(slot)).tolist()
    sums_by_slot = {
        each: _sums(np.where(bright & (slot == each), length, 0)) for each in used if each
    }
    sums = timeline.before if bright.all() else _sums(np.where(bright, length, 0))
    return Highlight(passing, None if matching is None else bright, sums, sums_by_slot)


def slots(kind: U1) -> U1:
    """Find the place of each kind in the list of its track; the first (0) if it is in none."""
    return _SLOT[kind]


_SLOT = np.zeros(256, np.uint8)
for _kinds in KINDS.values():
    _SLOT[list(_kinds)] = np.arange(len(_kinds))


def _sums(length: I8) -> I8:
    return np.concatenate([[0], np.cumsum(length)])


def passing_intervals(
    timeline: Timeline, profile: Profile, tree: StackTree, filters: tuple[Filter, ...]
) -> Bool:
    """Find the intervals that are part of ``tree``, made of ``profile`` by `project`, bool[n].

    Of activities those that it counts; of ranges and functions those in which any of these was
    launched, or all where nothing is filtered; of API calls those that launched nothing as well.
    """
    if not filters and tree.metric.table == "gpu":
        return np.ones(len(timeline), bool)
    table = profile.table(tree.metric)
    rows = tree.node_of_group[table.groups.of_row] >= 0
    chosen = passing_rows(profile, table, filters)
    if chosen is not None:
        rows &= chosen
    passing = np.zeros(len(timeline), bool)
    if tree.metric.table == "gpu":
        work = timeline.track == Track.WORK
        passing[work] = rows[timeline.source[work]]
    for track, pieces in timeline.pieces.items():
        of_track = timeline.track == track
        shown = (
            _passing_pieces(pieces, table, rows, track) if filters else np.ones(len(pieces), bool)
        )
        passing[of_track] = shown[timeline.source[of_track]]
    return passing


def _passing_pieces(pieces: ThreadPieces, table: Activities, rows: Bool, track: Track) -> Bool:
    """The pieces in which any of ``rows`` was launched; API calls also if they launch nothing."""
    launching = _contain_launches(pieces, table, rows)
    if track != Track.CALLS:
        return launching
    return launching | ~_contain_launches(pieces, table, np.ones(len(table), bool))


def _contain_launches(pieces: ThreadPieces, table: Activities, rows: Bool) -> Bool:
    """The pieces in which any of ``rows`` was launched or, of a host table, began.

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
    """Find the intervals that match: those of threads by name, activities also by frames above.

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
        work = np.flatnonzero(timeline.track == Track.WORK)
        group = timeline.table.groups.of_row[timeline.source[work]]
        hits[work] |= below[group]
    return hits
