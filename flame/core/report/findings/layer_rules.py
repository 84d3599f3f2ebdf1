"""Judge the layers of a model: those of one kind that take very different times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.iterations import iteration_of_activities
from flame.core.columns import I8, distinct, sum_by
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.program.layers import Layers, layer_place, measure_layers, stacks_below
from flame.core.units import format_ns

FEWEST = 4
SAME = 0.02
"""Layers of equal work differ by so much in their number of activities at most."""

UNEVEN = 1.3
LEAST = 0.1
"""Of the GPU time of the GPU, layers that are looked at take so much at least."""

ITERATIONS = 8
_FEW_ITERATIONS = (
    f"there are fewer than {ITERATIONS} iterations in which to see whether it is always the same "
    "layers"
)
AGREEMENT = 0.5
"""With so many iterations the layers that take longest have to be the same in all of them."""


class UnevenLayers(NamedTuple):
    """Say of a family of layers how much of their time is above their median, ns.

    ``longest`` is the place in `Layers` of that which takes most, ``number`` how many there are,
    ``agreed`` whether they rank alike in enough iterations.
    """

    family: int
    above: int
    number: int
    total: int
    median: int
    most: int
    longest: int
    agreed: bool


def uneven_layers(facts: RuleFacts) -> Finding | Abstained | None:
    """Tell the family of layers that loses most by some that take longer than half of them."""
    layers = measure_layers(facts.scope)
    judged = [_judge(facts, layers, family) for family in range(len(layers.names))]
    found = [one for one in judged if isinstance(one, UnevenLayers)]
    if not found:
        return next((one for one in judged if isinstance(one, Abstained)), None)
    worst = max(found, key=lambda one: one.above)
    name, index = layers.names[worst.family], int(layers.index[worst.longest])
    return facts.finding(
        "uneven-layers",
        "Layers of one kind take very different times",
        f"of {worst.number} layers {name} number {index} takes longest, "
        f"{format_ns(worst.most)}, half of them at most {format_ns(worst.median)}; what all take "
        f"above that is {facts.share(worst.above)}",
        "four layers or more with equal numbers of activities (2 %) take 10 % of GPU time or more, "
        "the longest 1.3 times their median, and in 8 iterations or more it is the same ones",
        bound=min(worst.above, facts.budget.compute),
        part="compute",
        evidence=(
            FindingNumber("layers", worst.number, "count"),
            FindingNumber("the longest", worst.most, "ns"),
            FindingNumber("half of them take at most", worst.median, "ns"),
        ),
        place=layer_place(facts.scope, int(layers.stack[worst.longest])),
        caution="" if worst.agreed else _FEW_ITERATIONS,
    )


def _judge(facts: RuleFacts, layers: Layers, family: int) -> UnevenLayers | Abstained | None:
    """Compare the layers of a family by what they compute on the GPU."""
    table, rows = facts.scope.profile.activities, facts.computing
    below = stacks_below(facts.scope, layers, family)
    of_range, of_module = below[table.groups.nvtx], below[table.groups.python]
    of_group = np.where(of_range < 0, of_module, of_range)
    some = np.flatnonzero(of_group >= 0)
    time = sum_by(of_group[some], facts.computed[some], len(layers.index))
    if int(time.sum()) < LEAST * facts.gpu_time:
        return None
    of = of_group[table.groups.of_row[rows]]
    rows, of = rows[of >= 0], of[of >= 0]
    count = np.bincount(of, minlength=len(layers.index))
    used = np.flatnonzero(count)
    if len(used) < FEWEST:
        return None
    median, most = _median(time[used]), int(time[used].max())
    if most < UNEVEN * median:
        return None
    if int(np.ptp(count[used])) > SAME * _median(count[used]):
        least, largest = int(count[used].min()), int(count[used].max())
        why = f"layers {layers.names[family]} run {least:,} to {largest:,} activities: other work"
        return Abstained("uneven-layers", why)
    agree = _agree(facts, rows, of)
    if agree is False:
        why = f"in other iterations other layers {layers.names[family]} take longest"
        return Abstained("uneven-layers", why)
    above = int(np.maximum(time[used] - median, 0).sum())
    longest = int(used[np.argmax(time[used])])
    known = agree is not None
    return UnevenLayers(family, above, len(used), int(time.sum()), median, most, longest, known)


def _median(values: I8) -> int:
    return int(np.sort(values)[(len(values) + 1) // 2 - 1])


def _agree(facts: RuleFacts, rows: I8, layer: I8) -> bool | None:
    """Whether layers rank alike in all iterations that have all of them; None of too few."""
    profile = facts.scope.profile
    of = iteration_of_activities(profile)[rows] if len(profile.iterations) else rows[:0]
    if not len(of):
        return None
    used, place = distinct(layer[of >= 0])
    time = np.zeros((len(profile.iterations), len(used)), np.int64)
    np.add.at(time, (of[of >= 0], place), profile.activities.duration[rows[of >= 0]])
    time = time[(time > 0).all(axis=1)]
    return None if len(time) < ITERATIONS else concordance(time) >= AGREEMENT


def concordance(values: I8) -> float:
    """Compute Kendall's W of how judges, the rows, rank things, the columns: 0..1.

    Of equal values the first ranks lower.
    """
    judges, things = len(values), values.shape[1]
    ranks = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1, kind="stable")
    sums = ranks.sum(axis=0)
    spread = float(((sums - sums.mean()) ** 2).sum())
    return float(12 * spread / (judges**2 * (things**3 - things)))
