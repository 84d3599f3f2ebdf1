"""Decide a condition on a comparison: it holds, it does not, or more has to be recorded."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.compare.comparison import Comparison
from flame.core.compare.gate.intervals import ENOUGH, ChangeInterval, change_interval
from flame.core.compare.gate.terms import (
    SideValues,
    measure_sides,
    sides_without,
    why_not_measured,
)
from flame.core.compare.sections.frames import changed_frames
from flame.core.compare.sides import SIDES
from flame.core.compare.verdict import find_verdict
from flame.core.errors import UsageError
from flame.core.report.gate.condition import Condition, Term, terms_of
from flame.core.report.gate.decide import COMPARE, holds, limit_of, spelled
from flame.core.report.gate.percentiles import P99, fewest
from flame.core.report.gate.quantity import Quantity
from flame.core.report.table import CONTRACT
from flame.core.units import format_count, format_counted, format_value

RUN_NOISE = 2.0
"""Percent by which two runs of one program may differ in all that takes time."""


class TermDecision(NamedTuple):
    """Say what became of a term; ``holds`` is None where that cannot be decided, for ``why``.

    ``values`` are None where a trace cannot tell; ``interval`` where the term names no change.
    """

    term: Term
    holds: bool | None
    values: SideValues | None
    interval: ChangeInterval | None
    why: str

    @property
    def name(self) -> str:
        """The quantity as it is written."""
        return spelled(self.term)

    @property
    def words(self) -> str:
        """What was measured, for people."""
        values = self.values
        if values is None:
            return f"{self.name}: {self.why}"
        base, new = (_written(value, values.unit) for value in (values.base, values.new))
        if values.change is None:
            return f"{self.name} {base} → {new}"
        return f"{self.name} {base} → {new}, {values.change:+.1f} %"


class DiffDecision(NamedTuple):
    """Say what became of a condition, None where it cannot be decided, and of its terms."""

    holds: bool | None
    terms: tuple[TermDecision, ...]

    @property
    def failed(self) -> tuple[TermDecision, ...]:
        """The terms that hold, where the condition does."""
        return tuple(one for one in self.terms if one.holds) if self.holds else ()

    @property
    def undecided(self) -> tuple[TermDecision, ...]:
        """The terms that cannot be decided, where the condition cannot."""
        return tuple(one for one in self.terms if one.holds is None) if self.holds is None else ()


def parse_noise(text: str) -> float:
    """Parse what ``--run-noise`` is given, in percent: ``2%``; UsageError where it is wrong."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"--run-noise '{text}': write how much runs differ, such as 2%")
    return value


def decide(comparison: Comparison, condition: Condition, noise: float = RUN_NOISE) -> DiffDecision:
    """Decide ``condition``; ``noise`` percent is what two runs of one program may differ by.

    Raises UsageError where it compares with a wrong unit.
    """
    found = {term: _decided(comparison, term, noise) for term in terms_of(condition)}
    outcome = holds(condition, {term: one.holds for term, one in found.items()})
    return DiffDecision(outcome, tuple(found.values()))


_ROUNDED = 1e-14
"""By what part of the base percentages are off that have been rounded to doubles, at most."""


def _decided(comparison: Comparison, term: Term, noise: float) -> TermDecision:
    values, without = measure_sides(comparison, term), sides_without(comparison, term)
    if len(without) == len(SIDES):
        return TermDecision(term, None, None, None, "no frame of either side has such a name")
    if values is None:
        named = f"no frame of {without[0]} has such a name" if without else ""
        why = named or why_not_measured(comparison, term)
        return TermDecision(term, None, None, None, why)
    if not term.limit.change:
        quantity = Quantity(values.new, values.unit, values.whole)
        is_so = COMPARE[term.operator](values.new, limit_of(term, quantity))
        return TermDecision(term, is_so, values, None, "")
    if why := find_verdict(comparison).why:
        return TermDecision(term, None, values, None, f"BASE and NEW cannot be compared: {why}")
    limit = _percent_limit(term, values)
    if limit is None:
        return _without_base(term, values)
    interval = change_interval(comparison, term, values, noise)
    outcome = _beyond(term, limit, interval)
    why = "" if outcome is not None else _why(interval, noise)
    return TermDecision(term, outcome, values, interval, why)


