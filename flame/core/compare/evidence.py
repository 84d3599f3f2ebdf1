"""Tell which nodes of a comparison have changed beyond noise, and what that is known from."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, U1, Bool, Column, order_by, sum_by
from flame.core.compare.changes import Changes, Limits, large_changes
from flame.core.compare.comparison import Comparison
from flame.core.compare.over_ranks.collective_noise import noise_in_common
from flame.core.compare.over_ranks.rank_samples import rank_samples, why_no_spread
from flame.core.compare.samples import (
    STRETCHES,
    ActivitySamples,
    HeaviestNodes,
    Samples,
    activity_samples,
    nodes_by_step,
    run_samples,
    step_samples,
)
from flame.core.compare.sides import BASE, NEW, KeptRun
from flame.core.compare.statistics import (
    Interval,
    adjusted,
    p_of_deviations,
    rank_strata,
    rank_test,
    ratio_interval,
    shift,
)
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.ranks.rank_diff import DEVIATIONS, compare_ranks

FEWEST_RUNS, FEWEST_STEPS, FEWEST_ACTIVITIES = 4, 8, 20
"""What each side needs for evidence of a level."""

CHANCE = 0.05
_CHANCE_OF_ACTIVITIES = 0.001
_SHARE_ABOVE = 0.2
"""Activities have changed where one of new is above one of base with 0.5 and this, or more."""

_DEVIATIONS = 4.0
"""Standard deviations by which numbers of activities differ that were drawn by chance: 1 in 16,000.
"""

_T = 2.04
"""95 % of Student's distribution are within so many deviations, of `STRETCHES` values."""


class EvidenceLevel(IntEnum):
    """Say what a verdict is known from, the best last."""

    NONE, ACTIVITIES, RANKS, STEPS, RUNS = range(5)


SAMPLES = {
    EvidenceLevel.ACTIVITIES: "activities",
    EvidenceLevel.RANKS: "ranks",
    EvidenceLevel.STEPS: "steps",
    EvidenceLevel.RUNS: "runs",
}
"""What samples of a level are called."""


_KINDS = {"ncu": "reports of Nsight Compute", "memory snapshot": "memory snapshots"}
"""What files of a format without activities are called, where they are not files of stacks."""


class NodeVerdict(IntEnum):
    """Say what is known of a node."""

    UNCLEAR, SAME, CHANGED = range(3)


class NodeTests(NamedTuple):
    """Hold what is known of each node: columns as in `Evidence`; ``why`` there is nothing."""

    level: U1
    p: F8
    adjusted: F8
    low: F8
    high: F8
    probability: F8
    base: I8
    new: I8
    why: str


@dataclass(frozen=True, eq=False)
class Evidence:
    """Say of each node of a union tree what has changed beyond noise, and how sure that is.

    | column | dtype | meaning |
    |---|---|---|
    | level | u1 | `EvidenceLevel` |
    | verdict | u1 | `NodeVerdict` |
    | p, adjusted | f8 | of the rank test; adjusted by Benjamini and Hochberg for all tested nodes |
    | low, high | f8 | 95 % interval of the change, as a part of the base: 0.05 is + 5 %; of ranks |
    | | | the change of medians, and the `DEVIATIONS` that ranks differ by to either side |
    | probability | f8 | how likely a sample of new is above one of base, 0..1 |
    | base, new | i8 | the number of samples of each side |

    Those in f8 are nan where they are not known. ``why`` is why there is no evidence at all.
    """

    level: U1
    verdict: U1
    p: F8
    adjusted: F8
    low: F8
    high: F8
    probability: F8
    base: I8
    new: I8
    why: str


@kept
def find_evidence(comparison: Comparison) -> Evidence:
    """Judge all nodes of ``comparison``: `CHANGED` is what a test passes and is large enough.

    Tests are kept for as long as ``comparison`` is.
    """
    found = test_nodes(comparison)
    verdict = judge_nodes(comparison, found, comparison.limits)
    return Evidence(found.level, verdict, *found[1:])


