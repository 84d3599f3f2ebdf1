"""Scale both sides to one basis: per step, per second, as recorded."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.compare.sides import KeptRun, Run, Sides
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.filters import Filter, Steps
from flame.core.projection.selection import Selection
from flame.core.report.program.iteration_measures import Periods, measure_periods
from flame.core.report.program.iteration_verdicts import judge
from flame.core.report.scope import Scope

BASES = ("step", "second", "activity", "share", "total")
FEWEST_STEPS_OF_BASIS = 3
"""Steps after the warm-up that a run needs for values per step, unless they are asked for."""


class Units(NamedTuple):
    """Say how many units, such as requests, a run of each side had."""

    base: float
    new: float


Per = str | Units
"""One of `BASES`, units that the user counts, or empty for what fits."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Say what values are divided by.

    ``kind`` is one of `BASES` or ``unit``; ``divisor`` has a number for each run, which for
    ``activity`` and ``share`` is 1. ``where`` is what more of each run is chosen by.
    """

    kind: str
    divisor: tuple[float, ...]
    where: tuple[tuple[Filter, ...], ...]

    @property
    def words(self) -> str:
        """What stands behind a value: ``per step``; nothing behind what is as recorded."""
        return "" if self.kind in ("total", "share") else f"per {self.kind}"


def parse_per(text: str) -> Per:
    """Parse what ``--per`` is given; UsageError where it is neither a basis nor numbers."""
    if text in BASES:
        return text
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(0 < one < math.inf for one in numbers):
        choices = ", ".join(BASES)
        raise UsageError(
            f"--per '{text}': choose from {choices}, or say how many units BASE and NEW had: "
            "--per 1000,1200"
        )
    return Units(numbers[0], numbers[-1])


def choose_basis(sides: Sides, selection: Selection, per: Per = "") -> Basis:
    """Choose the basis ``per``, or else steps where all runs have them, or else totals.

    Raises UsageError where a run has not what is asked for.
    """
    if isinstance(per, Units):
        counts = [per[side] for side in sides.side_of_run]
        return Basis("unit", tuple(counts), ((),) * len(counts))
    if per in ("", "step"):
        steps = [steady_steps(run, selection) for run in sides.runs]
        if per or all(len(numbers) >= FEWEST_STEPS_OF_BASIS for numbers in steps):
            return _per_step(sides, steps)
    if per == "second":
        seconds = tuple(_seconds(run, selection) for run in sides.runs)
        return Basis(per, seconds, ((),) * len(seconds))
    size = len(sides.runs)
    return Basis(per or "total", (1.0,) * size, ((),) * size)


def _per_step(sides: Sides, steps: list[I8]) -> Basis:
    for run, numbers in zip(sides.runs, steps, strict=True):
        if not len(numbers):
            raise UsageError(
                f"--per step: {run.label} has no iterations after the warm-up; choose another basis"
            )
    where = tuple((Steps.of(numbers.tolist()),) for numbers in steps)
    return Basis("step", tuple(float(len(numbers)) for numbers in steps), where)


def steady_steps(run: Run, selection: Selection) -> I8:
    """List the iterations of ``run`` after the warm-up, by their numbers; none where none is."""
    found = periods_of(run, selection)
    if isinstance(run, KeptRun):
        return found.number  # no others are kept
    return found.number[~judge(found.period).warm_up]


def periods_of(run: Run, selection: Selection) -> Periods:
    """Measure the iterations of ``run`` that pass the filters of a common ``selection``."""
    if isinstance(run, KeptRun):
        period = np.array([] if run.steps is None else run.steps.period, np.int64)
        return Periods(np.arange(len(period)), period)
    if not run.has_rows:
        return Periods(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return measure_periods(scope_of(run, selection))


def scope_of(run: Run, selection: Selection) -> Scope:
    """Make the scope of reports on a run under a common ``selection``."""
    return Scope(run.profile, run.selection(selection))


def _seconds(run: Run, selection: Selection) -> float:
    if run.profile.resolved and not isinstance(run, KeptRun):
        raise UsageError(f"--per second: {run.label} has no times")
    seconds = seconds_of(run, selection)
    if not seconds:
        raise UsageError(f"--per second: nothing in {run.label} takes any time")
    return seconds


def seconds_of(run: Run, selection: Selection) -> float:
    """Measure how long the GPUs, or else the trace, were looked at, in seconds."""
    if isinstance(run, KeptRun):
        return run.part.seconds
    gpus = scope_of(run, selection).gpus
    return max((gpu.length for gpu in gpus), default=run.profile.duration) / 1e9
