"""Split the value of kernels over instructions and stall reasons by PC samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flame.core.columns import (
    I4,
    I8,
    Column,
    expand_ranges,
    order_by,
    run_starts,
    sum_by,
    unique,
    unique_rows,
)
from flame.core.compiled.shares import apportion_values
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.splits.weighted_stacks import WeightedStacks
from flame.core.projection.weights import Weights

if TYPE_CHECKING:
    from flame.core.model.pc_samples import Sampling
    from flame.core.projection.splits.sample_weights import SampleWeights

MOST_PARTS = 200_000
"""Instructions and their reasons that are shown at most; the rarest beyond are merged."""

_LEAST_PARTS = 64
_MOST_PRODUCT = float(1 << 62)


def split_by_samples(
    profile: Profile,
    columns: Sequence[Column | str],
    kept: I8,
    weights: Weights,
    shown: I4,
) -> WeightedStacks:
    """Split the stacks of the groups ``kept`` at the levels of samples named in ``columns``.

    ``weights`` are those of all groups, frames are those ``shown`` for the recorded ones. Where
    nothing was sampled these levels are left out.
    """
    rows = np.arange(len(kept), dtype=np.int32)
    unit_of_group = np.full(len(weights.activities), -1, np.int32)
    unit_of_group[kept] = rows
    levels = tuple(column for column in columns if isinstance(column, str))
    if profile.sampling is None or not levels:
        frames = tuple(column for column in columns if not isinstance(column, str))
        stacks = StackColumns(rows, frames)
        return WeightedStacks(stacks, weights.take(kept), rows, unit_of_group)
    splitter = _Splitter(profile.sampling, shown, levels, profile.grouping.rest)
    return _split_stacks(splitter, columns, kept, weights.take(kept), unit_of_group)


def _split_stacks(
    splitter: _Splitter,
    columns: Sequence[Column | str],
    kept: I8,
    own: Weights,
    unit_of_group: Column,
) -> WeightedStacks:
    """Repeat every stack for each of its parts. Groups with equal stacks are split as a unit."""
    recorded = [column for column in columns if not isinstance(column, str)]
    distribution = splitter.sampling.of_group[kept]
    first, unit = unique_rows([distribution, *recorded])
    unit_of_group[kept] = unit
    sums = Weights(*(sum_by(unit, column, len(first)) for column in own))
    parts = splitter.split(distribution[first], sums)
    stack = first[parts.unit]
    frames = tuple(
        parts.frames[column] if isinstance(column, str) else column[stack] for column in columns
    )
    stacks = StackColumns(np.arange(len(stack)), frames)
    return WeightedStacks(stacks, parts.weights, parts.unit, unit_of_group, True)


class _UnitParts(NamedTuple):
    """Parts of units: the unit of each, its frames by sample level, and its weights."""

    unit: I8
    frames: dict[str, Column]
    weights: Weights


@dataclass(frozen=True)
class _Splitter:
    """Splits by ``sampling`` over the ``levels``, frames as ``shown``; ``rest``: rare ones."""

    sampling: Sampling
    shown: I4
    levels: tuple[str, ...]
    rest: int

    def split(self, distribution: I4, weights: Weights) -> _UnitParts:
        """Split units with these distributions (-1: one part) and weights."""
        entries, distribution = self._entries(distribution, weights.value)
        size = np.append(np.diff(entries.bounds), 1)[distribution]
        begin = np.append(entries.bounds[:-1], len(entries.samples))[distribution]
        unit = np.repeat(np.arange(len(distribution)), size)
        entry = expand_ranges(begin, size)
        samples = np.append(entries.samples, 1)[entry]
        parts = Weights(*(apportion(column, samples, unit) for column in weights))
        kept = (parts.value > 0) | (parts.activities > 0)
        frames = {
            level: np.append(column, np.int32(-1))[entry[kept]]
            for level, column in entries.frames.items()
        }
        return _UnitParts(unit[kept], frames, parts.take(kept))

    def _entries(self, distribution: I4, value: I8) -> tuple[SampleWeights, Column]:
        """Find the samples by the frames of the levels, and the distribution in them of each unit.

        Where there are too many for all units together, the heaviest units by ``value`` have
        their most sampled instructions, and the others none.
        """
        from flame.core.projection.splits.sample_weights import sample_weights

        weights = sample_weights(self.sampling, self.shown, self.levels)
        size = np.append(np.diff(weights.bounds), 0)[distribution]
        most = self.sampling.most_parts or MOST_PARTS
        if weights.whole is None or size.sum() <= most:
            return weights, distribution
        heaviest = np.argsort(-value, kind="stable")
        least = np.minimum(size, _LEAST_PARTS)
        detailed = heaviest[np.cumsum(least[heaviest]) <= most]
        place = np.where(distribution >= 0, distribution + len(self.sampling), distribution)
        place[detailed] = distribution[detailed]
        wanted = unique(distribution[detailed].astype(np.int64))
        limit = _entry_limit(size[detailed], most)
        return weights.keep_heaviest(limit, wanted[wanted >= 0], self.rest), place


def _entry_limit(sizes: I8, most: int) -> int:
    """The greatest limit for each of ``sizes`` with which they are at most ``most`` together."""
    low, high = _LEAST_PARTS, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(sizes, middle).sum() <= most:
            low = middle
        else:
            high = middle - 1
    return low


def apportion(values: I8, weights: I8, unit: Column) -> I8:
    """Split ``values`` in proportion to ``weights``, exact in sum, i8[parts].

    Each part is of the value number ``unit``, its quota rounded down, or up for the largest
    remainders (Hamilton's method), of equal ones the first. Where the parts of a value all weigh
    nothing the first of them has all.
    """
    if (found := apportion_values(values, weights, unit)) is not None:
        return found
    order = order_by([unit])
    parts = np.zeros(len(weights), np.int64)
    if len(order):
        parts[order] = _apportion_in_order(values, weights[order], unit[order])
    return parts


def _apportion_in_order(values: I8, weights: I8, of: Column) -> I8:
    """Split ``values`` among parts that are in order of the values that they are ``of``."""
    first = run_starts(of)
    unit = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(of))))
    values = values[of[first]]
    weights[first[np.add.reduceat(weights, first) == 0]] = 1
    exact = weights if _products_fit(weights, first) else weights.astype(object)
    whole = np.add.reduceat(exact, first)
    quotient = values // whole
    product = (values - quotient * whole)[unit] * exact
    more = product // whole[unit]
    parts: I8 = (quotient[unit] * exact + more).astype(np.int64)
    remainder = (product - more * whole[unit]).astype(np.int64)
    left = values - np.add.reduceat(parts, first)
    rows = np.flatnonzero((left > 0)[unit])
    order = rows[np.lexsort((-remainder[rows], unit[rows]))]
    place = np.arange(len(order)) - np.repeat(*_run_lengths(unit[order]))
    parts[order[place < left[unit[order]]]] += 1
    return parts


def _products_fit(weights: I8, first: I8) -> bool:
    """Whether the products of weights and a sum of them fit 64 bits."""
    heaviest = float(np.add.reduceat(weights.astype(np.float64), first).max())
    return heaviest * float(weights.max()) < _MOST_PRODUCT


def _run_lengths(ordered: I8) -> tuple[I8, I8]:
    """Start and length of the runs of ``ordered``."""
    start = run_starts(ordered)
    return start, np.diff(np.append(start, len(ordered)))
