"""Projection, the heart: choose and order levels, filter, weigh, and build the stack tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, sum_by
from flame.core.errors import NoMatchError, UsageError
from flame.core.labels import Naming
from flame.core.metrics import Metric, metric_of
from flame.core.profile import Activities, Profile
from flame.core.tree import Breadth, StackTree, in_preorder
from flame.core.where import Filter, Time

LEVELS = (
    "process",
    "thread",
    "device",
    "stream",
    "python",
    "native",
    "launch",
    "nvtx",
    "shapes",
    "kernel",
)
"""All levels in their natural order; any subset in any order makes a tree."""


def parse_levels(text: str) -> tuple[str, ...]:
    """Levels from a list such as ``nvtx,kernel``; UsageError on unknown or repeated ones."""
    levels = tuple(name.strip() for name in text.split(",") if name.strip())
    check_levels(levels)
    return levels


def check_levels(levels: tuple[str, ...]) -> None:
    """UsageError unless ``levels`` is a non-empty choice of `LEVELS` without repeats."""
    for name in levels:
        if name not in LEVELS:
            raise UsageError(f"--levels: unknown level '{name}': choose from {', '.join(LEVELS)}")
        if levels.count(name) > 1:
            raise UsageError(f"--levels: '{name}' stands there twice")
    if not levels:
        raise UsageError(f"--levels: no level given: choose from {', '.join(LEVELS)}")


def default_levels(metric: Metric, naming: Naming) -> tuple[str, ...]:
    """The metric's own order, with shapes below the ranges where asked for."""
    return with_shapes(metric.levels) if naming.shapes else metric.levels


def with_shapes(levels: tuple[str, ...]) -> tuple[str, ...]:
    """``levels`` with ``shapes`` below the ranges whose shapes they are, unless it has a place."""
    if "shapes" in levels:
        return levels
    if "nvtx" not in levels:
        raise UsageError("--shapes: name the place of shapes in --levels, nvtx is not there")
    place = levels.index("nvtx") + 1
    return (*levels[:place], "shapes", *levels[place:])


def project(
    profile: Profile,
    levels: str | tuple[str, ...] | None = None,
    where: tuple[Filter, ...] = (),
    metric: str | None = None,
    naming: Naming | None = None,
) -> StackTree:
    """The stack tree of ``profile`` under ``levels``, of what passes all filters in ``where``.

    The total of the root is the sum of the metric over the activities that pass, exactly. Raises
    NoMatchError when filters leave nothing, UsageError for unknown levels or metrics.
    """
    naming = naming or Naming()
    measure = metric_of(metric or profile.default_metric)
    if isinstance(levels, str):
        levels = parse_levels(levels)
    levels = levels or default_levels(measure, naming)
    check_levels(levels)
    value, count = _weigh(profile, measure, where)
    if where and not count.any():
        raise NoMatchError("nothing in the trace matches the selection")
    kept = np.flatnonzero(count)
    shown = profile.labels(naming)
    growth = _Growth(len(kept))
    for frames in _steps(profile, profile.table(measure), kept, levels):
        growth.extend(np.where(frames >= 0, shown.shown[frames], -1))
    columns = growth.weighed(value[kept], count[kept])
    return in_preorder(columns, profile.frames, shown.text, measure, levels)


def _weigh(profile: Profile, metric: Metric, where: tuple[Filter, ...]) -> tuple[I8, I8]:
    """(value, activities) per group of what passes; groups that do not pass have zeros."""
    table = profile.table(metric)
    value, count = profile.totals_by_group(metric, _rows(table, where))
    for one in where:
        if not isinstance(one, Time):
            passing = one.groups(profile, table)
            value, count = np.where(passing, value, 0), np.where(passing, count, 0)
    return value, count


def _rows(table: Activities, where: tuple[Filter, ...]) -> I8 | None:
    """Indices of the rows in all time windows, or None for all rows."""
    windows = [one.rows(table) for one in where if isinstance(one, Time)]
    return np.flatnonzero(np.logical_and.reduce(windows)) if windows else None


def _steps(
    profile: Profile, table: Activities, kept: I8, levels: tuple[str, ...]
) -> Iterator[Column]:
    """For each step down the stack, the frame id (-1: none) of every kept group."""
    for level in levels:
        if level in ("python", "native", "nvtx"):
            used, place = distinct(getattr(table.groups, level)[kept].astype(np.int64))
            yield from (step[place] for step in table.stacks.paths(used).T)
        else:
            yield _single(profile, table, kept, level)


def _single(profile: Profile, table: Activities, kept: I8, level: str) -> Column:
    """Frame ids (-1: none) of a level that is one frame per group."""
    grouping, groups = profile.grouping, table.groups
    if level in ("kernel", "launch"):
        own: Column = groups.frame if level == "kernel" else groups.launch
        return own[kept]
    if level == "stream":
        return grouping.stream_of(groups.stream[kept])
    if level == "shapes":
        return table.stacks.innermost(grouping.shapes)[groups.nvtx[kept]]
    frames: I4 = getattr(grouping, level)
    index: I4 = getattr(groups, level)
    found: I4 = np.append(frames, np.int32(-1))[index[kept]]
    return found


class _Growth:
    """A tree that grows one step down for all rows at a time."""

    def __init__(self, rows: int) -> None:
        self._node = np.zeros(rows, np.int64)
        self._columns = [(np.array([-1]), np.array([0]), np.array([0]))]
        self._depth = np.zeros(1, np.int64)

    def extend(self, frame: Column) -> None:
        """Move every row with ``frame`` >= 0 to the child with that frame."""
        rows = np.flatnonzero(frame >= 0)
        wanted, place = distinct((self._node[rows] << 32) | frame[rows])
        parent = wanted >> 32
        depth = self._depth[parent] + 1
        self._columns.append((parent, wanted & 0xFFFFFFFF, depth))
        self._node[rows] = len(self._depth) + place
        self._depth = np.concatenate([self._depth, depth])

    def weighed(self, value: I8, count: I8) -> Breadth:
        """The finished tree in breadth-first order, with the rows' sums."""
        parent, frame, depth = (np.concatenate(part) for part in zip(*self._columns, strict=True))
        order = np.argsort(depth, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        above = np.where(parent >= 0, place[parent], -1)
        node, size = place[self._node], len(order)
        return Breadth(
            above[order].astype(np.int32),
            frame[order].astype(np.int32),
            depth[order].astype(np.int32),
            sum_by(node, value, size),
            sum_by(node, count, size),
        )
