"""What is below kernels: their value split over instructions and stall reasons by PC samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column, distinct, stretches, sum_by, unique_rows
from flame.core.profile import Activities, Profile
from flame.core.sampling import Sampling
from flame.core.steps import Steps, steps

SAMPLE_LEVELS = ("sass", "stall")
MOST_PARTS = 400_000
"""Parts up to which all instructions stand for themselves: with more, the rarest are one frame."""

_LEAST_PARTS = 32
_HEAVIEST = 1 << 31


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


class _Shares(NamedTuple):
    """What the samples of distributions say: entries ``bounds[d]`` to ``bounds[d + 1]`` are d's."""

    bounds: I8
    frames: dict[str, Column]
    samples: I8


@dataclass(frozen=True)
class _Spread:
    """Splits by ``sampling`` over the ``levels``, frames as ``shown``; ``rest`` is what is rare."""

    sampling: Sampling
    shown: I4
    levels: tuple[str, ...]
    rest: int

    def parts(self, distribution: I4, weights: Weights) -> _Parts:
        """The parts of units with these distributions (-1: one part) and weights."""
        shares = self._shares(distribution)
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

    def _shares(self, distribution: I4) -> _Shares:
        """The samples by the frames of the levels, not too many for all units together."""
        sampling, used = self.sampling, distribution[distribution >= 0]
        of_entry = np.repeat(np.arange(len(sampling)), np.diff(sampling.bounds))
        wanted = np.zeros(len(sampling), bool)
        wanted[used] = True
        rows = np.flatnonzero(wanted[of_entry])
        frames = {level: self.shown[getattr(sampling, level)[rows]] for level in self.levels}
        shares = _merged(of_entry[rows], frames, sampling.samples[rows], len(sampling))
        size = np.diff(shares.bounds)[used]
        if "sass" in frames and size.sum() > MOST_PARTS:
            return self._without_rare(shares, _room(size))
        return shares

    def _without_rare(self, shares: _Shares, room: int) -> _Shares:
        """``shares`` whose instructions are ``rest`` but for the most sampled ones in ``room``."""
        of = np.repeat(np.arange(len(shares.bounds) - 1), np.diff(shares.bounds))
        first, instruction = unique_rows([of, shares.frames["sass"]])
        samples = sum_by(instruction, shares.samples, len(first))
        entries = np.bincount(instruction)
        order = np.lexsort((-samples, of[first]))
        ends = np.cumsum(entries[order]) - shares.bounds[of[first][order]]
        rare = np.zeros(len(first), bool)
        rare[order] = ends > room
        sass = np.where(rare[instruction], np.int32(self.rest), shares.frames["sass"])
        frames = shares.frames | {"sass": sass}
        return _merged(of, frames, shares.samples, len(shares.bounds) - 1)


def _merged(of: I8, frames: dict[str, Column], samples: I8, size: int) -> _Shares:
    """Entries with equal frames as one; in the order of their distributions."""
    first, kind = unique_rows([of, *frames.values()])
    order = np.argsort(of[first], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    chosen = first[order]
    bounds = np.searchsorted(of[chosen], np.arange(size + 1))
    sums = sum_by(place[kind], samples, len(chosen))
    return _Shares(bounds, {name: one[chosen] for name, one in frames.items()}, sums)


def _room(sizes: I8) -> int:
    """The most entries of each distribution with which all of ``sizes`` are few enough."""
    low, high = _LEAST_PARTS, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(sizes, middle).sum() <= MOST_PARTS:
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
    weights = _not_too_heavy(weights, first)
    whole = np.add.reduceat(weights, first)[of]
    quotient, rest = np.divmod(values[of], whole)
    more, remainder = np.divmod(rest * weights, whole)
    parts: I8 = quotient * weights + more
    left = values - np.add.reduceat(parts, first)
    rows = np.flatnonzero((left > 0)[of])
    order = rows[np.lexsort((-remainder[rows] / whole[rows], of[rows]))]
    place = np.arange(len(order)) - np.repeat(*_starts(of[order]))
    parts[order[place < left[of[order]]]] += 1
    return parts


def _starts(ordered: I8) -> tuple[I8, I8]:
    """Start and length of the runs of ``ordered``."""
    values, _ = distinct(ordered)
    start = np.searchsorted(ordered, values)
    return start, np.diff(np.append(start, len(ordered)))


def _not_too_heavy(weights: I8, first: I8) -> I8:
    """``weights`` whose products with a sum of them fit 64 bits."""
    most = float(np.add.reduceat(weights.astype(np.float64), first).max())
    shift = 0
    while most / (1 << shift) >= _HEAVIEST:
        shift += 1
    return np.maximum(weights >> shift, 1) if shift else weights
