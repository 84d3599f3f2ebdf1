"""Lay out what the threads of the host did: Python functions, ranges and API calls."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.thread_pieces import innermost_pieces
from flame.core.columns import I8, U1, Column, sum_by
from flame.core.model.activities import ThreadPieces
from flame.core.model.profile import Profile
from flame.core.timeline.lanes import (
    KINDS,
    Lane,
    LaneColumns,
    Track,
    bounds,
    no_columns,
    thread_label,
)

Pieces = dict[Track, ThreadPieces]


def host_pieces(profile: Profile) -> Pieces:
    """Cut what the threads of ``profile`` did into pieces, by track; only those that have any."""
    functions = profile.functions
    found = {
        Track.FUNCTIONS: functions,
        Track.INNERMOST: functions and innermost_pieces(functions),
        Track.RANGES: profile.ranges,
        Track.CALLS: profile.calls,
    }
    return {track: pieces for track, pieces in found.items() if pieces}


def host_columns(profile: Profile, pieces: Pieces) -> LaneColumns:
    """Lay out ``pieces`` by thread, those that launched the most GPU time first, and by track."""
    if not pieces:
        return no_columns()
    size = {track: len(table) for track, table in pieces.items()}
    track = np.repeat(list(size), list(size.values()))
    source = np.concatenate([np.arange(number) for number in size.values()])
    thread, depth, frame, start, end = (
        np.concatenate([getattr(table, name) for table in pieces.values()])
        for name in ("thread", "depth", "frame", "start", "end")
    )
    # Pieces of a track are ordered by (thread, depth, start) already.
    order = np.argsort(_ranks(profile)[thread] * len(Track) + track, kind="stable")
    track, thread, depth, frame = (column[order] for column in (track, thread, depth, frame))
    lanes = [
        Lane(
            thread_label(profile, int(thread[first])),
            int(depth[first]),
            first,
            last,
            Track(int(track[first])),
            int(thread[first]),
        )
        for first, last in bounds([thread, track, depth])
    ]
    low, high = start[order] - profile.rows_begin, end[order] - profile.rows_begin
    return LaneColumns(source[order], frame, _kinds(profile, track, frame), low, high, lanes)


def _kinds(profile: Profile, track: Column, frame: Column) -> U1:
    """The kind of each interval: that of its track, of an API call its class."""
    kind = np.array([KINDS[each][0] for each in Track], np.uint8)[track]
    called = track == Track.CALLS
    kind[called] = profile.frames.call_classes(frame[called])
    return kind


def _ranks(profile: Profile) -> I8:
    """Place of every thread when those that launched the most GPU time come first, i8[threads]."""
    table, size = profile.activities, len(profile.threads)
    rows = table.thread >= 0
    launched = sum_by(table.thread[rows], table.duration[rows], size)
    rank = np.empty(size, np.int64)
    rank[np.argsort(-launched, kind="stable")] = np.arange(size)
    return rank