def judge_nodes(comparison: Comparison, tests: NodeTests, limits: Limits) -> U1:
    """Judge each node by its tests: what changed is also as large as ``limits`` say, u1[nodes]."""
    changes, itself = comparison.changes, limits.of_base
    with np.errstate(invalid="ignore"):
        above = tests.probability - 0.5
        of_activities = tests.level == EvidenceLevel.ACTIVITIES
        longer = (tests.p <= _CHANCE_OF_ACTIVITIES) & (np.abs(above) > _SHARE_ABOVE)
        passes = np.where(of_activities, longer, tests.adjusted <= CHANCE)
        passes &= np.sign(above) == np.sign(changes.delta)
        beyond_ranks = np.where(changes.delta > 0, tests.low > 0, tests.high < 0)
        passes |= (tests.level == EvidenceLevel.RANKS) & beyond_ranks
        beyond = (tests.low > itself) | (tests.high < -itself)
        more = of_activities & beyond & _counts_differ(changes)
        changed = (passes | more) & large_changes(changes, limits, comparison.largest)
        same = (tests.low >= -itself) & (tests.high <= itself)
    verdict = np.where(same, NodeVerdict.SAME, NodeVerdict.UNCLEAR)
    judged: U1 = np.where(changed, NodeVerdict.CHANGED, verdict).astype(np.uint8)
    return judged


def _counts_differ(changes: Changes) -> Bool:
    """Mark the nodes whose numbers of activities differ by more than chance picks, bool[nodes]."""
    base, new = changes.base.scaled_count, changes.new.scaled_count
    # Of numbers per step the recorded ones say how sure they are.
    recorded = (changes.base.count + changes.new.count).astype(np.float64)
    part = np.abs(new - base) / np.maximum(base + new, np.finfo(float).tiny)
    differ: Bool = part * recorded > _DEVIATIONS * np.sqrt(recorded)
    return differ


# Tests


class _Found(NamedTuple):
    """Hold what tests found of some nodes; ``known`` bool[k] marks those it is known of."""

    level: EvidenceLevel
    known: Bool
    p: F8
    interval: Interval
    probability: F8
    base: Column
    new: Column


@kept
def test_nodes(comparison: Comparison) -> NodeTests:
    """Test the heaviest nodes by the best samples that both sides have."""
    level = _best_level(comparison)
    if level == EvidenceLevel.NONE:
        return _nothing(comparison, _why_none(comparison))
    if level == EvidenceLevel.STEPS:
        nodes = nodes_by_step(comparison)
        return _spread(comparison, nodes, _by_steps(step_samples(comparison, nodes)))
    nodes = HeaviestNodes.of(comparison)
    if level == EvidenceLevel.RANKS:
        return _spread(comparison, nodes, _by_ranks(comparison, nodes))
    if level == EvidenceLevel.RUNS:
        found = _by_runs(comparison, nodes, run_samples(comparison, nodes))
        return _spread(comparison, nodes, found)
    return _spread(
        comparison, nodes, _by_activities(comparison, nodes, activity_samples(comparison))
    )


test_nodes.__test__ = False  # type: ignore[attr-defined]


def _best_level(comparison: Comparison) -> EvidenceLevel:
    sides, basis = comparison.sides, comparison.basis
    if min(len(sides.base), len(sides.new)) >= FEWEST_RUNS:
        return EvidenceLevel.RUNS
    if sides.has_summary:
        return EvidenceLevel.NONE if why_no_spread(comparison) else EvidenceLevel.RANKS
    of = np.array(sides.side_of_run)
    if basis.kind == "step":
        steps = np.bincount(of, basis.divisor)
        if steps.min() >= FEWEST_STEPS:
            return EvidenceLevel.STEPS
    return EvidenceLevel.NONE if _why_none(comparison) else EvidenceLevel.ACTIVITIES


def _why_none(comparison: Comparison) -> str:
    """Why activities tell nothing; empty where they may."""
    fewest = f"fewer than {FEWEST_RUNS} runs a side"
    if comparison.sides.has_summary:
        return f"{fewest}, and {why_no_spread(comparison)}"
    if any(isinstance(run, KeptRun) for run in comparison.sides.runs):
        return f"{fewest}, fewer than {FEWEST_STEPS} iterations, and kept bases have no activities"
    if not all(run.has_rows for run in comparison.sides.runs):
        return (
            f"{fewest}, and {_kinds_without_rows(comparison)} have nothing else to tell noise from"
        )
    if comparison.union.tree.metric.table != "gpu":
        return f"{fewest}, and fewer than {FEWEST_STEPS} iterations"
    return f"{fewest}, and shares say nothing of times" if comparison.basis.kind == "share" else ""


