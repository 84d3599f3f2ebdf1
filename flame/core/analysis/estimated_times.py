"""Estimate how long activities of summed-up ranks were, of which only histograms are kept."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.distribution import Distribution, Histogram, count_in_bins
from flame.core.analysis.frame_totals import PERCENTS, Percentiles, outermost_by_frame
from flame.core.columns import I4, I8, Bool, Column, distinct, expand_ranges, order_by, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.rank_summary.duration_histogram import BINS, middle_of
from flame.core.rank_summary.opened import is_split, summary_of, table_groups

_BY_TIME = ("gpu", "host")
"""Metrics whose values are durations."""


@dataclass(frozen=True, eq=False)
class _Bins:
    """Hold bins by the node of ``tree`` where their groups end, those of each node from its bound.

    ``longest`` is that of the group of each.
    """

    bin: Column
    count: I8
    longest: I8
    bounds: I8


def _bins(profile: Profile, tree: StackTree) -> _Bins | None:
    summary = summary_of(profile)
    if summary is None or is_split(profile):
        return None
    node_of = np.full(len(summary.group_hash), -1, np.int64)
    node_of[table_groups(summary, tree.metric.table == "host")] = tree.node_of_group
    node = node_of[summary.bin_group]
    rows = np.flatnonzero(node >= 0)
    rows = rows[order_by([node[rows]])]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(node[rows], minlength=len(tree)))])
    longest = summary.longest[summary.bin_group[rows]]
    return _Bins(summary.bin[rows], summary.bin_count[rows], longest, bounds)


def estimate_percentiles(profile: Profile, tree: StackTree, frames: I4) -> Percentiles:
    """Estimate percentiles of durations below ``frames`` (ascending) of a summary's ``tree``.

    All are 0 where the metric is no duration, or not all ranks are shown: histograms are of all.
    """
    bins = _bins(profile, tree) if tree.metric.key in _BY_TIME else None
    if bins is None:
        none = np.zeros(len(frames), np.int64)
        return Percentiles(none, none, none, none, estimated=True)
    first, frame = outermost_by_frame(tree)
    wanted = np.isin(frame, frames)
    low, high = (bins.bounds[at[wanted]] for at in (first, tree.end[first]))
    place = np.repeat(np.searchsorted(frames, frame[wanted]), high - low)
    pairs = expand_ranges(low, high - low)
    keys, at = distinct(place * BINS + bins.bin[pairs] + 1)
    count = sum_by(at, bins.count[pairs], len(keys))
    of_frame, size = keys // BINS, len(frames)
    reach, whole = np.cumsum(count), sum_by(of_frame, count, size)
    before = np.cumsum(whole) - whole
    maximum = np.zeros(size, np.int64)
    np.maximum.at(maximum, place, bins.longest[pairs])
    found = [
        reach.searchsorted(before + np.maximum((whole * percent + 99) // 100, 1))
        for percent in PERCENTS
    ]
    middle = np.append(np.rint(middle_of(keys % BINS - 1)).astype(np.int64), 0)
    p50, p95, p99 = (np.where(whole, np.minimum(middle[one], maximum), 0) for one in found)
    return Percentiles(p50, p95, p99, maximum, estimated=True)


@dataclass(frozen=True, eq=False)
class EstimatedTimes:
    """Hold how long activities were, as far as histograms tell: a number of them at each value."""

    total: int
    minimum: int
    maximum: int
    value: I8
    count: I8

    @property
    def distribution(self) -> Distribution:
        """Their percentiles, estimated; the number, the sum and both ends are exact."""
        reach = np.cumsum(self.count)
        whole = int(reach[-1])
        p50, p95, p99 = (
            int(self.value[reach.searchsorted(max((whole * percent + 99) // 100, 1))])
            for percent in PERCENTS
        )
        low, high = self.minimum, self.maximum
        return Distribution(whole, self.total, low, p50, p95, p99, high, estimated=True)

    def histogram(self, bins: int) -> Histogram | None:
        """Count them in so many ``bins``; None where all are equal."""
        return count_in_bins(self.value, self.count, self.minimum, self.maximum, bins)


def estimate_times(profile: Profile, tree: StackTree, inside: Bool) -> EstimatedTimes | None:
    """Estimate how long the activities of the groups ``inside`` (bool[groups]) were.

    None where not all ranks of a
    summary are shown, where the metric of ``tree`` is another time, and of no activities.
    """
    summary = summary_of(profile)
    if summary is None or is_split(profile) or tree.metric.key not in (*_BY_TIME, "count"):
        return None
    groups = table_groups(summary, tree.metric.table == "host")[inside]
    marked = np.zeros(len(summary.group_hash), bool)
    marked[groups] = True
    mine = marked[summary.bin_group]
    bins, at = distinct(summary.bin[mine].astype(np.int64))
    if not len(bins):
        return None
    count = sum_by(at, summary.bin_count[mine], len(bins))
    low, high = int(summary.shortest[groups].min()), int(summary.longest[groups].max())
    metric = metric_of("host" if tree.metric.table == "host" else "gpu")
    total = int(profile.totals_by_group(metric)[0][inside].sum())
    value = np.clip(np.rint(middle_of(bins)).astype(np.int64), low, high)
    return EstimatedTimes(total, low, high, value, count)
