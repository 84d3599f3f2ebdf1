"""Work out how nodes and frames of a tree are spread over the ranks of a summary, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.frame_totals import outermost_by_frame
from flame.core.columns import F8, I4, I8, Bool, run_starts
from flame.core.frame import Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.spread import Spread, block_size, spread_of


@dataclass(frozen=True, eq=False)
class NodeSpread:
    """Hold a `Spread`, and for each of its rows the place of the rank ``farthest`` from the median.

    That is the one with the most or the one with the least, whichever is farther away; -1 where all
    ranks have the same. The straggler of a run has the least in collectives, for which others wait.
    """

    spread: Spread
    farthest: I8

    @property
    def excess(self) -> I8:
        """How much more than the median the worst rank has, i8[rows]."""
        return self.spread.most - self.spread.median

    @property
    def deviation(self) -> F8:
        """How far the farthest rank is above the median, as a part of it; see `Spread`."""
        return self.spread.deviation


def node_spread(values: I8) -> NodeSpread:
    """Work out the spread of ``values``, i8[rows, ranks]."""
    found = spread_of(values)
    above, below = found.most - found.median, found.median - found.least
    farthest = np.where(above >= below, values.argmax(axis=1), values.argmin(axis=1))
    return NodeSpread(found, np.where(np.maximum(above, below) > 0, farthest, -1))


def spread_of_nodes(summary: RankSummary, tree: StackTree) -> NodeSpread:
    """Work out the spread of every node of ``tree``, which is of all ranks of ``summary``."""
    nodes = np.arange(len(tree))
    return _joined(_spreads(summary, tree, nodes, nodes))


def spread_of_frames(summary: RankSummary, tree: StackTree, frames: I4) -> NodeSpread:
    """Work out the same of ``frames``, ascending, at all their places; recursion counts once."""
    nodes, frame = outermost_by_frame(tree)
    chosen = np.isin(frame, frames)
    return _joined(_spreads(summary, tree, nodes[chosen], frame[chosen]))


def same_nodes(tree: StackTree, other: StackTree) -> I8:
    """Find for each node of ``tree`` the one of ``other`` with the same path, -1 of none; i8[n].

    Both are of one trace; of frames that stand for smaller ones nobody knows what they have in
    common.
    """
    found = np.full(len(tree), -1)
    if tree.frames is not other.frames:
        return found
    found[0] = 0
    size, smaller = len(tree.frames), _smaller(tree)
    for mine, others in zip(tree.rows[1:], other.rows[1:], strict=False):
        key = other.parent[others].astype(np.int64) * size + other.frame[others]
        order = np.argsort(key)
        wanted = found[tree.parent[mine]] * size + tree.frame[mine]
        at = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
        place = others[order[at]]
        fits = (key[order[at]] == wanted) & (found[tree.parent[mine]] >= 0)
        found[mine] = np.where(fits & ~smaller[tree.frame[mine]], place, -1)
    return found


def _smaller(tree: StackTree) -> Bool:
    """Mark the frames that stand for smaller ones, bool[frames]."""
    marked = np.zeros(len(tree.frames), bool)
    for frame in np.unique(tree.frame).tolist():
        marked[frame] = tree.frames[frame].kind == Kind.REST
    return marked


def _spreads(summary: RankSummary, tree: StackTree, nodes: I8, key: I8) -> Iterator[NodeSpread]:
    """The spread of the sums of ``nodes`` with the same ``key``, by key, a block at a time."""
    size = block_size(len(summary))
    begun: I8 | None = None
    for at in range(0, len(nodes), size):
        values = values_of_ranks(summary, tree, nodes[at : at + size])
        keys = key[at : at + size]
        sums = np.add.reduceat(values, run_starts(keys), axis=0)
        if begun is not None and key[at - 1] == keys[0]:
            sums[0] += begun[0]
        elif begun is not None:
            yield node_spread(begun)
        if len(sums) > 1:
            yield node_spread(sums[:-1])
        begun = sums[-1:].copy()
    if begun is not None:
        yield node_spread(begun)


def _joined(parts: Iterator[NodeSpread]) -> NodeSpread:
    """The rows of all ``parts``, of which there is one at least."""
    found = [*parts]
    first = found[0].spread
    names = ("total", "least", "median", "p95", "most", "there", "worst")
    columns = (np.concatenate([getattr(one.spread, name) for one in found]) for name in names)
    return NodeSpread(
        Spread(first.ranks, *columns), np.concatenate([one.farthest for one in found])
    )