def _kinds_without_rows(comparison: Comparison) -> str:
    """Name the kinds of files that have no activities: ``files of stacks``."""
    without = [run.profile for run in comparison.sides.runs if not run.has_rows]
    formats = [one.meta.format for profile in without for one in profile.sources or [profile]]
    kinds = (_KINDS.get(one, "files of stacks") for one in formats)
    return " and ".join(dict.fromkeys(kinds))


def _nothing(comparison: Comparison, why: str) -> NodeTests:
    size = len(comparison.union)
    unknown, none = np.full(size, np.nan), np.zeros(size, np.int64)
    level = np.full(size, EvidenceLevel.NONE, np.uint8)
    return NodeTests(level, unknown, unknown, unknown, unknown, unknown, none, none, why)


def _spread(comparison: Comparison, nodes: HeaviestNodes, found: _Found) -> NodeTests:
    """Say of all nodes what was found of some, and of the chains that these begin."""
    if not found.known.any():
        why = (
            f"fewer than {FEWEST_RUNS} runs, {FEWEST_STEPS} iterations, "
            f"and {FEWEST_ACTIVITIES} activities that match, a side"
        )
        return _nothing(comparison, why)

    known = np.append(found.known, False)[nodes.place]

    def spread(values: Column) -> F8:
        return np.where(known, np.append(values, np.nan)[nodes.place], np.nan)

    def counts(values: Column) -> I8:
        return np.where(known, np.append(values, 0)[nodes.place], 0).astype(np.int64)

    return NodeTests(
        np.where(known, found.level, EvidenceLevel.NONE).astype(np.uint8),
        spread(found.p),
        spread(adjusted(np.where(found.known, found.p, np.nan))),
        spread(found.interval.low),
        spread(found.interval.high),
        spread(found.probability),
        counts(found.base),
        counts(found.new),
        "",
    )


def _by_steps(samples: Samples) -> _Found:
    found = rank_test(samples.base, samples.new)
    interval = ratio_interval(samples.base, samples.new)
    change = Interval(interval.low - 1, interval.high - 1)
    return _of_samples(EvidenceLevel.STEPS, samples, found.p, change, found.probability)


def _by_runs(comparison: Comparison, nodes: HeaviestNodes, samples: Samples) -> _Found:
    found = rank_test(samples.base, samples.new, exact=True)
    _, bounds = shift(samples.base, samples.new)
    usual = comparison.changes.base.value[nodes.node]
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (np.where(usual > 0, bound / usual, np.nan) for bound in bounds)
        low = np.maximum(low, -1.0)  # nothing takes less than no time
    return _of_samples(EvidenceLevel.RUNS, samples, found.p, Interval(low, high), found.probability)


def _by_ranks(comparison: Comparison, nodes: HeaviestNodes) -> _Found:
    """Compare medians by how far ranks are apart, and collectives from one to the next."""
    samples = rank_samples(comparison, nodes.node)
    found = compare_ranks(samples.base, samples.new)
    in_common = noise_in_common(comparison)[nodes.node]
    room = DEVIATIONS * np.hypot(found.deviation, in_common) + samples.unsure
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = ((found.change + far) / found.base_median for far in (-room, room))
        low = np.maximum(low, -1.0)  # nothing takes less than no time
    size, unknown = len(room), np.full(len(room), np.nan)
    numbers = (np.full(size, side.shape[1]) for side in (samples.base, samples.new))
    known = np.ones(size, bool)
    return _Found(EvidenceLevel.RANKS, known, unknown, Interval(low, high), unknown, *numbers)


def _of_samples(
    level: EvidenceLevel, samples: Samples, p: F8, interval: Interval, probability: F8
) -> _Found:
    size, base, new = len(p), samples.base.shape[1], samples.new.shape[1]
    numbers = (np.full(size, base), np.full(size, new))
    return _Found(level, samples.complete, p, interval, probability, *numbers)


