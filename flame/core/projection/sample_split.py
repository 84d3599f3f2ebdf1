"""What is below kernels: their value split over instructions and stall reasons by PC samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column, runs, stretches, sum_by, unique_rows
from flame.core.model.activities import Activities
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.projection.level_columns import Steps, steps
from flame.core.projection.levels import SAMPLE_LEVELS
from flame.core.projection.sample_weights import Shares, shares_of

MOST_PARTS = 200_000
"""Instructions and their reasons that are shown together: the rarest of more are one frame."""

_LEAST_PARTS = 64
_MOST_PRODUCT = float(1 << 62)


class Weights(NamedTuple):
    """Value and number of activities of each group, or stack; i8 each."""

    value: Column
    activities: Column


@dataclass(frozen=True, eq=False)
class Weighed:
    """Stacks, each with a part of the weight of a unit of groups: those that share all parts.

    ``stacks.rows`` number the stacks, of which each has its weights and its ``unit`` (i8[stacks]).
    ``unit_of_group`` i8[groups], -1 for those that are not shown. ``split``: units have several.
    """

    stacks: Steps
    weights: Weights
    unit: I8
    unit_of_group: I8
    split: bool = False


def weighed(
    profile: Profile, table: Activities, weights: Weights, levels: Iterable[str], shown: I4
) -> Weighed:
    """The stacks under ``levels`` of the groups of ``table`` that have any activity.

    ``weights`` are those of all groups, frames are those ``shown`` for them.
    """
    kept = np.flatnonzero(weights.activities)
    wanted = tuple(level for level in levels if level in SAMPLE_LEVELS)
    unit_of_group = np.full(len(weights.activities), -1, np.int64)
    unit_of_group[kept] = np.arange(len(kept))
    own = Weights(weights.value[kept], weights.activities[kept])
    if profile.sampling is None or table is not profile.activities or not wanted:
        usual = [level for level in levels if level not in SAMPLE_LEVELS]
        rows = np.arange(len(kept))
        stacks = Steps(rows, steps(profile, table, kept, usual, shown))
        return Weighed(stacks, own, rows, unit_of_group)
    columns = _columns(profile, table, kept, levels, shown)
    spread = _Spread(profile.sampling, shown, wanted, profile.grouping.rest)
    return _split(spread, columns, kept, own, unit_of_group)


def _columns(
    profile: Profile, table: Activities, kept: I8, levels: Iterable[str], shown: I4
) -> list[Column | str]:
    """The frames of the stacks, step by step, and the names of sample levels in their places."""
    found: list[Column | str] = []
    for level in levels:
        if level in SAMPLE_LEVELS:
            found.append(level)
        else:
            found += steps(profile, table, kept, (level,), shown)
    return found


def _split(
    spread: _Spread, columns: list[Column | str], kept: I8, own: Weights, unit_of_group: I8
) -> Weighed:
    """Every stack as often as it has parts. Groups with equal stacks are split as one."""
    known = [one for one in columns if not isinstance(one, str)]
    distribution = spread.sampling.of_group[kept]
    first, unit = unique_rows([distribution, *known])
    unit_of_group[kept] = unit
    sums = Weights(*(sum_by(unit, column, len(first)) for column in own))
    parts = spread.parts(distribution[first], sums)
    stack = first[parts.unit]
    frames = tuple(parts.frames[one] if isinstance(one, str) else one[stack] for one in columns)
    stacks = Steps(np.arange(len(stack)), frames)
    return Weighed(stacks, parts.weights, parts.unit, unit_of_group, True)


class _Parts(NamedTuple):
    """Parts of units: whose each is, its frames by sample level, and its weights."""

    unit: I8
    frames: dict[str, Column]
    weights: Weights


@dataclass(frozen=True)
class _Spread:
    """Splits by ``sampling`` over the ``levels``, frames as ``shown``; ``rest`` is what is rare."""

    sampling: Sampling
    shown: I4
    levels: tuple[str, ...]
    rest: int

    def parts(self, distribution: I4, weights: Weights) -> _Parts:
        """The parts of units with these distributions (-1: one part) and weights."""
        shares, distribution = self._shares(distribution, weights.value)
        size = np.append(np.diff(shares.bounds), 1)[distribution]
        begin = np.append(shares.bounds[:-1], len(shares.samples))[distribution]
        unit = np.repeat(np.arange(len(distribution)), size)
        entry = stretches(begin, size)
        frames = {name: np.append(one, np.int32(-1))[entry] for name, one in shares.frames.items()}
        samples = np.append(shares.samples, 1)[entry]
        first = np.cumsum(size) - size
        split = Weights(*(apportioned(one, samples, unit, first) for one in weights))
        some = (split.value > 0) | (split.activities > 0)
        chosen = {name: one[some] for name, one in frames.items()}
        return _Parts(unit[some], chosen, Weights(*(one[some] for one in split)))

    def _shares(self, distribution: I4, value: I8) -> tuple[Shares, Column]:
        """The samples by the frames of the levels, and which of them are those of each unit.

        Where these are too many for all units together, the heaviest of them by ``value`` have
        their most sampled instructions, and the others none.
        """
        shares = shares_of(self.sampling, self.shown, self.levels)
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


def apportioned(values: I8, weights: I8, of: I8, first: I8) -> I8:
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
