"""Ask the questions about ranks to a summary of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from flame.core.columns import I8, unique
from flame.core.errors import NoMatchError, UsageError
from flame.core.model.metrics import WAIT
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.chosen_metric import chosen_metric
from flame.core.projection.filters import Ranks
from flame.core.projection.levels import recorded_levels
from flame.core.projection.project import empty_tree, project
from flame.core.projection.selection import Selection
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.rank_waits import UNKNOWN
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.core.ranks.communication.clocks import RankClocks
from flame.core.ranks.communication.late import find_late
from flame.core.ranks.communication.matching import Matching, match_table
from flame.core.ranks.communication.waits import causes_of, waits_by_sums
from flame.core.ranks.communication.worst import worst_collectives
from flame.core.ranks.rank_sections.questions import (
    NO_COLLECTIVES,
    ONE_RANK,
    CollectiveCounts,
    LateRanks,
    NotKnown,
    RankQuestions,
    Unmatched,
)
from flame.core.units import format_count

_HOW_TO_MATCH = "record all ranks from the same collective on, or name their groups: --groups"

_AROUND = ("nvtx", "python")
"""What kernels are told by: the first of these levels that is recorded."""


def questions_of(
    summary: RankSummary,
    selection: Selection,
    profile: Profile | None = None,
) -> RankQuestions:
    """Ask about the ranks of ``summary``, one at least, under ``selection``.

    ``profile`` is that of the summary, if it is known. Where the selection names no levels, they
    are ranges (else Python functions) and kernels. Raises UsageError for a selection of ranks, and
    for metrics of which a summary has no sums.
    """
    if not len(summary):
        raise UsageError("the summary has no ranks")
    profile = profile_of(summary) if profile is None else profile
    tree = _tree(profile, with_levels(selection, profile))
    matching = match_table(summary.collectives, len(summary))
    return RankQuestions(
        summary.info,
        tree,
        partial(values_of_ranks, summary, tree),
        left_out(summary, tree.metric.key),
        summary.lost,
        _counts(matching),
        late_ranks(summary, matching),
        why_not_late(summary, matching),
        worst_collectives(summary.collectives, matching) if matching.matched.any() else None,
        clocks_of_summary(summary),
    )


def _counts(matching: Matching) -> CollectiveCounts:
    lacking = (matching.calls - matching.complete).tolist()
    rows = zip(matching.names, lacking, matching.why, strict=True)
    unmatched = tuple(Unmatched(*row) for row in rows if row[1])
    return CollectiveCounts(len(matching.matched), int(matching.matched.sum()), unmatched)


def late_ranks(summary: RankSummary, matching: Matching) -> LateRanks | None:
    """Tell how ranks came to the collectives that are matched; None where none is."""
    if not matching.matched.any():
        return None
    table, rank = summary.collectives, unique(summary.rank)
    causes = causes_of(table, matching, rank)
    found = [one.rank for one in find_late(table, matching, summary.communication)]
    # Where several files say that they are one rank, nobody knows whose it is: the first has it.
    place = np.searchsorted(summary.rank, rank)
    if summary.waits is None:
        waited = waits_by_sums(summary.communication, table, matching, rank)
    else:
        waited = summary.waits.wait[place]
    columns = np.zeros((5, len(summary)), np.int64)
    columns[:, place] = causes.last, causes.caused, waited, causes.by_work, causes.by_idle
    last, caused, waited, by_work, by_idle = columns
    is_late = np.zeros(len(summary), bool)
    is_late[place] = np.isin(rank, found)
    return LateRanks(last, caused, waited, by_work, by_idle, is_late)


def clocks_of_summary(summary: RankSummary) -> RankClocks | None:
    """List the clocks that collectives tell of; None where they tell of none."""
    waits = summary.waits
    if waits is None or not (told := waits.error > UNKNOWN).any():
        return None
    return RankClocks(summary.rank[told], waits.offset[told], waits.error[told], waits.part[told])


def why_not_late(summary: RankSummary, matching: Matching) -> NotKnown:
    """Say why nothing is known of who is late, where nothing is."""
    if len(summary) == 1:
        return ONE_RANK
    if not len(matching.matched):
        return NO_COLLECTIVES
    others = len(matching.names) - 1
    more = f"; and {format_count(others)} more" if others else ""
    why = f"no collective matches over ranks ({matching.names[0]}: {matching.why[0]}{more})"
    return NotKnown(why, _HOW_TO_MATCH)


def with_levels(selection: Selection, profile: Profile) -> Selection:
    """Choose the levels by which ranks are compared, where ``selection`` says none."""
    if any(isinstance(one, Ranks) for one in selection.where):
        raise UsageError("--rank: ranks are compared with all others")
    if selection.levels is not None:
        if "rank" in selection.levels:
            raise UsageError("--levels rank: ranks are what is compared")
        return selection
    metric = chosen_metric(profile, selection.metric)
    recorded = recorded_levels(profile, metric)
    around = next(((level,) for level in _AROUND if level in recorded), ())
    return replace(selection, levels=(*around, "launch" if metric.table == "host" else "kernel"))


def _tree(profile: Profile, selection: Selection) -> StackTree:
    try:
        tree = project(profile, selection)
    except NoMatchError:
        if selection.where:
            raise
        tree = empty_tree(profile, selection)
    if tree.metric.key not in (*METRICS, WAIT.key):
        raise UsageError(f"--metric {tree.metric.key}: ranks have sums of {', '.join(METRICS)}")
    return tree


def left_out(summary: RankSummary, metric: str) -> I8:
    """Compute how much of a rank's ``metric`` is in no cell, i8[ranks]."""
    if metric == WAIT.key:
        return np.zeros(len(summary), np.int64)  # of all groups with collectives there are cells
    row = METRICS.index(metric)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(summary.cell[row])])
    lacking: I8 = summary.rank_total[row] - np.diff(before[summary.cell_start])
    return lacking
