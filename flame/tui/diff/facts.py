"""Work out how long each activity of a frame took on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distribution, distribution
from flame.core.analysis.node_activities import NodeActivities
from flame.core.columns import F8, I8
from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import BASE, NEW, KeptRun, Run
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.tui.diff.rank_facts import DiffRankFacts, rank_facts
from flame.tui.diff.sampled.facts import SidesSampled
from flame.tui.session.wording import lasts

BINS = 48
_WIDE = 10
"""From this ratio of largest to smallest on, equal steps would heap most values in one bin."""


@dataclass(frozen=True, eq=False)
class TwoHistograms:
    """Count the durations of both sides by size, i8[bins] each, from ``low`` to ``high`` ns."""

    base: I8
    new: I8
    low: int
    high: int
    log: bool


class SideFacts(NamedTuple):
    """Say how long each took on both sides: None of a side that has none, or ``lacks`` them.

    ``lacks`` says of both why no single activities are known; empty where they are. Of summaries
    of ranks ``ranks`` says what ranks have, ``sampled`` what PC samples tell.
    """

    base: Distribution | None = None
    new: Distribution | None = None
    histograms: TwoHistograms | None = None
    lacks: tuple[str, str] = ("", "")
    ranks: DiffRankFacts | None = None
    sampled: SidesSampled | None = None


def side_facts(comparison: Comparison, nodes: I8) -> Iterator[SideFacts]:
    """Work out the facts of ``nodes`` of the union, none of which is below another."""
    if (ranks := rank_facts(comparison, nodes)) is not None:
        yield SideFacts(histograms=two_histograms(*ranks.values), ranks=ranks)
        return
    values = [_durations(comparison, nodes, side) for side in (BASE, NEW)]
    base, new = map(distribution, values)
    both = base is not None and new is not None
    histograms = two_histograms(*values) if both else None
    yield SideFacts(base, new, histograms, (_lack(comparison, BASE), _lack(comparison, NEW)))


def _lack(comparison: Comparison, side: int) -> str:
    """Why nothing is known of single activities of any run of ``side``; empty where it is."""
    runs = [*comparison.sides][side]
    if any(run.has_rows for run in runs):
        return ""
    if runs[0].summary is not None:
        return "in sums of ranks alone"
    return "kept as sums alone" if isinstance(runs[0], KeptRun) else "stacks alone"


def two_histograms(base: I8, new: I8) -> TwoHistograms | None:
    """Count ``base`` and ``new`` (none empty) on one axis; None where all values are equal."""
    low, high = int(min(base.min(), new.min())), int(max(base.max(), new.max()))
    if low == high:
        return None
    log = high >= max(low, 1) * _WIDE
    edges = np.geomspace(max(low, 1), high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    return TwoHistograms(_counts(base, edges), _counts(new, edges), low, high, log)


def _counts(values: I8, edges: F8) -> I8:
    """Count ``values`` between ``edges``; what is below the first one is in the first bin."""
    return np.bincount(np.searchsorted(edges[1:-1], values, "right"), minlength=BINS)


def _durations(comparison: Comparison, nodes: I8, side: int) -> I8:
    found = [np.zeros(0, np.int64)]
    of_runs = zip(
        comparison.sides.side_of_run,
        comparison.sides.runs,
        comparison.trees,
        comparison.union.node,
        strict=True,
    )
    for at, (of, run, tree, place) in enumerate(of_runs):
        if of == side and _has_rows(run, tree):
            members = _members(comparison)[at]
            values = tree.metric.values(run.profile.table(tree.metric))
            own = np.flatnonzero(np.isin(place, nodes)).tolist()
            found += [values[members.below(node)] for node in own]
    return np.concatenate(found)


def _has_rows(run: Run, tree: StackTree) -> bool:
    """Whether there are single activities, each with a time of its own."""
    return lasts(tree.metric) and run.has_rows


@kept
def _members(comparison: Comparison) -> dict[int, NodeActivities]:
    """The activities below every node of each run's own tree, by the place of the run."""
    runs, trees = comparison.sides.runs, comparison.trees
    return {
        at: NodeActivities.from_tree(run.profile, tree, run.selection(comparison.selection).where)
        for at, (run, tree) in enumerate(zip(runs, trees, strict=True))
        if _has_rows(run, tree)
    }
