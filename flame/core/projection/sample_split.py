"""Split the value of kernels over instructions and stall reasons by PC samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column, runs, stretches, sum_by, unique_rows
from flame.core.model.metrics import Metric
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.sample_weights import SampleWeights, sample_weights
from flame.core.projection.weights import Weights

MOST_PARTS = 200_000
"""Instructions and their reasons that are shown together: the rarest of more are one frame."""

_LEAST_PARTS = 64
_MOST_PRODUCT = float(1 << 62)


@dataclass(frozen=True, eq=False)
class WeightedStacks:
    """Stacks, each with a part of the weight of a unit of groups: those that share all parts.

    ``columns.rows`` number the stacks, of which each has its weights and its ``unit`` (i8[stacks]).
    ``unit_of_group`` i8[groups], -1 for those that are not shown. ``split``: units have several.
    """

    columns: StackColumns
    weights: Weights
    unit: I8
    unit_of_group: I8
    split: bool = False


def split_by_samples(
    profile: Profile,
    metric: Metric,
    columns: Sequence[Column | str],
    kept: I8,
    weights: Weights,
    shown: I4,
) -> WeightedStacks:
    """Split the stacks of the groups ``kept`` at the levels of samples named in ``columns``.

    ``weights`` are those of all groups, frames are those ``shown`` for the recorded ones. Where
    nothing was sampled these levels are left out.
    """
    unit_of_group = np.full(len(weights.activities), -1, np.int64)
    unit_of_group[kept] = np.arange(len(kept))
    levels = tuple(column for column in columns if isinstance(column, str))
    if profile.sampling is None or metric.table == "host" or not levels:
        rows = np.arange(len(kept))
        frames = tuple(column for column in columns if not isinstance(column, str))
        stacks = StackColumns(rows, frames)
        return WeightedStacks(stacks, weights.of(kept), rows, unit_of_group)
    split = _Split(profile.sampling, shown, levels, profile.grouping.rest)
    return _split_stacks(split, columns, kept, weights.of(kept), unit_of_group)


def _split_stacks(
    split: _Split, columns: Sequence[Column | str], kept: I8, own: Weights, unit_of_group: I8
) -> WeightedStacks:
    """Every stack as often as it has parts. Groups with equal stacks are split as one."""
    recorded = [column for column in columns if not isinstance(column, str)]
    distribution = split.sampling.of_group[kept]
    first, unit = unique_rows([distribution, *recorded])
    unit_of_group[kept] = unit
    sums = Weights(*(sum_by(unit, column, len(first)) for column in own))
    parts = split.parts(distribution[first], sums)
    stack = first[parts.unit]
    frames = tuple(
        parts.frames[column] if isinstance(column, str) else column[stack] for column in columns
    )
    stacks = StackColumns(np.arange(len(stack)), frames)
    return WeightedStacks(stacks, parts.weights, parts.unit, unit_of_group, True)


class _Parts(NamedTuple):
    """Parts of units: whose each is, its frames by sample level, and its weights."""

    unit: I8
    frames: dict[str, Column]
    weights: Weights


@dataclass(frozen=True)
class _Split:
    """Splits by ``sampling`` over the ``levels``, frames as ``shown``; ``rest`` is what is rare."""

    sampling: Sampling
    shown: I4
    levels: tuple[str, ...]
    rest: int

    def parts(self, distribution: I4, weights: Weights) -> _Parts:
        """The parts of units with these distributions (-1: one part) and weights."""
        shares, distribution = self._weights(distribution, weights.value)
        size = np.append(np.diff(shares.bounds), 1)[distribution]
        begin = np.append(shares.bounds[:-1], len(shares.samples))[distribution]
        unit = np.repeat(np.arange(len(distribution)), size)
        entry = stretches(begin, size)
        frames = {name: np.append(one, np.int32(-1))[entry] for name, one in shares.frames.items()}
        samples = np.append(shares.samples, 1)[entry]
        first = np.cumsum(size) - size
        split = Weights(*(apportion(one, samples, unit, first) for one in weights))
        some = (split.value > 0) | (split.activities > 0)
        chosen = {name: one[some] for name, one in frames.items()}
        return _Parts(unit[some], chosen, Weights(*(one[some] for one in split)))

    def _weights(self, distribution: I4, value: I8) -> tuple[SampleWeights, Column]:
        """The samples by the frames of the levels, and which of them are those of each unit.

        Where these are too many for all units together, the heaviest of them by ``value`` have
        their most sampled instructions, and the others none.
        """
        shares = sample_weights(self.sampling, self.shown, self.levels)
        size = np.append(np.diff(shares.bounds), 0)[distribution]
        most = self.sampling.most_parts or MOST_PARTS
        if shares.whole is None or size.sum() <= most:
            return shares, distribution
        heaviest = np.argsort(-value, kind="stable")
        least = np.minimum(size, _LEAST_PARTS)
        few = heaviest[np.cumsum(least[heaviest]) <= most]
        none = np.where(distribution >= 0, distribution + len(self.sampling), distribution)
        none[few] = distribution[few]
        wanted = np.unique(distribution[few].astype(np.int64))
        return shares.first(_room(size[few], most), wanted[wanted >= 0], self.rest), none


def _room(sizes: I8, most: int) -> int:
    """The most entries of each unit with which all of ``sizes`` are at most ``most`` together."""
    low, high = _LEAST_PARTS, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(sizes, middle).sum() <= most:
            low = middle
        else:
            high = middle - 1
    return low


def apportion(values: I8, weights: I8, of: I8, first: I8) -> I8:
    """``values`` split in proportion to ``weights``, exact in sum, i8[parts].

    The parts of values[u] are those with ``of`` u (ascending); they begin at ``first[u]``. Each is
    its quota rounded down, or up for those with the largest remainders (Hamilton's method).
    """
    if not len(of):
        return np.zeros(0, np.int64)
    exact = weights if _fit(weights, first) else weights.astype(object)
    whole = np.add.reduceat(exact, first)
    quotient = values // whole
    product = (values - quotient * whole)[of] * exact
    more = product // whole[of]
    parts: I8 = (quotient[of] * exact + more).astype(np.int64)
    remainder = (product - more * whole[of]).astype(np.int64)
    left = values - np.add.reduceat(parts, first)
    rows = np.flatnonzero((left > 0)[of])
    order = rows[np.lexsort((-remainder[rows], of[rows]))]
    place = np.arange(len(order)) - np.repeat(*_starts(of[order]))
    parts[order[place < left[of[order]]]] += 1
    return parts


def _fit(weights: I8, first: I8) -> bool:
    """Whether the products of weights and a sum of them fit 64 bits."""
    heaviest = float(np.add.reduceat(weights.astype(np.float64), first).max())
    return heaviest * float(weights.max()) < _MOST_PRODUCT


def _starts(ordered: I8) -> tuple[I8, I8]:
    """Start and length of the runs of ``ordered``."""
    start = runs(ordered)
    return start, np.diff(np.append(start, len(ordered)))
