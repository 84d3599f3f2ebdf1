"""Sum up how near the GPUs of a profile were to their peaks, in numbers and in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.efficiency.by_operator import OperatorRows, by_operator
from flame.core.efficiency.precisions import precisions_of
from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.efficiency.utilization import StepUtilization, step_utilization
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.model.profile import Profile
from flame.core.operators.peaks import DevicePeak
from flame.core.operators.work import OperatorWork
from flame.core.projection.filters import Filter
from flame.core.projection.weights import row_indices
from flame.core.units import format_whole_percent


class WorkSummary(NamedTuple):
    """Hold the work of all that passes some filters: ``counts`` and ``verdict`` have one row.

    ``peaks`` are those of each device of the profile, None where not known; ``precisions`` are the
    types of what is rated, most time first. ``work`` is that of all activities. ``steps`` is None
    without any.
    """

    counts: WorkCounts
    verdict: BoundVerdict
    peaks: tuple[DevicePeak | None, ...]
    precisions: tuple[str, ...]
    operators: OperatorRows
    work: OperatorWork
    steps: StepUtilization | None


def summarize_work(
    profile: Profile, filters: tuple[Filter, ...] = (), rows: I8 | None = None
) -> WorkSummary | None:
    """Sum up the work of what passes ``filters`` on single activities, or of ``rows`` of these.

    None where nothing tells of any.
    """
    chosen = row_indices(profile, profile.activities, filters) if rows is None else rows
    operators, work = count_operators(profile, chosen), profile.work
    if operators is None or work is None:
        return None
    counts = whole_of(profile, operators, chosen)
    return WorkSummary(
        counts,
        BoundVerdict(int(judge(counts)[0])),
        profile.peaks,
        precisions_of(profile, work),
        by_operator(profile, operators),
        work,
        step_utilization(profile),
    )


def headline(summary: WorkSummary) -> str:
    """Say the share of the peak and its coverage: ``52 % of BF16 peak over 25 % of kernel time``.

    Empty where the peak is not known.
    """
    share, coverage = summary.counts.compute_share[0], summary.counts.rated_coverage[0]
    if np.isnan(share) or not summary.precisions:
        return ""
    kind = f"{summary.precisions[0].upper()} " if len(summary.precisions) == 1 else ""
    return (
        f"{format_whole_percent(100 * share)} of {kind}peak "
        f"over {format_whole_percent(100 * coverage)} of kernel time"
    )
