"""Projection, the heart: choose and order levels, filter, weigh, and build the stack tree."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8
from flame.core.errors import NoMatchError
from flame.core.model.activities import Activities
from flame.core.model.metrics import Metric, metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import Arrangement, StackTree
from flame.core.projection.absent import absences
from flame.core.projection.filters import Filter, GroupFilter, MinShare, passing_rows
from flame.core.projection.labels import Naming
from flame.core.projection.level_columns import arranged, filtered
from flame.core.projection.levels import (
    check_levels,
    default_levels,
    parse_levels,
)
from flame.core.projection.sample_split import Weighed, Weights, weighed
from flame.core.projection.tree_builder import Breadth, grow, in_preorder, merge_smaller

_LATEST = np.iinfo(np.int64).max


def project(
    profile: Profile,
    levels: str | tuple[str, ...] | None = None,
    where: tuple[Filter, ...] = (),
    metric: str | None = None,
    naming: Naming | None = None,
    arrangement: Arrangement | None = None,
) -> StackTree:
    """The stack tree of ``profile`` under ``levels``, of what passes all filters in ``where``.

    The order of the filters does not matter: those on activities choose first, then those on
    stacks, which see all of a stack as it is shown from the root down (so collapsing and inverting
    come after them), and a `MinShare` last. The total of the root is the sum of the metric over
    the activities that pass, exactly. Raises NoMatchError when filters leave nothing, UsageError
    for unknown levels or metrics and for wrong expressions.
    """
    naming, arrangement = naming or Naming(), arrangement or Arrangement()
    measure = metric_of(metric or profile.default_metric, profile.metrics)
    if isinstance(levels, str):
        levels = parse_levels(levels)
    levels = levels or default_levels(profile, measure, naming)
    check_levels(levels)
    labels = profile.labels(naming)
    table, weights = profile.table(measure), _weigh(profile, measure, where)
    shares = weighed(profile, table, weights, levels, labels.shown)
    stacks = filtered(shares.stacks, where, labels.text)
    if where and not len(stacks.rows):
        why = "".join(f": {reason}" for reason in absences(profile, where))
        raise NoMatchError(f"nothing in the trace matches the selection{why}")
    columns, node = grow(arranged(stacks, arrangement), *shares.weights)
    for one in where:
        if isinstance(one, MinShare):
            columns, now = merge_smaller(columns, one.percent, profile.grouping.rest)
            node = np.append(now, -1)[node]
    key = None
    if arrangement.order == "name":
        key = labels.rank[columns.frame]
    elif arrangement.order == "start":
        key = _first_start(profile, columns, shares, node, table, where)
    tree = in_preorder(
        columns, profile.frames, labels.text, measure, levels, arrangement, key, node
    )
    return tree.with_units(shares.unit_of_group, shares.unit if shares.split else None)


def _weigh(profile: Profile, metric: Metric, where: tuple[Filter, ...]) -> Weights:
    """(value, activities) per group of what passes; groups that do not pass have zeros."""
    table = profile.table(metric)
    value, count = profile.totals_by_group(metric, _rows(profile, table, where))
    for one in where:
        if isinstance(one, GroupFilter):
            passing = one.groups(profile, table)
            value, count = np.where(passing, value, 0), np.where(passing, count, 0)
    return Weights(value, count)


def _rows(profile: Profile, table: Activities, where: tuple[Filter, ...]) -> I8 | None:
    """Indices of the rows in all windows of time, or None for all rows."""
    passing = passing_rows(profile, table, where)
    return None if passing is None else np.flatnonzero(passing)


def _first_start(
    profile: Profile,
    columns: Breadth,
    shares: Weighed,
    node: I8,
    table: Activities,
    where: tuple[Filter, ...],
) -> I8:
    """Per node of ``columns`` the first start of an activity below it that passes, ns.

    ``node`` is that of every stack of ``shares``.
    """
    rows = _rows(profile, table, where)
    group, start = table.groups.of, table.start
    if rows is not None:
        group, start = group[rows], start[rows]
    unit = shares.unit_of_group[group]
    of_unit = np.full(int(shares.unit.max(initial=-1)) + 1, _LATEST)
    np.minimum.at(of_unit, unit[unit >= 0], start[unit >= 0])
    first = np.full(len(columns.parent), _LATEST)
    np.minimum.at(first, node[node >= 0], of_unit[shares.unit[node >= 0]])
    return columns.minima(first)
