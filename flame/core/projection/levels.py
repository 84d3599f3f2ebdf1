"""Parse lists of levels, and say which levels a trace has."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from flame.core.columns import Bool
from flame.core.errors import UsageError
from flame.core.frame import LEVELS as LEVELS
from flame.core.frame import MADE_LEVELS as MADE_LEVELS
from flame.core.frame import PART_LEVELS as PART_LEVELS
from flame.core.frame import SAMPLE_LEVELS as SAMPLE_LEVELS
from flame.core.frame import STACK_LEVELS as STACK_LEVELS
from flame.core.frame import WAIT_LEVEL as WAIT_LEVEL
from flame.core.frame import check_levels as check_levels
from flame.core.model.activities import Activities
from flame.core.model.metrics import WAIT, Metric
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.modules import has_modules


def parse_levels(text: str) -> tuple[str, ...]:
    """Parse levels from a list such as ``nvtx,kernel``; UsageError on unknown or repeated names."""
    levels = tuple(name.strip() for name in text.split(",") if name.strip())
    check_levels(levels)
    return levels


def default_levels(profile: Profile, metric: Metric, naming: Naming) -> tuple[str, ...]:
    """Choose the metric's own levels, files first where there are several, shapes if asked for.

    Ranks of a summary are a level only if asked for. The levels of PC samples stand below kernels,
    and of the GPU time of ranks what their collectives waited.
    """
    levels = ("rank", *metric.levels) if len(profile.sources) > 1 else metric.levels
    if profile.ranks is not None:  # often hundreds
        levels = metric.levels
    if profile.sampling is not None and levels[-1] == "kernel":
        levels = (*levels, *SAMPLE_LEVELS)
    if metric.key == "gpu" and _knows_waits(profile):
        levels = (*levels, WAIT_LEVEL)
    return add_shapes(levels) if naming.shapes and "nvtx" in levels else levels


def add_shapes(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Add ``shapes`` below the ranges in ``levels``, unless it has a place there already."""
    if "shapes" in levels:
        return levels
    if "nvtx" not in levels:
        raise UsageError("--shapes: name the place of shapes in --levels, nvtx is not there")
    place = levels.index("nvtx") + 1
    return (*levels[:place], "shapes", *levels[place:])


def recorded_levels(
    profile: Profile, metric: Metric, among: Iterable[str] = LEVELS
) -> frozenset[str]:
    """Find the levels ``among`` these for which the table behind ``metric`` has a frame."""
    table = profile.table(metric)
    return frozenset(level for level in among if _has_level(profile, metric, table, level))


def shown_levels(profile: Profile, metric: Metric, levels: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out of ``levels`` those of parts that the profile cannot divide ``metric`` into."""
    known = recorded_levels(profile, metric, PART_LEVELS)
    return tuple(level for level in levels if level not in PART_LEVELS or level in known)


def _knows_waits(profile: Profile) -> bool:
    return profile.totals is not None and profile.totals.waits is not None


def _has_level(profile: Profile, metric: Metric, table: Activities, level: str) -> bool:
    groups = table.groups
    if level in _PRESENT:
        return bool(np.any(_PRESENT[level](profile, table)))
    if level in SAMPLE_LEVELS:
        return profile.sampling is not None and metric.table == "gpu"
    if level == WAIT_LEVEL:
        return metric.key in ("gpu", WAIT.key) and _knows_waits(profile)
    column = getattr(groups, level)
    return bool((column > 0).any() if level in STACK_LEVELS else (column >= 0).any())


def _are_several(profile: Profile, table: Activities) -> Bool | bool:
    several = len(profile.sources) > 1 or profile.ranks is not None
    return several and table.groups.process >= 0


def _has_shapes(profile: Profile, table: Activities) -> Bool:
    shapes: Bool = table.stacks.innermost(profile.grouping.shapes)[table.groups.nvtx] >= 0
    return shapes


_PRESENT: dict[str, Callable[[Profile, Activities], Bool | bool]] = {
    "kernel": lambda profile, table: table.groups.frame >= 0,
    "category": lambda profile, table: table.groups.frame >= 0,
    "shapes": _has_shapes,
    "nested": lambda profile, table: (table.groups.python > 0) | (table.groups.nvtx > 0),
    "cause": lambda profile, table: table.groups.cause is not None and len(table.groups) > 0,
    "pool": lambda profile, table: table.groups.pool is not None and len(table.groups) > 0,
    "module": has_modules,
    "phase": lambda profile, table: (profile.phases is not None) | (table.groups.frame >= 0),
    "rank": _are_several,
}
"""Which groups have a frame of the levels that are no column of them."""
