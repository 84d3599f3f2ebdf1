"""Say in one line whether the new side is slower, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from flame.core.columns import F8
from flame.core.compare.basis import periods_of
from flame.core.compare.comparable import compare_facts
from flame.core.compare.comparison import Comparison
from flame.core.compare.evidence import (
    CHANCE,
    FEWEST_RUNS,
    FEWEST_STEPS,
    SAMPLES,
    EvidenceLevel,
    NodeVerdict,
    find_evidence,
)
from flame.core.compare.statistics import medians, rank_test, ratio_interval, shift
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import Metric
from flame.core.units import format_count, format_pair, format_value, sign_of

Outcome = Literal["regression", "improvement", "same", "unclear", "not comparable", "identical"]

STEP = "step.p50_ns"
"""The measure where values are compared per step: the median of their periods."""

SHARE = "share_percent"
"""The measure where parts of each side's own total are compared, of which all is the same."""


class Measured(NamedTuple):
    """Hold a measure of both sides, ``of`` so much ``per`` unit, and how sure the change is.

    ``interval`` is where 95 % of repetitions would find the change, in percent; None where that is
    not known. ``number`` is how many samples of the kind of ``evidence`` each side has; ``why``
    says why there are none. ``beyond_noise`` is whether a test says so.
    """

    measure: str
    title: str
    unit: str
    per: str
    base: float
    new: float
    evidence: EvidenceLevel
    number: tuple[int, int]
    interval: tuple[float, float] | None
    beyond_noise: bool
    why: str

    @property
    def change(self) -> float | None:
        """By how much percent new is above base; None where base is nothing."""
        return 100 * (self.new - self.base) / self.base if self.base else None


@dataclass(frozen=True)
class RunVerdict:
    """Say what became of what is ``measured``; ``why`` sides are not comparable, else empty."""

    outcome: Outcome
    measured: Measured
    recordings: int
    why: str = ""

    @property
    def words(self) -> str:
        """The verdict in a line."""
        if self.why:
            return f"BASE and NEW cannot be compared: {self.why}"
        return "".join(_words(self))

    @property
    def facts(self) -> dict[str, object]:
        """The verdict in JSON's terms."""
        found = self.measured
        return {
            "verdict": self.outcome,
            "measure": found.measure,
            "base": found.base,
            "new": found.new,
            "change_percent": found.change,
            "interval_percent": None if found.interval is None else list(found.interval),
            "evidence": found.evidence.name.lower(),
            "n": list(found.number),
        }


@kept
def find_verdict(comparison: Comparison) -> RunVerdict:
    """Judge the whole: the period of steps where values are per step, else what is compared."""
    facts = compare_facts(comparison)
    measured = _steps(comparison) if comparison.basis.kind == "step" else _root(comparison)
    recordings = len(comparison.sides.runs)
    if facts.identical:
        return RunVerdict("identical", measured, recordings)
    if not facts.is_comparable:
        why = next(note.text for note in facts.notes if note.kind == "no")
        return RunVerdict("not comparable", measured, recordings, why)
    return RunVerdict(_outcome(measured, comparison.limits.of_base), measured, recordings)


def _outcome(found: Measured, least: float) -> Outcome:
    grew = found.new > found.base
    large = abs(found.new - found.base) >= least * found.base
    if found.beyond_noise and large and found.new != found.base:
        return "regression" if grew else "improvement"
    if (
        found.interval is not None
        and -100 * least <= found.interval[0] <= found.interval[1] <= 100 * least
    ):
        return "same"
    return "unclear"


def _root(comparison: Comparison) -> Measured:
    """Measure what all nodes add up to; how sure that is tells the root."""
    metric, changes = comparison.union.tree.metric, comparison.changes
    found = find_evidence(comparison)
    low, high = 100 * float(found.low[0]), 100 * float(found.high[0])
    level = EvidenceLevel(int(found.level[0]))
    of_shares = comparison.basis.kind == "share"
    return Measured(
        SHARE if of_shares else _measure_of(metric),
        metric.title,
        "percent" if of_shares else metric.unit,
        comparison.basis.words,
        float(changes.base.value[0]),
        float(changes.new.value[0]),
        level,
        (int(found.base[0]), int(found.new[0])),
        (low, high) if np.isfinite(low + high) else None,
        bool(found.verdict[0] == NodeVerdict.CHANGED),
        "" if level else found.why or "too little of it is in activities that match",
    )


