"""Find the code that captured the nodes of replayed CUDA graphs.

A kernel of a graph was launched by ``cudaGraphLaunch``, far from the layer that created it. Its
node was cloned, possibly several times, from the node made during stream capture; the NVTX ranges
open on the capturing thread at that moment are the ones its author means.
"""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Column, pack, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.launches import CaptureTimes
from flame.core.model.raw import RawActivities, RawGraphNodes


@dataclass(frozen=True)
class NodeCaptures:
    """Hold where the node of each activity was captured: ``thread`` (-1 unknown) and time.

    ``row`` is that of `RawGraphNodes`, -1 where it is not known.
    """

    thread: I8
    time: I8
    row: I8


def find_captures(activities: RawActivities, nodes: RawGraphNodes) -> NodeCaptures:
    """Find captures: follow each activity's node to the node made by stream capture.

    Keyed by (process, node id). Missing rows, conflicting rows for one node, and cycles leave the
    activity without a capture: it is counted, never guessed.
    """
    replayed = np.flatnonzero(activities.graph_node >= 0)
    thread = np.full(len(activities.start), -1, np.int64)
    time = np.zeros(len(activities.start), np.int64)
    row = np.full(len(thread), -1)
    rows = _distinct_rows(nodes)
    if len(replayed) and len(rows):
        root = _roots(nodes, rows, activities.process[replayed], activities.graph_node[replayed])
        captured = root >= 0
        thread[replayed[captured]] = nodes.thread[root[captured]]
        time[replayed[captured]] = nodes.start[root[captured]]
        row[replayed[captured]] = root[captured]
    return NodeCaptures(thread, time, row)


def capture_times(activities: RawActivities, nodes: RawGraphNodes) -> CaptureTimes:
    """Tell where the nodes of ``activities`` were captured, for all of them."""
    found = find_captures(activities, nodes)
    return CaptureTimes(found.thread.astype(np.int32), found.time)


def _distinct_rows(nodes: RawGraphNodes) -> I8:
    """Rows of nodes that are described in one way only (exact repeats are fine)."""
    columns: list[Column] = [nodes.process, nodes.node, nodes.original, nodes.start, nodes.thread]
    first, _ = unique_rows(columns)
    _, kind = unique_rows([nodes.process[first], nodes.node[first]])
    alone = np.bincount(kind)[kind] == 1
    rows: I8 = first[alone]
    return rows


def _roots(nodes: RawGraphNodes, rows: I8, process: Column, node: Column) -> I8:
    """The capture row each (process, node) descends from, or -1."""
    above = _lookup(nodes, rows, nodes.process[rows], nodes.original[rows])
    is_root = nodes.original[rows] < 0
    # Pointer doubling: after k rounds a pointer has jumped 2**k clones; a cycle never ends.
    jump = np.append(np.where(is_root, np.arange(len(rows)), above), -1)
    for _ in range(max(len(rows), 1).bit_length()):
        jump = jump[jump]
    ends = np.append(is_root, False)[jump]
    start = _lookup(nodes, rows, process, node)
    last = np.where(ends, jump, -1)[start]
    return np.append(rows, -1)[last]


def _lookup(nodes: RawGraphNodes, rows: I8, process: Column, node: Column) -> I8:
    """Place among ``rows`` of each (process, node); -1 where there is none."""
    keys = pack(
        [
            np.concatenate([nodes.process[rows], process]),
            np.concatenate([nodes.node[rows], node]),
        ]
    )
    have, want = keys[: len(rows)], keys[len(rows) :]
    order = np.argsort(have, kind="stable")
    place = np.minimum(np.searchsorted(have[order], want), len(have) - 1)
    return np.where(have[order][place] == want, order[place], -1)
