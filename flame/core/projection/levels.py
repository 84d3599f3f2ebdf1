"""Parse lists of levels, and say which levels a trace has."""

from __future__ import annotations

import numpy as np

from flame.core.errors import UsageError
from flame.core.frame import LEVELS as LEVELS
from flame.core.frame import MADE_LEVELS as MADE_LEVELS
from flame.core.frame import SAMPLE_LEVELS as SAMPLE_LEVELS
from flame.core.frame import STACK_LEVELS as STACK_LEVELS
from flame.core.frame import check_levels as check_levels
from flame.core.model.metrics import Metric
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

    The levels of PC samples stand below kernels.
    """
    levels = ("rank", *metric.levels) if len(profile.sources) > 1 else metric.levels
    if profile.sampling is not None and levels[-1] == "kernel":
        levels = (*levels, *SAMPLE_LEVELS)
    return add_shapes(levels) if naming.shapes and "nvtx" in levels else levels


def add_shapes(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Add ``shapes`` below the ranges in ``levels``, unless it has a place there already."""
    if "shapes" in levels:
        return levels
    if "nvtx" not in levels:
        raise UsageError("--shapes: name the place of shapes in --levels, nvtx is not there")
    place = levels.index("nvtx") + 1
    return (*levels[:place], "shapes", *levels[place:])


def recorded_levels(profile: Profile, metric: Metric) -> frozenset[str]:
    """Find the levels for which the table behind ``metric`` has at least one frame."""
    table = profile.table(metric)
    groups = table.groups
    shapes = table.stacks.innermost(profile.grouping.shapes)[groups.nvtx]
    masks = dict.fromkeys(("kernel", "category"), groups.frame >= 0) | {"shapes": shapes >= 0}
    sampled = profile.sampling is not None and metric.table == "gpu"
    masks |= dict.fromkeys(SAMPLE_LEVELS, np.array([sampled]))
    masks["nested"] = (groups.python > 0) | (groups.nvtx > 0)
    masks["cause"] = np.array([groups.cause is not None and len(groups) > 0])
    masks["module"] = has_modules(profile, table)
    masks["phase"] = np.array([profile.phases is not None]) | (groups.frame >= 0)
    masks["rank"] = groups.process >= (0 if len(profile.sources) > 1 else len(profile.processes))
    for level in LEVELS:
        if level not in masks:
            column = getattr(groups, level)
            masks[level] = column > 0 if level in STACK_LEVELS else column >= 0
    return frozenset(level for level, mask in masks.items() if mask.any())
