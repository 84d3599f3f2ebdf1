"""Find the frames that take a rank far longer than the others: no collectives, robustly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import NamedTuple, TypeVar

import numpy as np

from flame.core.columns import F8, I4, I8, Bool, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.ranks.spread import ValuesOf, block_size

Values = TypeVar("Values", I8, F8)

DEVIATIONS = 6.0
"""More deviations than this above the median are beyond chance."""

LEAST_SHARE = 0.003
"""Of the GPU time of the median rank: less than this is not worth telling."""

FLOOR = 0.005
"""A deviation is not less than this part of the median, so what is told is 3 % above it or more."""

SIGMA = 1.4826
"""Times the median absolute deviation is the standard deviation of a normal distribution."""


_FEW_RANKS = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""By how much `SIGMA` is to be corrected for few values (Croux and Rousseeuw, COMPSTAT 1992)."""

_MOST_OF = 2 / 3
"""A frame is told in place of the one around it where it has this part of its excess or more."""


class Robust(NamedTuple):
    """Hold the median of rows, and how far values are from it, f8[n] each.

    The median is the mean of the two in the middle: of two ranks neither is the odd one out.
    """

    median: F8
    deviation: F8

    @classmethod
    def of(cls, values: Column, unsure: F8 | float = 0.0) -> Robust:
        """Measure ``values``, i8[n, ranks]; each may be as much as ``unsure`` more than it says.

        Then both are the most that they may be.
        """
        median = np.median(values, axis=1)
        absolute = np.median(np.abs(values - median[:, None]), axis=1)
        most = median + unsure
        return cls(most, np.maximum(SIGMA * (absolute + unsure), FLOOR * most))

    def relative(self, least: float = 0.0) -> F8:
        """The deviations as parts of the medians, of those above ``least``."""
        chosen = self.median > least
        return self.deviation[chosen] / self.median[chosen]


@dataclass(frozen=True, eq=False)
class Outliers:
    """Hold frames that take some ranks far longer, the largest excess first.

    ``worst`` is the place of the first rank with the most, ``value``, which is ``excess`` above the
    ``median`` of the ranks, so many ``deviations``. ``is_far`` bool[n, ranks] are all ranks that
    are. What is ``unsure`` has been taken off the excess. ``is_beyond`` bool[n] are those that are
    beyond what frames of the run vary, too: see `noise_of`.
    """

    node: I8
    worst: I8
    value: I8
    median: F8
    excess: F8
    deviations: F8
    is_far: Bool
    is_beyond: Bool

    def __len__(self) -> int:
        return len(self.node)


def outliers_among(node: I8, values: I8, gpu_time: float, unsure: F8 | float = 0.0) -> Outliers:
    """Find the outliers among ``node`` with ``values``, i8[n, ranks].

    A rank is one where the frame is there in half of the ranks or more, the rank is more than
    `DEVIATIONS` above the median, and its excess more than `LEAST_SHARE` of ``gpu_time``, that of
    the median rank. Where values may be as much as ``unsure`` (f8[n]) more than they are, it is one
    whatever they are.
    """
    robust = Robust.of(values, unsure)
    excess = values - robust.median[:, None]
    far = excess > DEVIATIONS * robust.deviation[:, None]
    far &= excess > LEAST_SHARE * gpu_time
    far &= (2 * np.count_nonzero(values, axis=1) >= values.shape[1])[:, None]
    found = np.flatnonzero(far.any(axis=1))
    worst = values[found].argmax(axis=1)
    most = excess[found, worst]
    order = np.argsort(-most, kind="stable")
    found, worst, most = found[order], worst[order], most[order]
    return Outliers(
        node[found],
        worst,
        values[found, worst],
        robust.median[found],
        most,
        most / np.maximum(robust.deviation[found], 1e-9),
        far[found],
        np.ones(len(found), bool),
    )


def noise_of(relative: F8, ranks: int) -> float:
    """Tell the noise of a run by the ``relative`` deviations of its frames, parts of medians.

    The deviation of one frame over few ranks is small by chance now and then: in runs of 8 ranks
    with noise of 2 % the definition finds an outlier in 3 of 10. That of all frames of a run
    together is not: beyond their median there was one in none of 400.
    """
    if not len(relative):
        return 0.0
    return _FEW_RANKS.get(ranks, ranks / (ranks - 0.8)) * float(np.median(relative))


