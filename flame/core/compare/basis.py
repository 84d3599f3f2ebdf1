"""Scale both sides to one basis: per step, per second, as recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.compare.sides import KeptRun, Run, Sides
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.nearest import did_you_mean
from flame.core.projection.filters import Filter, Steps
from flame.core.projection.selection import Selection
from flame.core.rank_summary.summary import RankInfo
from flame.core.ranks.steps import step_spread
from flame.core.report.program.iteration_measures import Periods, measure_periods
from flame.core.report.program.iteration_verdicts import judge
from flame.core.report.scope import Scope

BASES = ("step", "second", "activity", "share", "rank", "total")
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
            f"--per 1000,1200{did_you_mean(text, BASES)}"
        )
    return Units(numbers[0], numbers[-1])


def choose_basis(sides: Sides, selection: Selection, per: Per = "") -> Basis:
    """Choose the basis ``per``, or else steps where all runs have them, or else totals.

    Raises UsageError where a run has not what is asked for.
    """
    if isinstance(per, Units):
        counts = [per[side] for side in sides.side_of_run]
        return Basis("unit", tuple(counts), ((),) * len(counts))
    if sides.has_summary and per in ("", "step", "rank", "second"):
        return _over_ranks(sides, selection, per or "rank")
    if per in ("", "step"):
        steps = [steady_steps(run, selection) for run in sides.runs]
        if per or all(len(numbers) >= FEWEST_STEPS_OF_BASIS for numbers in steps):
            return _per_step(sides, steps)
    if per == "rank":
        return _everything(per, [max(len(run.rank_places(selection)), 1) for run in sides.runs])
    if per == "second":
        return _everything(per, [_seconds(run, selection) for run in sides.runs])
    return _everything(per or "total", [1.0] * len(sides.runs))


def _everything(kind: str, divisor: Sequence[float]) -> Basis:
    """Make a basis that leaves nothing of a run out."""
    return Basis(kind, tuple(map(float, divisor)), ((),) * len(divisor))


def _over_ranks(sides: Sides, selection: Selection, per: str) -> Basis:
    """Divide the sums over ranks by ranks, their steps, or the seconds of each together."""
    if per == "step" and not sides.are_summaries:
        trace = next(run.label for run in sides.runs if run.summary is None)
        raise UsageError(
            f"--per step: {trace} is a trace and the other side a summary of ranks, which has no "
            "values by step; compare --per rank"
        )
    divisor = []
    for run in sides.runs:
        chosen = [] if run.summary is None else _infos(run, selection)
        found: float = max(len(run.rank_places(selection)), 1)
        if per == "step":
            found = sum(len(one.step_numbers) for one in chosen)
        elif per == "second":
            spans = sum(one.end - one.begin for one in chosen)
            found = spans / 1e9 if chosen else found * _seconds(run, selection)
        if not found:
            raise UsageError(f"--per {per}: {run.label} has no {per}s; choose another basis")
        divisor.append(found)
    return _everything(per, divisor)


def _infos(run: Run, selection: Selection) -> list[RankInfo]:
    assert run.summary is not None
    return [run.summary.info[at] for at in run.rank_places(selection)]


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
    if isinstance(run, KeptRun) or run.summary is not None:
        return found.number  # there are no others
    return found.number[~judge(found.period).warm_up]


def periods_of(run: Run, selection: Selection) -> Periods:
    """Measure the iterations of ``run`` that pass the filters of a common ``selection``."""
    if isinstance(run, KeptRun):
        period = np.array([] if run.steps is None else run.steps.period, np.int64)
        return Periods(np.arange(len(period)), period)
    if run.summary is not None:
        return _periods_of_ranks(_infos(run, selection))
    if not run.has_rows:
        return Periods(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return measure_periods(scope_of(run, selection))


def _periods_of_ranks(infos: Sequence[RankInfo]) -> Periods:
    """Measure the steps after the warm-up that all ranks have, each by its slowest rank."""
    found = step_spread([one.step_numbers for one in infos], [one.step_times for one in infos])
    whole = np.flatnonzero(found.there == len(infos))
    whole = whole[~judge(found.most[whole]).warm_up]
    return Periods(found.number[whole], found.most[whole])


def scope_of(run: Run, selection: Selection) -> Scope:
    """Make the scope of reports on a run under a common ``selection``."""
    return Scope(run.profile, run.selection(selection))


def _seconds(run: Run, selection: Selection) -> float:
    if run.profile.resolved and not isinstance(run, KeptRun):
        if run.profile.memory is not None:
            raise UsageError("--per second: memory is held, not spent: compare --per total")
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
