"""Gather what the sections on ranks are worked out from, each answer once."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.frame import PART_KINDS, Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.grouping import category_of_frame
from flame.core.model.tree import StackTree
from flame.core.names.kernel_category import COMMUNICATION
from flame.core.rank_summary.summary import LostRank, RankInfo
from flame.core.ranks.communication.clocks import RankClocks
from flame.core.ranks.communication.worst import WorstCollectives
from flame.core.ranks.only_some import OnlySome, find_only_some
from flame.core.ranks.outliers import Outliers, find_outliers, without_collectives
from flame.core.ranks.spread import Spread, ValuesOf, blocks, spread_of, widest
from flame.core.ranks.steps import SlowestRank, StepSpread, find_slowest, step_spread
from flame.core.report.table import Unit

MOST_FRAMES = 1_000
"""Frames whose spread is worked out, the widest."""


class Unmatched(NamedTuple):
    """Say why collectives of a communicator are not matched over its ranks, and how many."""

    communicator: str
    calls: int
    why: str


class CollectiveCounts(NamedTuple):
    """Count collectives: ``matched`` ones are on all ranks of their communicator, of one kind."""

    number: int = 0
    matched: int = 0
    unmatched: tuple[Unmatched, ...] = ()


class NotKnown(NamedTuple):
    """Say ``why`` something is not known of ranks, and ``how`` it would be."""

    why: str
    how: str


ALL_RANKS = "name the files of all ranks"
NO_COLLECTIVES = NotKnown("no collectives were recorded", "record NCCL's kernels of all ranks")
ONE_RANK = NotKnown("there is one rank alone", ALL_RANKS)


class LateRanks(NamedTuple):
    """Say how ranks came to collectives, i8[ranks] each, in ns but for ``last``.

    ``last`` counts the collectives to which the rank came last, ``caused`` is how long others
    waited in these, and ``waited`` how long it waited itself, -1 where that is not known.
    ``by_work`` and ``by_idle`` are how much longer than others its GPU worked and was idle before
    it came last. ``is_late`` are the ranks that are late beyond chance and cause enough to be told,
    bool[ranks].
    """

    last: I8
    caused: I8
    waited: I8
    by_work: I8
    by_idle: I8
    is_late: Bool


@dataclass(frozen=True, eq=False)
class RankQuestions:
    """Hold ranks that were read, at least one, and a tree of what they did.

    ``values_of`` looks up what each rank has of the nodes of ``tree``. Small values may have been
    left out: of a rank at most ``left_out`` i8[ranks], in all what the tree has more. ``late`` and
    ``worst`` are None where no collective matches, and ``not_late`` says why; ``clocks`` where no
    rank knows the time of day.
    """

    info: tuple[RankInfo, ...]
    tree: StackTree
    values_of: ValuesOf
    left_out: I8
    lost: tuple[LostRank, ...] = ()
    collectives: CollectiveCounts = CollectiveCounts()
    late: LateRanks | None = None
    not_late: NotKnown = NO_COLLECTIVES
    worst: WorstCollectives | None = None
    clocks: RankClocks | None = None

    @property
    def ranks(self) -> int:
        """How many ranks were read."""
        return len(self.info)

    @cached_property
    def gpu_times(self) -> I8:
        """The metric of each rank, i8[ranks]: that of the root."""
        times: I8 = self.values_of(np.zeros(1, np.int64))[0]
        return times

    @cached_property
    def widest(self) -> I8:
        """The nodes with the most, `MOST_FRAMES` at most, the widest first."""
        return widest(self.tree.total, MOST_FRAMES)

    @cached_property
    def spread(self) -> Spread:
        """The spread of the `widest` nodes."""
        parts = [spread_of(self.values_of(block)) for block in blocks(self.widest, self.ranks)]
        names = [each.name for each in fields(Spread) if each.name != "ranks"]
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Spread(self.ranks, **columns)

    @cached_property
    def outliers(self) -> Outliers:
        """The frames that take some ranks far longer."""
        tree, collective = self.tree, collective_nodes(self.tree)
        own = np.where(collective, tree.total, 0)
        before = np.concatenate([[0], np.cumsum(own)])
        inside = np.maximum.accumulate(np.where(collective, tree.end, 0)) > np.arange(len(tree))
        return find_outliers(
            without_collectives(self.values_of, tree.end, collective),
            np.where(inside, 0, tree.total - (before[tree.end] - before[:-1])),
            tree.end,
            self.gpu_times,
            int(self.left_out.max(initial=0)),
        )

    @cached_property
    def only_some(self) -> OnlySome:
        """The leaves that only some ranks have.

        That one has no waiting below a collective says no more than that it came last.
        """
        parts = np.isin(self.tree.frames.kind, PART_KINDS)[self.tree.frame]
        total = np.where(parts, 0, self.tree.total)
        return find_only_some(self.values_of, total, self.tree.end, self.ranks)

    @cached_property
    def steps(self) -> StepSpread:
        """The steps of the ranks."""
        return step_spread(
            [one.step_numbers for one in self.info], [one.step_times for one in self.info]
        )

    @cached_property
    def slowest(self) -> SlowestRank | None:
        """The rank that is most often the slowest of a step."""
        return find_slowest(self.steps, self.ranks)

    @property
    def unit(self) -> Unit:
        """What the values are in, as columns of tables have it."""
        unit = self.tree.metric.unit
        return "ns" if unit == "ns" else "bytes" if unit == "bytes" else "count"

    def path_of(self, node: int) -> str:
        """Write the path of a node in the tree."""
        return " / ".join(self.tree.names(node)) or "all"

    def rank_name(self, place: int) -> str:
        """Name the rank at a place."""
        return f"rank {self.info[place].rank}"

    def numbers(self, places: I8 | Bool) -> list[int]:
        """The numbers of ranks at places, or of those marked."""
        chosen = np.flatnonzero(places) if places.dtype == bool else places
        return [self.info[at].rank for at in chosen.tolist()]


def collective_nodes(tree: StackTree) -> Bool:
    """Tell which nodes are collectives, bool[nodes], of nested ones the outermost."""
    frames = np.unique(tree.frame)
    chosen = [at for at in frames.tolist() if _is_collective(tree, at)]
    return tree.outermost(np.isin(tree.frame, chosen))


def _is_collective(tree: StackTree, frame: int) -> bool:
    one = tree.frames[frame]
    if one.kind == Kind.CATEGORY:
        return one.name == COMMUNICATION
    return one.kind == Kind.KERNEL and category_of_frame(one) == COMMUNICATION
