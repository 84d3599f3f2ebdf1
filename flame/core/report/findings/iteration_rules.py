"""Judge the iterations: where the steady part of the recording begins, and which are slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.projection.filter_options import format_filter
from flame.core.projection.filters import Time
from flame.core.report.findings.caution import of_iterations
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.program.iteration_measures import measure_times
from flame.core.report.program.iterations import IterationReport, report_iterations
from flame.core.report.program.slow_iterations import EXPLAINING
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget, budgets
from flame.core.report.table import Place
from flame.core.timeline.busy_time import TimeWindow
from flame.core.units import format_counted, format_ns, format_percent

UNSTEADY = 0.2
"""A window of which so much passed before the steady iterations is not of these."""

FEWEST = 10
SLOW = 0.01

_TOLD = 3
"""Parts of the budget that are told."""


# The steady part


def capture_window(facts: RuleFacts) -> Finding | Abstained | None:
    """Tell where the steady iterations begin, if a good part of the window is before them."""
    found = report_iterations(facts.scope)
    if found is None:
        return Abstained("capture-window", "no iterations were found")
    begin = _steady_begin(facts, found)
    if begin is None:
        return None
    low, high = facts.gpu.window
    before = facts.gpu.within(TimeWindow(low, min(max(begin, low), high)))[1]
    if before < UNSTEADY * facts.window or before == facts.window or not before:
        return None
    steady = _budget_from(facts, begin)
    parts = sorted(steady.parts, key=lambda part: -part[1]) if steady else []
    told = ", ".join(
        f"{name} {format_percent(ns, steady.window if steady else 0)}" for name, ns in parts[:_TOLD]
    )
    time = format_filter(Time(begin, None))
    return facts.information(
        "capture-window",
        "Loading or warm-up is a large part of what was recorded",
        f"{facts.share(before)} passed before the first iteration after the warm-up; from there on "
        f"(--time {time}) the window is {told}",
        "20 % of the window or more passed before the first iteration that is not warm-up",
        (
            FindingNumber("before the steady part", before, "ns"),
            FindingNumber("the steady part begins at", begin, "moment"),
            *(FindingNumber(f"then: {name}", ns, "ns") for name, ns in parts),
        ),
        Place(window=(begin, high)),
        caution=of_iterations(facts.scope),
    )


def _steady_begin(facts: RuleFacts, found: IterationReport) -> int | None:
    """When the first iteration after the warm-up begins in a process that uses the GPU."""
    groups = facts.scope.profile.activities.groups
    users = groups.process[groups.device == facts.gpu.device]
    every, warm_up = measure_times(facts.scope), found.times.number[found.verdicts.warm_up]
    steady = np.isin(every.process, users) & ~np.isin(every.number, warm_up)
    return int(every.start[steady].min()) if steady.any() else None


def _budget_from(facts: RuleFacts, begin: int) -> Budget | None:
    """The budget of the GPU from a time on."""
    where = (*facts.scope.selection.where, Time(begin, None))
    steady = Scope(facts.scope.profile, replace(facts.scope.selection, where=where))
    mine = (one for one in budgets(steady) if one.gpu.device == facts.gpu.device)
    return next(mine, None)


# Slow ones


def slow_iterations(scope: Scope) -> Finding | Abstained | None:
    """Tell the iterations that take far longer than is usual."""
    found = report_iterations(scope)
    if found is None:
        return Abstained("slow-iterations", "no iterations were found")
    times, verdicts = found.times, found.verdicts
    if len(times.number) < FEWEST or verdicts.statistics is None or verdicts.limit is None:
        return Abstained("slow-iterations", f"there are fewer than {FEWEST} iterations")
    slow, usual = np.flatnonzero(verdicts.slow), verdicts.statistics.p50
    excess, whole = int((times.period[slow] - usual).sum()), int(times.period.sum())
    if not len(slow) or excess < SLOW * whole:
        return None
    worst = int(slow[np.argmax(times.period[slow])])
    start, period = int(times.start[worst]), int(times.period[worst])
    number = int(times.number[worst])
    return Finding(
        "slow-iterations",
        None,
        "info",
        "Some iterations take far longer than usual",
        f"{format_counted(len(slow), 'iteration', 'iterations')} of {len(times.number):,} took "
        f"longer than {format_ns(verdicts.limit)} (half take at most {format_ns(usual)}): "
        f"{format_ns(excess)} more in all, {format_percent(excess, whole)} of all iterations; the "
        f"longest is iteration {number} with {format_ns(period)}{_why(found, worst)}",
        "one of ten iterations or more takes longer than the median and the larger of a tenth and "
        "three times the usual deviation; together they are 1 % of all periods above it",
        (
            FindingNumber("longer than usual, in all", excess, "ns"),
            FindingNumber("slow iterations", len(slow), "count"),
            FindingNumber("half of all take at most", usual, "ns"),
            FindingNumber("the longest takes", period, "ns"),
            FindingNumber("the longest is iteration", number, "number"),
        ),
        place=Place(window=(start, start + period)),
        caution=of_iterations(scope),
    )


def _why(found: IterationReport, row: int) -> str:
    """By which part of its time most an iteration is longer, in words."""
    mine = np.flatnonzero(found.parts.row == row)
    if not len(mine):
        return ""
    first = mine[0]
    part, longer = EXPLAINING[int(found.parts.part[first])], int(found.parts.longer[first])
    return f", of which {format_ns(longer)} more {part}"
