"""Summaries of ranks to compare: generated runs with planted faults, and parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from flame.core.compare.sides import Sides, runs_of
from flame.core.loading.many import load
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.summary import RankSummary
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import waits_of
from flame.core.ranks.summarise import RankPart, summarise
from tests.support.ranks import rank_traces


def rank_parts(
    folder: Path,
    ranks: int = 16,
    seed: int = 1,
    *,
    steps: int = 4,
    slower: Mapping[str, float] | None = None,
    renamed: Mapping[str, str] | None = None,
    straggles: float = rank_traces.SLOWER,
    straggler: int | None = None,
    odd: int | None = None,
) -> list[RankPart]:
    """Make a run of `write_ranks`: of each rank its summary, and its arrivals at collectives.

    Kernels are ``slower`` on all ranks, or ``renamed``, by name; ``straggles`` is how much slower
    the `mlp` of the ``straggler`` is.
    """
    factor, called = slower or {}, renamed or {}
    kernels = [
        (called.get(name, name), round(usual * factor.get(name, 1)), module)
        for name, usual, module in rank_traces.KERNELS
    ]
    with (
        patch.object(rank_traces, "KERNELS", tuple(kernels)),
        patch.object(rank_traces, "SLOWER", straggles),
    ):
        run = rank_traces.write_ranks(folder, ranks, steps, 2, seed, straggler=straggler, odd=odd)
    return [summarise(load(path), path) for path in run.paths]


def summed_up(parts: Sequence[RankPart]) -> RankSummary:
    """Merge ``parts``, and measure how long each rank waited for the others."""
    whole = merge_summaries([part.summary for part in parts])
    matching = match_table(whole.collectives, len(whole))
    arrivals = [one for part in parts for one in part.arrivals]
    return with_waits(whole, [waits_of(one, whole.collectives, matching) for one in arrivals])


def sides_of(base: RankSummary, new: RankSummary) -> Sides:
    """Put two summaries side by side."""
    return Sides(runs_of("BASE", [profile_of(base)]), runs_of("NEW", [profile_of(new)]))
