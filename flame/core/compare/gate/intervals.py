"""Tell how far the change of a quantity may be off: from runs, from steps, or by what is usual."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8
from flame.core.compare.basis import periods_of
from flame.core.compare.comparison import Comparison
from flame.core.compare.evidence import FEWEST_RUNS
from flame.core.compare.gate.by_step import sums_by_step
from flame.core.compare.gate.rank_terms import half_of_ranks
from flame.core.compare.gate.terms import SideValues, durations_of_sides
from flame.core.compare.sides import BASE, NEW
from flame.core.compare.statistics import drawn_ratio, drawn_sums, shift
from flame.core.report.gate.condition import Term
from flame.core.report.gate.percentiles import P99
from flame.core.report.program.iteration_verdicts import judge

FEWEST_STEPS_OF_INTERVAL = 3
"""Steps of either side below which nothing is said of how much they differ."""

_SUMS = ("gpu_time", "frame.total", "frame.mean", "phase.total")
"""Quantities of what was launched, of which each step has its part."""

ENOUGH = 2.5
"""Points of a percentage to either side of the change, which are told how many steps would do."""


class ChangeInterval(NamedTuple):
    """Hold where a change lies, in percent of the base; ``spread`` is half of it without noise.

    ``steps`` is how many of both sides it is known from, 0 where it is from something else;
    ``of_runs`` whether it is from runs, ``of_ranks`` from how far ranks are apart. ``activities``
    is how many the side with fewer has, of a percentile: one of its ends is infinite where these
    are too few for that to be known.
    """

    low: float
    high: float
    spread: float = 0.0
    steps: int = 0
    of_runs: bool = False
    of_ranks: bool = False
    activities: int = 0

    @property
    def more_steps(self) -> int | None:
        """How many steps of each side would do; None where steps make no difference."""
        if not self.steps or self.spread <= ENOUGH or not math.isfinite(self.spread):
            return None
        return math.ceil(self.steps * (self.spread / ENOUGH) ** 2)


def change_interval(
    comparison: Comparison, term: Term, values: SideValues, noise: float
) -> ChangeInterval:
    """Find where the change of what ``term`` names lies; ``values``, whose base is not 0.

    What is counted is exact, and so is how much is copied. With four runs of either side it is
    known from these. Otherwise it is what the ranks tell, or the activities of a percentile, or the
    steps, or nothing, and ``noise`` percent to either side, as runs differ.
    """
    change = 100 * (values.new / values.base - 1)
    if values.unit == "count" or term.name.startswith("bytes."):
        return ChangeInterval(change, change)
    sides = np.array(comparison.sides.side_of_run)
    runs = np.array(values.runs)
    base, new = runs[sides == BASE], runs[sides == NEW]
    if min(len(base), len(new)) >= FEWEST_RUNS:
        return _from_runs(base, new)
    if (far := half_of_ranks(comparison, term)) is not None:
        return ChangeInterval(change - far - noise, change + far + noise, far, of_ranks=True)
    if term.name.endswith(".p99") and term.text is not None:
        return _from_activities(comparison, term, change, noise)
    spread, steps = _from_steps(comparison, term, values)
    low, high = (change, change) if spread is None else spread
    low, high = min(low, change), max(high, change)
    half = max(high - change, change - low)
    return ChangeInterval(low - noise, high + noise, half, steps)


def _from_runs(base: F8, new: F8) -> ChangeInterval:
    _, found = shift(base[None], new[None])
    low, high = (100 * float(bound[0]) / float(base.mean()) for bound in found)
    return ChangeInterval(low, high, (high - low) / 2, of_runs=True)


def _from_activities(
    comparison: Comparison, term: Term, change: float, noise: float
) -> ChangeInterval:
    """Find the interval of a percentile by the activities whose durations are next to it."""
    sides = durations_of_sides(comparison, term)
    assert sides is not None  # there would be no value of it
    base, new = (side.bounds(P99) for side in sides)
    fewer = min(side.total for side in sides)
    low = 100 * (new[0] / base[1] - 1)
    high = 100 * (new[1] / base[0] - 1) if base[0] else math.inf
    low, high = min(low, change), max(high, change)
    half = max(high - change, change - low)
    return ChangeInterval(low - noise, high + noise, half, activities=fewer)


def _from_steps(
    comparison: Comparison, term: Term, values: SideValues
) -> tuple[tuple[float, float] | None, int]:
    """(low, high) in percent, from the steps; and how many the shorter side has."""
    found = _step_values(comparison, term)
    if found is None:
        return None, 0
    steps = min(map(len, found))
    if steps < FEWEST_STEPS_OF_INTERVAL:
        return None, 0
    name, _, part = term.name.partition(".")
    if name == "step":
        low, high = drawn_ratio(*found, part)
        return (100 * (low - 1), 100 * (high - 1)), steps
    low, high = drawn_sums(*found)
    # What an activity takes changes as the sum does, but for how many there are of each side.
    sums = float(found[1].mean() / found[0].mean())
    scale = values.new / values.base / sums if part == "mean" else 1.0
    return (100 * (low * scale - 1), 100 * (high * scale - 1)), steps


def _step_values(comparison: Comparison, term: Term) -> tuple[F8, F8] | None:
    """What ``term`` is in each step of both sides, or what adds up to it; None if not known."""
    if term.name.startswith("step."):
        return _periods(comparison, BASE), _periods(comparison, NEW)
    if term.name in _SUMS and comparison.basis.kind == "step":
        return sums_by_step(comparison, term)
    return None


def _periods(comparison: Comparison, side: int) -> F8:
    """How long the steps of a side took after the warm-up, run by run."""
    found = [
        judge(periods_of(run, comparison.selection).period).steady
        for run, of in zip(comparison.sides.runs, comparison.sides.side_of_run, strict=True)
        if of == side
    ]
    return np.concatenate(found).astype(np.float64)