def _measure_of(metric: Metric) -> str:
    name = "gpu_time" if metric.key == "gpu" else metric.key
    return f"{name}_{metric.unit}" if metric.unit in ("ns", "bytes") else name


# Steps


def _steps(comparison: Comparison) -> Measured:
    """Measure the median of the periods of steps; of several runs the median of theirs."""
    runs = [
        periods_of(run, comparison.selection).period.astype(np.float64)[None]
        for run in comparison.sides.runs
    ]
    split = len(comparison.sides.base)
    sides = [np.concatenate(some, axis=1) for some in (runs[:split], runs[split:])]
    level = EvidenceLevel.STEPS
    if min(split, len(runs) - split) >= FEWEST_RUNS:
        level, of_runs = EvidenceLevel.RUNS, np.concatenate([*map(medians, runs)])[None]
        sides = [of_runs[:, :split], of_runs[:, split:]]
    base, new = (float(medians(side)[0]) for side in sides)
    number = sides[0].shape[1], sides[1].shape[1]
    why = _why_not(level, min(number))
    interval, beyond = (None, False) if why else _tested(sides[0], sides[1], level)
    level = EvidenceLevel.NONE if why else level
    return Measured(STEP, "", "ns", "per step", base, new, level, number, interval, beyond, why)


def _why_not(level: EvidenceLevel, fewest: int) -> str:
    if level == EvidenceLevel.STEPS and fewest < FEWEST_STEPS:
        return f"fewer than {FEWEST_STEPS} steps a side"
    return ""


def _tested(base: F8, new: F8, level: EvidenceLevel) -> tuple[tuple[float, float] | None, bool]:
    """The interval in percent, and whether the change is beyond noise."""
    exact = level == EvidenceLevel.RUNS
    beyond = bool(rank_test(base, new, exact).p[0] <= CHANCE)
    usual = float(medians(base)[0])
    if not usual:
        return None, beyond
    if exact:
        low, high = (100 * float(bound[0]) / usual for bound in shift(base, new)[1])
    else:
        low, high = (100 * (float(bound[0]) - 1) for bound in ratio_interval(base, new))
    return (low, high), beyond


# Words


def _words(verdict: RunVerdict) -> Iterator[str]:
    found, per = verdict.measured, f" {verdict.measured.per}".rstrip()
    if verdict.outcome == "identical":
        of = "" if found.measure == SHARE else f": {format_value(found.new, found.unit)}{per}"
        yield f"BASE and NEW are identical{of}"
        return
    if found.measure == SHARE:
        yield f"parts of each side's own {found.title} are compared: all of it says nothing"
        yield f" · no evidence: {found.why}" if found.why else ""
        return
    yield f"NEW {_comparison_in_words(verdict)}: "
    yield f"{format_pair(found.base, found.new, found.unit)}{per}"
    if found.change is not None:
        yield f", {_signed(found.change)} %"
    if found.interval is not None:
        yield f" ({_signed(found.interval[0])} … {_signed(found.interval[1])})"
    if found.why:
        yield f" · no evidence: {found.why}"
        return
    base, new = map(format_count, found.number)
    yield f", {base} and {new} {SAMPLES[found.evidence]}"
    if found.evidence != EvidenceLevel.RUNS:
        yield f" · in these {'two ' if verdict.recordings == 2 else ''}recordings"


def _signed(percent: float) -> str:
    """A change with its sign; one that is too small to be written has none."""
    rounded = round(percent, 1)
    return f"{sign_of(rounded)}{abs(rounded):.1f}"


def _comparison_in_words(verdict: RunVerdict) -> str:
    """What is said of NEW: ``is slower``, ``may take less GPU time``."""
    found = verdict.measured
    much, less = ("much", "less") if found.unit in ("ns", "bytes") else ("many", "fewer")
    if verdict.outcome == "same" or found.base == found.new:
        how = "fast" if found.measure == STEP else f"{much} {found.title}"
        grade = f"as {how} as BASE"
    elif found.measure == STEP:
        grade = "slower" if found.new > found.base else "faster"
    else:
        grade = f"{'more' if found.new > found.base else less} {found.title}"
    verb = "be" if found.measure == STEP else "take" if found.unit == "ns" else "have"
    if verdict.outcome == "unclear":
        return f"may {verb} {grade}"
    return f"{_SAID[verb]} {grade}"


_SAID = {"be": "is", "take": "takes", "have": "has"}
