"""Name the levels of a stack, read lists of them, and say which ones a trace has."""

from __future__ import annotations

import numpy as np

from flame.core.errors import UsageError
from flame.core.model.metrics import NO_SAMPLES, Metric
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming

SAMPLE_LEVELS = ("sass", "stall")

STACK_LEVELS = ("python", "native", "nvtx", "stack")
"""Levels of any number of frames; the others are one frame each."""

LEVELS = (
    "rank",
    "process",
    "thread",
    "device",
    "stream",
    "stack",
    "python",
    "native",
    "launch",
    "nvtx",
    "shapes",
    "kernel",
    *SAMPLE_LEVELS,
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


def default_levels(profile: Profile, metric: Metric, naming: Naming) -> tuple[str, ...]:
    """The metric's own order, files first where there are several, shapes where asked for.

    What PC samples tell stands below their kernels.
    """
    levels = ("rank", *metric.levels) if len(profile.sources) > 1 else metric.levels
    if profile.sampling is not None and levels[-1] == "kernel":
        levels = (*levels, *SAMPLE_LEVELS)
    return with_shapes(levels) if naming.shapes and "nvtx" in levels else levels


def with_shapes(levels: tuple[str, ...]) -> tuple[str, ...]:
    """``levels`` with ``shapes`` below the ranges whose shapes they are, unless it has a place."""
    if "shapes" in levels:
        return levels
    if "nvtx" not in levels:
        raise UsageError("--shapes: name the place of shapes in --levels, nvtx is not there")
    place = levels.index("nvtx") + 1
    return (*levels[:place], "shapes", *levels[place:])


def recorded_levels(profile: Profile, metric: Metric) -> frozenset[str]:
    """The levels for which the table behind ``metric`` has at least one frame."""
    table = profile.table(metric)
    groups = table.groups
    shapes = table.stacks.innermost(profile.grouping.shapes)[groups.nvtx]
    found = {"kernel": groups.frame >= 0, "shapes": shapes >= 0}
    sampled = profile.sampling is not None and table is profile.activities
    found |= dict.fromkeys(SAMPLE_LEVELS, np.array([sampled]))
    found["rank"] = groups.process >= (0 if len(profile.sources) > 1 else len(profile.processes))
    for level in LEVELS:
        if level not in found:
            column = getattr(groups, level)
            found[level] = column > 0 if level in STACK_LEVELS else column >= 0
    return frozenset(level for level, mask in found.items() if mask.any())


def lacking(profile: Profile, metric: Metric, levels: tuple[str, ...]) -> str:
    """What of ``levels`` the trace does not have, and how to get it; empty where all is well."""
    if profile.sampling is None and not profile.resolved and set(SAMPLE_LEVELS) & set(levels):
        return NO_SAMPLES
    if recorded_levels(profile, metric).intersection(levels):
        return ""
    return f"this trace has no frames of {', '.join(levels)}"
