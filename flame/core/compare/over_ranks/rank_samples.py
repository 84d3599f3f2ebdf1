"""Look up what each rank has of nodes of a comparison of summaries, on its basis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8
from flame.core.compare.basis import Basis
from flame.core.compare.comparison import Comparison
from flame.core.projection.filters import Ranks
from flame.core.rank_summary.opened import is_split
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.ranks.rank_sections.of_summary import left_out

FEWEST_RANKS = 2
"""Ranks that each side needs: one has no spread."""


def why_no_spread(comparison: Comparison) -> str:
    """Say why the ranks of both sides tell nothing; empty where they do."""
    sides, selection = comparison.sides, comparison.selection
    if not sides.are_summaries:
        traces = [run.label for run in sides.runs if run.summary is None]
        return f"{traces[0]} is no summary of ranks"
    if any(isinstance(one, Ranks) for one in selection.where) or any(
        isinstance(one, Ranks) for run in sides.runs for one in run.where
    ):
        return "some of the ranks alone tell no spread of all"
    if "rank" in (selection.levels or ()) or any(is_split(run.profile) for run in sides.runs):
        return "each rank stands by itself"
    if comparison.basis.kind == "activity":
        return "means of activities are not known by rank"
    if comparison.metric.key not in METRICS:
        return f"{comparison.metric.title} is not compared over ranks"
    fewest = min(sum(len(run.summary or ()) for run in side) for side in sides)
    return f"fewer than {FEWEST_RANKS} ranks a side" if fewest < FEWEST_RANKS else ""


class RankSamples(NamedTuple):
    """Hold what ranks have of nodes on the basis of a comparison: f8[k, ranks] of each side.

    Each value may be as much as ``unsure`` f8[k] more, of both sides together: small values have
    been left out of summaries.
    """

    base: F8
    new: F8
    unsure: F8


def rank_samples(comparison: Comparison, nodes: I8) -> RankSamples:
    """Look up what all ranks have of ``nodes`` of the union; `why_no_spread` must be empty."""
    found, unsure = list[F8](), np.zeros(len(nodes))
    for at in range(len(comparison.sides.runs)):
        values = rank_values(comparison, at, nodes)
        scale = _scale(comparison, at, values.shape[1])
        scaled: F8 = values * scale
        found.append(scaled)
        unsure += _lacking(comparison, at, nodes, values) * float(scale.max(initial=0))
    split = len(comparison.sides.base)
    base, new = (np.concatenate(some, axis=1) for some in (found[:split], found[split:]))
    return RankSamples(base, new, unsure)


def rank_values(comparison: Comparison, at: int, nodes: I8) -> I8:
    """Look up what each rank of the run ``at`` that place has of ``nodes``, i8[k, ranks].

    It is as recorded; what a summary has left out of a rank is lacking.
    """
    summary, tree, place = (
        summary_at(comparison, at),
        comparison.trees[at],
        comparison.union.node[at],
    )
    wanted = np.full(len(comparison.union), -1, np.int64)
    wanted[nodes] = np.arange(len(nodes))
    # Siblings that were merged have what is below them in the same node.
    outermost = np.append(True, place[1:] != place[tree.parent[1:]])
    own = np.flatnonzero((wanted[place] >= 0) & outermost)
    values = values_of_ranks(summary, tree, own)
    found = np.zeros((len(nodes), len(summary)), np.int64)
    np.add.at(found, wanted[place[own]], values)
    return found


def summary_at(comparison: Comparison, at: int) -> RankSummary:
    """Return the summary that the run ``at`` that place is."""
    summary = comparison.sides.runs[at].summary
    assert summary is not None
    return summary


def ranks_of_side(comparison: Comparison, side: int) -> I8:
    """List the numbers of the ranks of a side, run by run."""
    places = np.flatnonzero(np.array(comparison.sides.side_of_run) == side)
    return np.concatenate([summary_at(comparison, at).rank for at in places.tolist()])


def _scale(comparison: Comparison, at: int, ranks: int) -> F8:
    """What values of each rank are multiplied by: their mean is that of the basis then."""
    basis: Basis = comparison.basis
    if basis.kind != "share":
        return np.full(ranks, ranks / basis.divisor[at])
    own = rank_values(comparison, at, np.zeros(1, np.int64))[0]
    shares: F8 = np.divide(100.0, own, out=np.zeros(len(own)), where=own > 0)
    return shares


def _lacking(comparison: Comparison, at: int, nodes: I8, values: I8) -> F8:
    """How much more a rank may have of ``nodes`` than its cells say, f8[k]."""
    most = left_out(summary_at(comparison, at), comparison.metric.key).max(initial=0)
    lacking = comparison.union.total[at, nodes] - values.sum(axis=1)
    unsure: F8 = np.minimum(lacking, most).astype(np.float64)
    return unsure
