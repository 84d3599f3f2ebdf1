"""Choose the levels that both sides of a comparison have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flame.core.compare.sides import BASE, NEW, SIDES, Run, Sides
from flame.core.errors import UsageError
from flame.core.model.metrics import STALLS, Metric
from flame.core.projection.labels import Naming
from flame.core.projection.levels import SAMPLE_LEVELS, add_shapes, recorded_levels
from flame.core.projection.selection import Selection
from flame.core.units import format_whole_percent

_PLACES = ("rank", "process", "thread", "device", "pool", "stream")
"""Levels that say where something ran: the same work has other numbers in another run."""

_APART = 20
"""Points of a percentage by which the coverage of a level may differ."""


class LeftOut(NamedTuple):
    """Name a level that is left out, and say why."""

    level: str
    why: str


def common_levels(
    sides: Sides, metric: Metric, selection: Selection
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Choose levels for ``selection``: its own, else those usual for ``metric`` that all runs have.

    And as much of them: coverage differs by at most 20 points. Raises UsageError where none is
    left.
    """
    if selection.levels:
        return selection.levels, ()
    usual, recorded = _usual_levels(metric, selection.naming), _recorded(sides, metric)
    reasons = {level: _why_not(sides, metric, recorded, level) for level in usual}
    levels = tuple(level for level in usual if reasons[level] == "")
    if not levels and any(recorded):
        words = "; ".join(f"{level} is {why}" for level, why in reasons.items() if why)
        raise UsageError(f"BASE and NEW have no level in common: {words}")
    left_out = tuple(LeftOut(level, why) for level, why in reasons.items() if why)
    return levels or usual, left_out


def _usual_levels(metric: Metric, naming: Naming) -> tuple[str, ...]:
    """The levels of ``metric``, and of PC samples what these are of.

    Times are not split by samples unless asked for: shares of few samples differ by chance.
    """
    levels = tuple(level for level in metric.levels if level not in _PLACES)
    if metric.key == STALLS.key:
        levels = (*levels, *SAMPLE_LEVELS)
    return add_shapes(levels) if naming.shapes and "nvtx" in levels else levels


def _recorded(sides: Sides, metric: Metric) -> list[frozenset[str]]:
    """The levels of each run; none of one that has nothing to show by ``metric``."""
    return [
        recorded_levels(run.profile, metric) if _has_any(run, metric) else frozenset()
        for run in sides.runs
    ]


def _has_any(run: Run, metric: Metric) -> bool:
    return len(run.profile.table(metric).groups) > 0


def _why_not(
    sides: Sides, metric: Metric, recorded: Sequence[frozenset[str]], level: str
) -> str | None:
    """Why ``level`` cannot be compared; empty where it can, None where no run has it."""
    lacks = [bool(levels) and level not in levels for levels in recorded]
    if not any(level in levels for levels in recorded):
        return None
    if any(lacks):
        return f"not in {_named(sides, lacks)}"
    return unlike_coverage(sides, level) if metric.table == "gpu" else ""


def unlike_coverage(sides: Sides, level: str) -> str:
    """Say how unlike the coverage of ``level`` is; empty where it is alike, or not known."""
    covered = [[*_coverages(side, level)] for side in sides]
    if not all(covered):
        return ""
    base, new = (sum(shares) / len(shares) for shares in covered)
    if abs(base - new) <= _APART:
        return ""
    shares = f"{format_whole_percent(base)} in BASE and {format_whole_percent(new)} in NEW"
    return f"known of unlike parts of the GPU time, {shares}"


def _coverages(side: tuple[Run, ...], level: str) -> Iterator[float]:
    """How much of its GPU time each run has on ``level``, in percent, where that is known."""
    for run in side:
        share = run.profile.coverage.get(level)
        if share is not None:
            yield share.percent


def _named(sides: Sides, wanted: list[bool]) -> str:
    """Name the sides that any of the ``wanted`` runs are of."""
    of = {side for side, is_wanted in zip(sides.side_of_run, wanted, strict=True) if is_wanted}
    return " and ".join(SIDES[side] for side in (BASE, NEW) if side in of)
