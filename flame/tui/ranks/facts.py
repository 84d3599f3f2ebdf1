"""Work out how the selected frame is spread over ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.sandwich import outermost_places
from flame.core.columns import I8
from flame.core.lazy_dataclass import dataclass
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.ranks.node_spread import NodeSpread, node_spread
from flame.tui.ranks.session import RanksProjection
from flame.tui.ranks.waiting import waiting_of
from flame.tui.session.carry import same_frame
from flame.tui.session.tree_view import TreeView


class RankSubject(NamedTuple):
    """The frame selected in ``view``: at its place in the tree, or at all places of its name."""

    shown: RanksProjection
    view: TreeView
    node: int

    @property
    def key(self) -> tuple[int, int, int]:
        return self.shown.view.number, self.view.number, self.node

    @property
    def nodes(self) -> I8:
        """The nodes of all ranks' tree that are meant; none where that has no such frame."""
        tree, own = self.shown.of_all.view.tree, self.view.tree
        if self.view is not self.shown.view:
            frame = same_frame(own, int(own.frame[self.node]), tree)
            return outermost_places(tree, frame) if frame >= 0 else np.zeros(0, np.int64)
        if tree is own:
            return np.array([self.node])
        names = own.names(self.node)
        node = tree.find(names)
        return np.array([node] if len(tree.names(node)) == len(names) else [], np.int64)


@dataclass(frozen=True, eq=False)
class RankFacts:
    """Say what each rank has of a frame, ``values`` i8[ranks], and how these are ``spread``.

    ``total`` is the exact sum over all ranks: more than that of ``values`` where a summary has kept
    only what is large in each rank. ``rank`` says how the rank that is shown alone came to
    collectives, as labelled values.
    """

    values: I8
    spread: NodeSpread
    total: int
    rank: tuple[tuple[str, str], ...] = ()

    @property
    def mean(self) -> float:
        """The exact mean over ranks."""
        return self.total / len(self.values)

    @property
    def is_whole(self) -> bool:
        """Whether all of the frame is known of each rank."""
        return int(self.values.sum()) == self.total

    def deviation_of(self, place: int) -> float:
        """How far the rank at ``place`` is above the median, as a part of it."""
        median = int(self.spread.spread.median[0])
        own = int(self.values[place])
        return (own - median) / median if median else float("inf" if own else "nan")


def rank_facts(subject: RankSubject) -> Iterator[RankFacts | None]:
    """Work out the facts of ``subject``; None where ranks cannot be compared in it."""
    whole, nodes = subject.shown.of_all, subject.nodes
    if not whole.can_compare or not len(nodes):
        yield None
        return
    tree, summary = whole.view.tree, whole.summary
    values = values_of_ranks(summary, tree, nodes).sum(axis=0)
    total, places = int(tree.total[nodes].sum()), subject.shown.places or ()
    waited = tuple(waiting_of(summary).rows(places[0])) if len(places) == 1 else ()
    yield RankFacts(values, node_spread(values[None, :]), total, waited)
