"""Weigh the groups of activities by a metric, under the filters on activities."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Column
from flame.core.errors import UsageError
from flame.core.model.activities import Activities
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.projection.filters import (
    Devices,
    Filter,
    GroupFilter,
    Pids,
    Steps,
    Streams,
    Tids,
    Time,
    passing_rows,
)
from flame.core.projection.selection import Selection


class Weights(NamedTuple):
    """Hold the value and the number of activities of each group, or stack; i8 each."""

    value: Column
    activities: Column

    def take(self, rows: Column) -> Weights:
        """Take the weights of ``rows`` (indices or a mask)."""
        return Weights(self.value[rows], self.activities[rows])


def weigh_groups(profile: Profile, metric: Metric, filters: tuple[Filter, ...]) -> Weights:
    """Weigh every group of the metric's table; those not passing ``filters`` weigh 0."""
    table = profile.table(metric)
    value, count = profile.totals_by_group(metric, row_indices(profile, table, filters))
    for filter_ in filters:
        if isinstance(filter_, GroupFilter):
            passing = filter_.groups(profile, table)
            value, count = np.where(passing, value, 0), np.where(passing, count, 0)
    return Weights(value, count)


_NOT_IN_SUMMARY = (Time, Steps, Devices, Streams, Pids, Tids)


def check_rows(profile: Profile, selection: Selection) -> None:
    """Raise UsageError for what a summary of ranks cannot tell; it names the file of one rank."""
    ranks = profile.ranks
    if ranks is None:
        return
    options = [_option(one) for one in selection.where if isinstance(one, _NOT_IN_SUMMARY)]
    if selection.layout.order == "start":
        options.append("--sort start")
    if options:
        own = profile.sources if len(profile.sources) > 1 else ranks.sources
        raise UsageError(
            f"{options[0].split()[0]}: a summary of ranks has sums only; open a rank's own file: "
            f"flame view {shlex.quote(own[0].meta.path)} {' '.join(options)}"
        )


def _option(filter_: Filter) -> str:
    from flame.core.projection.filter_options import format_filter, kind_of

    return f"{kind_of(type(filter_)).option} {format_filter(filter_)}"


def row_indices(profile: Profile, table: Activities, filters: tuple[Filter, ...]) -> I8 | None:
    """Find the rows of ``table`` that pass the row filters in ``filters``; None stands for all."""
    passing = passing_rows(profile, table, filters)
    return None if passing is None else np.flatnonzero(passing)
