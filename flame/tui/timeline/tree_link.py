"""Find the frame of the tree for what is selected over time, and the other way round."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import Highlight
from flame.core.timeline.intervals import Timeline
from flame.core.timeline.lanes import STATES, Track
from flame.tui.session.session import Projection

_TRIED = 4096
"""Of a range or function that is in more places of the tree, the heaviest are compared."""


def node_of(shown: Projection, timeline: Timeline, highlight: Highlight, item: int) -> int:
    """Find the node of ``shown``'s tree that ``item`` is part of; -1 where it is in none."""
    tree, row = shown.view.tree, int(timeline.source[item])
    track = Track(int(timeline.track[item]))
    if track == Track.CALLS:
        return _node_of_call(tree, timeline, row)
    if track in STATES or track == Track.MEMORY:
        return -1
    if track != Track.WORK:
        node = _node_of_piece(tree, _chain(shown, timeline, track, row), _KINDS[track])
    elif tree.metric.table == "gpu" and highlight.passing[item]:
        node = int(tree.node_of_group[timeline.table.groups.of_row[row]])
    else:
        return -1
    while node > 0 and not tree.total[node]:  # the metric gives it no width
        node = int(tree.parent[node])
    return node


_KINDS = {
    Track.RANGES: Kind.NVTX,
    Track.FUNCTIONS: Kind.PYTHON,
    Track.INNERMOST: Kind.PYTHON,
}


def _node_of_call(tree: StackTree, timeline: Timeline, piece: int) -> int:
    """The node of the API call of the first activity that was launched in a call; -1: none."""
    calls, table = timeline.pieces[Track.CALLS], timeline.table
    if tree.metric.table != "gpu":
        return -1
    start, end = calls.start[piece], calls.end[piece]
    inside = (table.launch_start >= start) & (table.launch_end <= end) & table.launched
    rows = np.flatnonzero(inside & (table.thread == calls.thread[piece]))
    if not len(rows):
        return -1
    node = bottom = int(tree.node_of_group[table.groups.of_row[rows[0]]])
    while node > 0 and tree.kind(node) != Kind.LAUNCH:
        node = int(tree.parent[node])
    return node if node > 0 else bottom


def _chain(shown: Projection, timeline: Timeline, track: Track, piece: int) -> list[int]:
    """Frames, as shown, of a piece of a thread and the pieces around it, innermost first."""
    if track == Track.INNERMOST:
        track, piece = Track.FUNCTIONS, int(timeline.pieces[track].parent[piece])
    pieces = timeline.pieces[track]
    labels = shown.labels
    chain = []
    while piece >= 0:
        chain.append(int(labels.shown[pieces.frame[piece]]))
        piece = int(pieces.parent[piece])
    return chain


def _node_of_piece(tree: StackTree, chain: list[int], kind: Kind) -> int:
    """The heaviest place of ``chain[0]`` that is below most of the others; -1: none."""
    nodes = np.flatnonzero(tree.frame == chain[0])
    if not len(nodes):
        return -1
    nodes = nodes[np.argsort(-tree.total[nodes], kind="stable")[:_TRIED]]
    above = nodes
    for frame in chain[1:]:
        above = _next_above(tree, above, kind)
        fits = tree.frame[above] == frame
        if not fits.any():
            break
        nodes, above = nodes[fits], above[fits]
    return int(nodes[0])


def _next_above(tree: StackTree, nodes: I8, kind: Kind) -> I8:
    """The closest frame of ``kind`` above each of ``nodes``, the root where there is none."""
    above = np.maximum(tree.parent[nodes], 0).astype(np.int64)
    while True:
        other = (above > 0) & (tree.frames.kind[tree.frame[above]] != kind)
        if not other.any():
            return above
        above[other] = tree.parent[above[other]]


def item_of(
    shown: Projection, timeline: Timeline, highlight: Highlight, node: int, window: TimeWindow
) -> int:
    """Find the longest interval of ``node``, if possible in ``window``; -1 where it has none."""
    tree = shown.view.tree
    items = np.zeros(0, np.int64)
    if tree.kind(node) == Kind.NVTX:
        labels = shown.labels
        same = labels.shown[timeline.frame] == tree.frame[node]
        items = np.flatnonzero(same & (timeline.track == Track.RANGES) & highlight.passing)
    if not len(items) and tree.metric.table == "gpu" and len(tree.node_of_group):
        items = np.flatnonzero(_below(tree, timeline, node) & highlight.passing)
    if not len(items):
        return -1
    length = timeline.before[items + 1] - timeline.before[items]
    low = timeline.low[items]
    seen = (low < window.high) & (low + length > window.low)
    return int(items[np.argmax(np.where(seen, length + timeline.whole.length, length))])


def _below(tree: StackTree, timeline: Timeline, node: int) -> Bool:
    """The activities that end at ``node`` or below it, bool[intervals]."""
    within = np.zeros(len(tree), bool)
    within[node : tree.end[node]] = True
    groups = tree.groups_below(within)
    work = np.flatnonzero(timeline.track == Track.WORK)
    below = np.zeros(len(timeline), bool)
    below[work] = groups[timeline.table.groups.of_row[timeline.source[work]]]
    return below
