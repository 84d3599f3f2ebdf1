"""Collect what tells whether two summaries of ranks can be compared, and are the same."""

from __future__ import annotations

from collections import Counter

import numpy as np

from flame.core.compare.comparison import Comparison
from flame.core.model.frames import Kind
from flame.core.projection.number_folds import labels_of
from flame.core.projection.project import shown_profile
from flame.core.projection.weights import weigh_groups
from flame.core.rank_summary.summary import RankSummary
from flame.core.units import format_counted


def gpu_times(comparison: Comparison, at: int) -> tuple[Counter[str], int]:
    """(GPU time by name, number of graphs traced as a whole) of a summary, as far as it passes."""
    run, tree = comparison.sides.runs[at], comparison.trees[at]
    selection = run.selection(comparison.selection)
    profile = shown_profile(run.profile, selection)
    table, found = profile.activities, Counter[str]()
    weights = weigh_groups(profile, tree.metric, selection.where)
    shown = np.flatnonzero(tree.node_of_group >= 0)
    text = labels_of(profile, selection.naming, table).text
    times = profile.gpu_by_group[0][shown]
    for frame, time in zip(table.groups.frame[shown].tolist(), times.tolist(), strict=True):
        found[text[frame]] += time
    graphs = shown[table.groups.kind[shown] == Kind.GRAPH]
    return found, int(weights.activities[graphs].sum())


def gpus_of_a_rank(summary: RankSummary) -> int:
    """How many GPUs a rank of ``summary`` ran on, at most."""
    return max((len(one.gpus) for one in summary.info), default=0)


def models_of(summary: RankSummary) -> frozenset[str]:
    """The names of the GPUs that the ranks ran on."""
    return frozenset(name for one in summary.info for name in one.gpus if name)


def lost_words(summary: RankSummary) -> list[str]:
    """Say how many files could not be read, and why the first could not; nothing where none."""
    if not summary.lost:
        return []
    first, number = summary.lost[0], format_counted(len(summary.lost), "file", "files")
    return [f"{number} of ranks could not be read, such as {first.path}: {first.reason}"]


def are_same(summary: RankSummary, other: RankSummary) -> bool:
    """Tell whether ranks have the same sums, lengths, steps and waits, whenever they ran."""
    return _rows(summary) == _rows(other) and all(
        np.array_equal(*pair) for pair in zip(_columns(summary), _columns(other), strict=True)
    )


def _rows(summary: RankSummary) -> list[tuple[object, ...]]:
    infos = summary.info
    return [(one.rank, one.end - one.begin, one.step_numbers, one.step_times) for one in infos]


def _columns(summary: RankSummary) -> list[np.ndarray]:
    waits = () if summary.waits is None else summary.waits.wait
    of_ranks = (summary.cell_start, summary.cell_group, summary.cell, summary.rank_total)
    return [summary.group_hash, *of_ranks, np.array(waits, np.int64)]