def _percent_limit(term: Term, values: SideValues) -> float | None:
    """The limit of a change in percent of the base; None without a base."""
    if term.limit.kind == "percent":
        return term.limit.value if values.base else None
    absolute = limit_of(term, Quantity(values.base, values.unit))
    return 100 * absolute / values.base if values.base else None


def _without_base(term: Term, values: SideValues) -> TermDecision:
    """Decide a change from nothing: any part of it is infinite."""
    change = values.new and float("inf")
    limit = term.limit.value
    if term.limit.kind != "percent":
        change, limit = values.new, limit_of(term, Quantity(0.0, values.unit))
    return TermDecision(term, COMPARE[term.operator](change, limit), values, None, "")


def _beyond(term: Term, limit: float, interval: ChangeInterval) -> bool | None:
    """Whether all of the interval is on one side of the limit, and on which."""
    ends = [
        limit if math.isclose(end, limit, rel_tol=_ROUNDED, abs_tol=100 * _ROUNDED) else end
        for end in (interval.low, interval.high)
    ]
    at_ends = {COMPARE[term.operator](end, limit) for end in ends}
    return at_ends.pop() if len(at_ends) == 1 else None


def _why(interval: ChangeInterval, noise: float) -> str:
    if interval.activities and interval.spread:
        return _why_not_of_activities(interval)
    more = interval.more_steps
    if more is not None:
        return (
            f"record more: {interval.steps:,} steps now, about {more:,} needed for ± {ENOUGH:g} %"
        )
    if not math.isfinite(interval.spread):
        return f"record more: in most of the {interval.steps:,} steps there is nothing of it"
    if interval.of_runs:
        return "the runs differ too much for this limit: compare more of them"
    if interval.of_ranks:
        return (
            f"ranks of one run differ by ± {interval.spread:.1f} %, and two runs may by ± "
            f"{noise:g} %: compare several runs by --base and --new"
        )
    if not noise:
        return "the change is too close to the limit"
    return f"two runs may differ by ± {noise:g} %: compare several runs by --base and --new"


def _why_not_of_activities(interval: ChangeInterval) -> str:
    if interval.activities < fewest(P99):
        found = format_counted(interval.activities, "activity is", "activities are")
        return f"{found} too few for this percentile: {fewest(P99)} of each side are needed"
    return (
        f"{format_count(interval.activities)} activities tell it to ± {interval.spread:.1f} %, and "
        "two runs may differ: record more of them, or compare several runs by --base and --new"
    )


def _written(value: float, unit: str) -> str:
    if unit in ("ns", "bytes"):
        return format_value(value, unit)
    return f"{value:,.6g}"


_MOST_FRAMES = 5


def as_facts(text: str, comparison: Comparison, decision: DiffDecision) -> dict[str, object]:
    """Put a decision into JSON's terms: the last line that a script reads."""
    return {
        "flame_diff": CONTRACT,
        **find_verdict(comparison).facts,
        "condition": text,
        "result": decision.holds,
        "failed": [one.name for one in decision.failed],
        "undecided": {one.name: one.why for one in decision.undecided},
        "values": {one.name: _values(one) for one in decision.terms},
        "top": _largest_changes(comparison),
    }


def _largest_changes(comparison: Comparison) -> list[dict[str, object]]:
    """The frames that changed most, with their paths."""
    tree, delta = comparison.union.tree, comparison.changes.delta
    nodes = np.concatenate(changed_frames(comparison))
    nodes = nodes[np.argsort(-np.abs(delta[nodes]), kind="stable")][:_MOST_FRAMES]
    unit = "ns" if comparison.metric.unit == "ns" else "value"
    return [
        {"path": list(tree.names(node)), f"delta_{unit}": round(float(delta[node]), 3)}
        for node in nodes.tolist()
    ]


def _values(one: TermDecision) -> dict[str, object] | None:
    values, interval = one.values, one.interval
    if values is None:
        return None
    change = None if values.change is None else round(values.change, 3)
    bounds = None
    if interval is not None and math.isfinite(interval.low + interval.high):
        bounds = [round(interval.low, 3), round(interval.high, 3)]
    return {
        "base": values.base,
        "new": values.new,
        "change_percent": change,
        "interval_percent": bounds,
    }