# Activities


def _by_activities(
    comparison: Comparison, nodes: HeaviestNodes, samples: ActivitySamples
) -> _Found:
    """Test nodes by the strata of activities below them, of which each counts by its time.

    The strata that both sides have enough of must be half of the time of either at least.
    """
    counts = np.bincount(2 * samples.stratum + samples.is_new, minlength=2 * samples.strata)
    enough = counts.reshape(-1, 2).min(axis=1) >= FEWEST_ACTIVITIES
    rows = np.flatnonzero(enough[samples.stratum])
    stratum = (np.cumsum(enough) - 1)[samples.stratum[rows]]
    value, is_new, size = samples.value[rows], samples.is_new[rows], int(enough.sum())
    found = rank_strata(stratum, value, is_new, size)
    node = np.zeros(size, np.int64)
    node[stratum] = samples.node[rows]

    def sums(values: Column) -> Column:
        below: Column = nodes.sums(np.zeros(size, np.int64), node, values, 1)[0]
        return below

    times = [sum_by(stratum[side], value[side], size) for side in (~is_new, is_new)]
    known = np.ones(len(nodes.node), bool)
    for time, whole in zip(times, (comparison.changes.base, comparison.changes.new), strict=True):
        known &= 2 * sums(time) >= np.maximum(whole.total[nodes.node], 1)
    weight = (times[0] + times[1]) / max(int(times[0].sum() + times[1].sum()), 1)
    above = sums(weight * (found.probability - 0.5))
    variance = np.maximum(sums(weight**2 * found.variance), 0)
    p = p_of_deviations(above, variance, sums(weight * found.continuity))
    with np.errstate(divide="ignore", invalid="ignore"):
        probability = 0.5 + above / sums(weight)
    interval = _interval_of_activities(comparison, nodes, samples)
    numbers = (sums(found.base), sums(found.new))
    return _Found(EvidenceLevel.ACTIVITIES, known, p, interval, probability, *np.rint(numbers))


def _interval_of_activities(
    comparison: Comparison, nodes: HeaviestNodes, samples: ActivitySamples
) -> Interval:
    """The interval of the change, the numbers of activities being what they are.

    How far a side may be off is told by stretches of time: by how much longer, or shorter, than
    usually the activities in each are, from one to the next. For neighbours are alike, and so are
    kernels at a time.
    """
    residual = _residuals(samples)
    runs, of = len(comparison.sides.runs), np.array(comparison.sides.side_of_run)
    off = nodes.sums(samples.stretch, samples.node, residual, runs * STRETCHES)
    steps = np.diff(off.reshape(runs, STRETCHES, -1), axis=1)
    changes, variance = comparison.changes, np.zeros(len(nodes.node))
    with np.errstate(divide="ignore", invalid="ignore"):
        for side, sums in ((BASE, changes.base), (NEW, changes.new)):
            squares = (steps[of == side] ** 2).sum(axis=(0, 1))
            spread = squares / 2 * STRETCHES / (STRETCHES - 1)
            variance += spread / sums.total[nodes.node].astype(np.float64) ** 2
        ratio = (changes.new.value / changes.base.value)[nodes.node]
        wide = np.exp(_T * np.sqrt(variance))
        return Interval(ratio / wide - 1, ratio * wide - 1)


def _residuals(samples: ActivitySamples) -> F8:
    """How much longer each activity took than usually in its stratum, f8[n].

    Where both sides have as many of a stratum, the program is thought to do the same: each of new
    is measured by the one of base in its place, whose own deviations are no noise then.
    """
    key, value = 2 * samples.stratum + samples.is_new, samples.value
    counts = np.bincount(key, minlength=2 * samples.strata).reshape(-1, 2)
    means = sum_by(key, value, counts.size) / np.maximum(counts.ravel(), 1)
    residual: F8 = value - means[key]
    paired = (counts[:, 0] == counts[:, 1])[samples.stratum]
    order = order_by([key])
    order = order[paired[order]]
    is_new = samples.is_new[order]
    # Those of one side follow those of the other, stratum by stratum, in the same order.
    base, new = order[~is_new], order[is_new]
    residual[new] -= residual[base]
    residual[base] = 0
    return residual
