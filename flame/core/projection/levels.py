"""Name the levels of a stack, parse lists of them, and say which levels a trace has."""

from __future__ import annotations

import numpy as np

from flame.core.errors import UsageError
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.modules import has_modules

SAMPLE_LEVELS = ("sass", "stall")

STACK_LEVELS = ("python", "native", "nvtx", "stack")
"""Levels of any number of frames; each of the other levels is a single frame."""

MADE_LEVELS = ("nested", "module")
"""Levels made of the frames of others: Python frames and ranges."""

LEVELS = (
    "rank",
    "process",
    "thread",
    "device",
    "stream",
    "stack",
    *MADE_LEVELS,
    "python",
    "native",
    "launch",
    "nvtx",
    "shapes",
    "category",
    "kernel",
    *SAMPLE_LEVELS,
)
"""All levels in their natural order; any subset in any order makes a tree."""


def parse_levels(text: str) -> tuple[str, ...]:
    """Parse levels from a list such as ``nvtx,kernel``; UsageError on unknown or repeated names."""
    levels = tuple(name.strip() for name in text.split(",") if name.strip())
    check_levels(levels)
    return levels


def check_levels(levels: tuple[str, ...]) -> None:
    """Raise UsageError unless ``levels`` is a non-empty choice of `LEVELS` without repeats."""
    for name in levels:
        if name not in LEVELS:
            raise UsageError(f"--levels: unknown level '{name}': choose from {', '.join(LEVELS)}")
        if levels.count(name) > 1:
            raise UsageError(f"--levels: '{name}' stands there twice")
    if not levels:
        raise UsageError(f"--levels: no level given: choose from {', '.join(LEVELS)}")


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
    sampled = profile.sampling is not None and table is profile.activities
    masks |= dict.fromkeys(SAMPLE_LEVELS, np.array([sampled]))
    masks["nested"] = (groups.python > 0) | (groups.nvtx > 0)
    masks["module"] = has_modules(profile, table)
    masks["rank"] = groups.process >= (0 if len(profile.sources) > 1 else len(profile.processes))
    for level in LEVELS:
        if level not in masks:
            column = getattr(groups, level)
            masks[level] = column > 0 if level in STACK_LEVELS else column >= 0
    return frozenset(level for level, mask in masks.items() if mask.any())