def find_outliers(
    values_of: ValuesOf, total: I8, end: I4, gpu_times: I8, unsure: int = 0
) -> Outliers:
    """Find the outliers among the nodes of a tree in preorder, but its root.

    ``values_of`` looks up what ranks have of nodes, ``total`` (i8[nodes]) is at least the sum of
    these; ``gpu_times`` (i8[ranks]) are those of the ranks. ``unsure`` is how much of a rank is
    not known at most.

    Few nodes are looked at. An excess is no more than the value of the rank that has it, so that
    has more than ``LEAST_SHARE`` of the median rank's GPU time: at most 333 nodes of one depth on
    a median rank, and mostly the same ones on all. What is below a node has no more than the node.
    So nodes are taken in order of their total, which no descendant has more of, and below one of
    which no rank has enough nothing is looked at.
    """
    ranks, gpu_time = len(gpu_times), float(np.median(gpu_times)) if len(gpu_times) else 0.0
    least, size = LEAST_SHARE * gpu_time, block_size(ranks)
    left = np.flatnonzero(total > least)
    left = left[left > 0]
    left = left[np.argsort(-total[left], kind="stable")]
    light = np.zeros(len(total) + 1, np.int64)
    found = [outliers_among(left[:0], np.zeros((0, max(ranks, 1)), np.int64), gpu_time)]
    noise = [np.zeros(0)]
    while len(left):
        block, left = left[:size], left[size:]
        values = values_of(block)
        lacking = np.minimum(total[block] - values.sum(axis=1), unsure)
        found.append(outliers_among(block, values, gpu_time, lacking.astype(np.float64)))
        noise.append(Robust.of(values).relative(least))
        few = block[values.max(axis=1) + lacking <= least]
        np.add.at(light, few, 1)
        np.add.at(light, end[few], -1)
        left = left[np.cumsum(light)[left] == 0]
    return _beyond(_joined(found), np.concatenate(noise), ranks)


def _beyond(found: Outliers, noise: F8, ranks: int) -> Outliers:
    """Mark what is beyond the ``noise`` of all frames."""
    if not len(found):
        return found
    deviation = noise_of(noise, ranks) * found.median
    return replace(found, is_beyond=found.excess > DEVIATIONS * deviation)


def _joined(parts: list[Outliers]) -> Outliers:
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (each.name for each in fields(Outliers))
    }
    order = np.lexsort((columns["node"], -columns["excess"]))
    return Outliers(**{name: column[order] for name, column in columns.items()})


def to_tell(outliers: Outliers, end: I4) -> Bool:
    """Choose those beyond noise that are to be told, bool[n]; of what is nested and of a rank one.

    That is the innermost frame that has most of the excess: one in which it is spread over several
    is told itself, and what is in it is not.
    """
    told, until = np.zeros(len(outliers), bool), np.zeros(outliers.is_far.shape[1], np.int64)
    order = np.argsort(outliers.node, kind="stable")
    order = order[outliers.is_beyond[order]]
    nodes, worst, excess = outliers.node[order], outliers.worst[order], outliers.excess[order]
    for at, row in enumerate(order.tolist()):
        below = slice(at + 1, int(np.searchsorted(nodes, end[nodes[at]])))
        inner = excess[below][worst[below] == worst[at]]
        if nodes[at] >= until[worst[at]] and not (inner >= _MOST_OF * excess[at]).any():
            told[row], until[worst[at]] = True, end[nodes[at]]
    return told


def without_collectives(
    values_of: Callable[[I8], Values], end: I4, is_collective: Bool
) -> Callable[[I8], Values]:
    """Look up what ranks have of nodes without the collectives in, below and above them.

    ``is_collective`` bool[nodes] has none below another. Who waits in a collective for a rank of
    its group has more time in all frames around it, and is no outlier for that.
    """
    nodes = np.flatnonzero(is_collective)
    if not len(nodes):
        return values_of
    own = values_of(nodes)
    before = np.concatenate([np.zeros_like(own[:1]), np.cumsum(own, axis=0)])
    reach = np.maximum.accumulate(np.where(is_collective, end, 0))

    def work_of(chosen: I8) -> Values:
        first, last = np.searchsorted(nodes, chosen), np.searchsorted(nodes, end[chosen])
        work: Values = values_of(chosen) - (before[last] - before[first])
        work[chosen < reach[chosen]] = 0
        return work

    return work_of
