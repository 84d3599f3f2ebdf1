"""Highlight what passes the filters and matches the search on the timeline."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from flame.core.columns import I8, U1, Bool, Column, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, ThreadPieces
from flame.core.model.profile import Profile
from flame.core.model.threads.states import StateSpans
from flame.core.model.tree import StackTree
from flame.core.names.kernel_category import CATEGORIES
from flame.core.projection.filters import Filter, passing_rows
from flame.core.projection.matching import matching_frames
from flame.core.regex import find_matching
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import KINDS, STATES, Track


@dataclass(frozen=True, eq=False)
class Highlight:
    """Mark the intervals of a timeline that are drawn bright, and add up their lengths.

    ``passing`` (bool[n]): pass the filters. ``matching`` (bool[n], None without a search): of
    these, what the search finds. ``sums`` (i8[n+1]) adds up the visible lengths of the ``bright``
    intervals, ``sums_by_slot`` those of looks at this place among those of their track; those
    in the first place are the rest. ``looks`` (u1[n]): what decides on an interval's colour, its
    kind or, from `CATEGORY_LOOKS` on, its category; ``slots`` (u1[n]) are their places. ``work``
    are the looks of what ran on a GPU, the usual one first.
    """

    passing: Bool
    matching: Bool | None
    sums: I8
    sums_by_slot: dict[int, I8]
    looks: U1
    slots: U1
    work: tuple[int, ...]

    def looks_of(self, track: Track) -> tuple[int, ...]:
        """List the looks that are told apart on ``track``, the usual one first."""
        return self.work if track is Track.WORK else KINDS[track]

    @property
    def bright(self) -> Bool:
        """What the search finds, or what passes the filters."""
        return self.passing if self.matching is None else self.matching


CATEGORY_LOOKS = 64
"""The look of what is of the first of `CATEGORIES`; the others follow."""
_CATEGORIES = tuple(range(CATEGORY_LOOKS, CATEGORY_LOOKS + len(CATEGORIES)))


def category_looks(timeline: Timeline, profile: Profile) -> U1:
    """Give what ran on a GPU the look of its category, and all else that of its kind, u1[n]."""
    of_frame = profile.frames.kind.copy()
    category = profile.grouping.category
    for frame in unique(category[category >= 0]).tolist():
        place = CATEGORIES.index(profile.frames[frame].name)
        of_frame[np.flatnonzero(category == frame)] = CATEGORY_LOOKS + place
    looks = of_frame[timeline.frame]
    has_own = (timeline.frame >= 0) & (looks >= CATEGORY_LOOKS)
    return np.where(has_own, looks, timeline.kind).astype(np.uint8)


def highlight(
    timeline: Timeline, passing: Bool, matching: Bool | None = None, by_category: U1 | None = None
) -> Highlight:
    """Highlight the intervals that are ``passing`` and, while searching, ``matching`` as well.

    They look as their kind, or as `category_looks` say.
    """
    looks, work = timeline.kind, KINDS[Track.WORK]
    if by_category is not None:
        looks, work = by_category, (*_CATEGORIES, *work)
    bright = passing if matching is None else passing & matching
    length, slots = np.diff(timeline.before), _slot_table(work)[looks]
    sums_by_slot = {
        slot: _sums(np.where(bright & (slots == slot), length, 0))
        for slot in np.flatnonzero(np.bincount(slots)).tolist()
        if slot
    }
    sums = timeline.before if bright.all() else _sums(np.where(bright, length, 0))
    matching = None if matching is None else bright
    return Highlight(passing, matching, sums, sums_by_slot, looks, slots, work)


def _slot_table(work: tuple[int, ...]) -> U1:
    """The place of each look among those of its track; the first (0) if it is in none, u1[256]."""
    table = np.zeros(256, np.uint8)
    for looks in (*KINDS.values(), work):
        table[list(looks)] = np.arange(len(looks))
    return table


def _sums(length: I8) -> I8:
    return np.concatenate([[0], np.cumsum(length)])


def passing_intervals(
    timeline: Timeline, profile: Profile, tree: StackTree, filters: tuple[Filter, ...]
) -> Bool:
    """Find the intervals that are part of ``tree``, made of ``profile`` by `project`, bool[n].

    Of activities those that it counts; of ranges and functions those in which any of these was
    launched, or all where nothing is filtered; of API calls those that launched nothing as well.
    Idle time counts no activity: these pass where nothing is filtered. What held threads up passes,
    as does memory.
    """
    if not filters and tree.metric.table != "host":
        return np.ones(len(timeline), bool)
    table = profile.table(tree.metric)
    rows = tree.node_of_group[table.groups.of_row] >= 0
    chosen = passing_rows(profile, table, filters)
    if chosen is not None:
        rows &= chosen
    passing = np.isin(timeline.track, [*STATES, Track.MEMORY])
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
    exact: bool = False,
    unfolded: Sequence[str] = (),
) -> Bool:
    """Find the intervals that match: those of threads by name, activities also by frames above.

    What held threads up has names of its own.

    ``mask`` (bool[nodes]) are the nodes of ``tree`` that match ``pattern``, a name in full if
    ``exact``. ``unfolded`` (by frame id) are the names with all their numbers, of which ranges may
    have any.
    """
    fits = np.zeros(len(tree.text), bool)
    used = np.flatnonzero(np.bincount(timeline.frame + 1, minlength=len(fits) + 1)[1:])
    for text in filter(None, (tree.text, unfolded)):
        fits[matching_frames(tree.frames, text, used, pattern, exact)] = True
    hits = fits[timeline.frame]
    hits[timeline.track == Track.MEMORY] = False
    held = np.flatnonzero(np.isin(timeline.track, list(STATES)))
    if timeline.states is not None:
        hits[held] = _matching_states(timeline.states, pattern)[timeline.source[held]]
    if tree.metric.table == "gpu":
        reach = np.maximum.accumulate(np.where(mask, tree.end, 0))
        below = tree.groups_below(np.arange(len(tree)) < reach)
        work = np.flatnonzero(timeline.track == Track.WORK)
        group = timeline.table.groups.of_row[timeline.source[work]]
        hits[work] |= below[group]
    return hits


def _matching_states(states: StateSpans, pattern: re.Pattern[str]) -> Bool:
    """The rows of ``states`` whose names ``pattern`` matches."""
    fits = np.zeros(len(states.names), bool)
    fits[find_matching(states.names, np.arange(len(fits)), pattern)] = True
    return fits[states.name]
