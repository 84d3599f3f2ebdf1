"""Tell what is beyond chance: rank tests, shifts and their intervals, many at once.

Samples are rows, f8[k, n]: k tests of n values a side. Tests are as scipy's, which takes a quarter
of a second to import.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, Column, order_by
from flame.core.compiled.draws import drawn_places

_Z = 1.959964
"""95 % of a normal distribution are within so many standard deviations."""

_MOST_EXACT = 20
"""Values of each side up to which orders are counted out: 64 bits hold how many there are."""

_DRAWS = 2_000
_SEED = 20
_MOST, _MOST_OF_ONE, _MOST_OF_ALL = 250, 5_000, 125_000
"""Values of a row that are drawn from, those of a single row, and of all rows together."""


class RankTest(NamedTuple):
    """Hold p-values, two-sided, and how likely a value of new is above one of base; f8[k] each."""

    p: F8
    probability: F8


class Interval(NamedTuple):
    """Hold the bounds of what 95 % of repetitions would find, f8[k] each."""

    low: F8
    high: F8


def rank_test(base: F8, new: F8, exact: bool = False) -> RankTest:
    """Test by Mann and Whitney whether ``new`` is above or below ``base``, f8[k, n] and f8[k, m].

    None is negative. With ties and continuity; ``exact`` is for few values, up to 20 a side, whose
    orders are counted out where there are no ties. Values that are all equal have p = 1.
    """
    values = np.concatenate([base, new], axis=1)
    stratum = np.repeat(np.arange(len(values)), values.shape[1])
    is_new = np.tile(np.arange(values.shape[1]) >= base.shape[1], len(values))
    # Numbers that are not negative are in the order of their bits.
    found = rank_strata(stratum, values.ravel().view(np.int64), is_new, len(values))
    p = p_of_deviations(found.probability - 0.5, found.variance, found.continuity)
    ordered = np.sort(values, axis=1)
    untied = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    if exact and max(base.shape[1], new.shape[1]) <= _MOST_EXACT:
        p[untied] = _exact_p(found.probability[untied], base.shape[1], new.shape[1])
    return RankTest(p, found.probability)


def _exact_p(probability: F8, base: int, new: int) -> F8:
    """The p-values, two-sided, among all orders of so many values, f8[k]."""
    pairs = base * new
    above = np.rint(probability * pairs).astype(np.int64)
    ways = np.cumsum(_ways(base, new))
    found: F8 = np.minimum(2 * ways[np.minimum(above, pairs - above)] / ways[-1], 1)
    return found


def p_of_deviations(above: F8, variance: F8, continuity: F8) -> F8:
    """The p-values, two-sided, of what is ``above`` 0 with ``variance`` by chance, f8[k]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.maximum(np.abs(above) - continuity, 0) / np.sqrt(variance)
    known = np.nan_to_num(deviation, nan=0.0, posinf=np.inf) / math.sqrt(2)
    return np.array([*map(math.erfc, known.tolist())], np.float64)


def adjusted(p: F8) -> F8:
    """Adjust the p-values of many tests by Benjamini and Hochberg, f8[k]; nan stays."""
    found, order = p.copy(), np.argsort(-p)  # nan last
    tests = np.count_nonzero(~np.isnan(p))
    order = order[:tests]
    found[order] = np.minimum.accumulate(p[order] * tests / np.arange(tests, 0, -1))
    return found


# Ranks


class Strata(NamedTuple):
    """Hold the rank tests of strata, a value each: how many a side, and what was found.

    ``variance`` is that of ``probability`` where nothing but chance is at work.
    """

    base: F8
    new: F8
    probability: F8
    variance: F8

    @property
    def continuity(self) -> F8:
        """Half of the least step that ``probability`` makes, but for ties."""
        return 0.5 / (self.base * self.new)


def rank_strata(stratum: I8, value: I8, is_new: Bool, size: int) -> Strata:
    """Rank the values of each ``stratum`` (0 to ``size`` - 1), which must have some of each side.

    As `rank_test` does, which has the p-value of one of them alone.
    """
    order = order_by([value, stratum])
    stratum, value, is_new = stratum[order], value[order], is_new[order]
    count = np.bincount(stratum, minlength=size)
    new = np.bincount(stratum[is_new], minlength=size).astype(np.float64)
    begins = (stratum[1:] != stratum[:-1]) | (value[1:] != value[:-1])
    first = np.flatnonzero(np.append(len(value) > 0, begins))
    ties = np.diff(np.append(first, len(value)))
    before = (np.cumsum(count) - count)[stratum[first]]
    rank = np.repeat(first - before + (ties + 1) / 2, ties)
    sums = np.bincount(stratum[is_new], rank[is_new], minlength=size)
    tied = np.bincount(stratum[first], ties.astype(np.float64) ** 3 - ties, minlength=size)
    base, pairs = count - new, (count - new) * new
    probability = (sums - new * (new + 1) / 2) / pairs
    variance = (count + 1 - tied / (count * (count - 1.0))) / (12 * pairs)
    return Strata(base, new, probability, np.maximum(variance, 0))


# Shift


def shift(base: F8, new: F8) -> tuple[F8, Interval]:
    """Find by Hodges and Lehmann how much ``new`` is above ``base``, f8[k], and the interval."""
    size = base.shape[1] * new.shape[1]
    differences = np.sort((new[:, :, None] - base[:, None, :]).reshape(len(base), size), axis=1)
    rank = _rank_of_bound(base.shape[1], new.shape[1])
    bounds = Interval(differences[:, rank - 1], differences[:, size - rank])
    return np.median(differences, axis=1), bounds


def _rank_of_bound(base: int, new: int) -> int:
    """Which of the differences, from 1 on, is the lower bound of an interval of 95 %."""
    pairs = base * new
    if max(base, new) > _MOST_EXACT:
        usual = _Z * float(np.sqrt(pairs * (base + new + 1) / 12))
        return max(int(pairs / 2 - usual), 1)
    ways = np.cumsum(_ways(base, new))
    return max(int(np.searchsorted(ways, 0.025 * ways[-1])), 1)


def _ways(base: int, new: int) -> I8:
    """In how many orders of all values so many pairs have ``new`` below, i8[pairs + 1]."""
    size = base * new + 1
    ways = np.zeros(size, np.int64)
    ways[0] = 1
    for one in range(1, base + 1):  # times (1 - x**(new + one)) / (1 - x**one)
        above = new + one
        if above < size:
            ways[above:] -= ways[:-above].copy()
        for first in range(min(one, size)):
            ways[first::one] = np.cumsum(ways[first::one])
    return ways


# Ratio of medians


def ratio_interval(base: F8, new: F8) -> Interval:
    """Find the interval of ``new``'s median over ``base``'s, f8[k]: nan where base's is 0.

    It is drawn in blocks, of the square root of n values that follow each other, as these are not
    independent. The same values have the same interval, always.
    """
    random = np.random.default_rng(_SEED)
    drawn = [_drawn_medians(side, random) for side in (base, new)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(drawn[1] / drawn[0], nan=1.0, posinf=np.inf)
    low, high = np.quantile(ratios, [0.025, 0.975], axis=1, method="nearest")
    unknown = medians(base) == 0
    return Interval(np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))


def medians(values: F8) -> F8:
    """The medians of rows by nearest rank, as in `flame.core.analysis.distribution`, f8[k]."""
    place = (values.shape[1] - 1) // 2
    found: F8 = np.partition(values, place, axis=1)[:, place]
    return found


def _drawn_medians(values: F8, random: np.random.Generator) -> F8:
    """The medians of what is drawn again and again, f8[k, draws]."""
    chosen = _some(values, random)
    times = _draw_blocks(chosen.shape[1], random)
    place = _places_of_medians(times, np.argsort(chosen, axis=1))
    drawn = np.take_along_axis(np.sort(chosen, axis=1), place.astype(np.int64), axis=1)
    # Around the median of all, where these are not all.
    whole, part = medians(values), medians(chosen)
    return drawn * np.divide(whole, part, out=np.ones(len(whole)), where=part > 0)[:, None]


def _places_of_medians(times: Column, order: I8) -> Column:
    """The places of the medians of what is drawn in the ``order`` of each row, [k, draws]."""
    if (found := drawn_places(times, order)) is not None:
        return found
    reached, place = (np.zeros((len(order), times.shape[1]), times.dtype) for _ in range(2))
    for at in order.T:  # from the least value on, until half of those drawn are reached
        reached += times[at]
        below = reached < (order.shape[1] + 1) // 2
        if not below.any():
            break
        place += below
    return place


def _some(values: F8, random: np.random.Generator) -> F8:
    """As many columns as there is time for, by chance: of every second one all may be alike."""
    size, most = values.shape[1], max(_MOST, min(_MOST_OF_ALL // len(values), _MOST_OF_ONE))
    if size <= most:
        return values
    return values[:, np.sort(random.choice(size, most, replace=False))]


def _draw_blocks(size: int, random: np.random.Generator) -> Column:
    """How often each of ``size`` values in a circle is drawn, [size, draws]; u1 or u2."""
    length = int(np.ceil(np.sqrt(size)))
    blocks = -(-size // length)
    first = random.integers(0, size, (_DRAWS, blocks, 1))[:, :, 0]
    behind = first + np.append(np.full(blocks - 1, length), size - (blocks - 1) * length)
    around, draw = behind > size, np.broadcast_to(np.arange(_DRAWS)[:, None], first.shape)
    # By how much more often each value is drawn than the one before it.
    steps = np.zeros((size + 1, _DRAWS), np.int16)
    one, flat = np.int16(1), steps.reshape(-1)
    np.add.at(flat, (first * _DRAWS + draw).ravel(), one)
    np.subtract.at(flat, ((behind - size * around) * _DRAWS + draw).ravel(), one)
    np.add.at(flat, draw[around], one)
    times = np.cumsum(steps, axis=0, dtype=np.int16)[:size]
    return times.astype(np.uint8 if size <= _MOST else np.uint16)


# Ratio of other statistics


def drawn_ratio(base: F8, new: F8, statistic: str) -> tuple[float, float]:
    """Find the interval of a ``statistic`` of ``new``, f8[n], over that of ``base``, f8[m].

    It is ``p50``, ``p95``, ``p99``, ``mean`` or ``max``; blocks are drawn as in `ratio_interval`.
    The upper end is infinite where what is drawn of ``base`` may be nothing.
    """
    random = np.random.default_rng(_SEED)
    below, above = (_drawn_statistic(side, statistic, random) for side in (base, new))
    return _interval_of_ratio(below, above)


def drawn_sums(base: F8, new: F8) -> tuple[float, float]:
    """Find the interval of the mean of ``new``, f8[n], over that of ``base``, f8[m].

    Of equally many the first of each are drawn together, and so on: a program that does other work
    in each step, and the same in each run, does not differ by that.
    """
    if len(base) != len(new):
        return drawn_ratio(base, new, "mean")
    random = np.random.default_rng(_SEED)
    some = _some(np.stack([base, new]), random)
    below, above = some[:, _drawn_places(some.shape[1], random)].mean(axis=2)
    return _interval_of_ratio(below, above)


def _drawn_places(size: int, random: np.random.Generator) -> I8:
    """The places of values that are drawn in blocks, i8[draws, size]."""
    length = int(np.ceil(np.sqrt(size)))
    first = random.integers(0, size, (_DRAWS, -(-size // length), 1))
    places: I8 = ((first + np.arange(length)) % size).reshape(_DRAWS, -1)[:, :size]
    return places


def _interval_of_ratio(below: F8, above: F8) -> tuple[float, float]:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(above / below, nan=1.0, posinf=np.inf)
    low, high = np.quantile(ratios, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _drawn_statistic(values: F8, statistic: str, random: np.random.Generator) -> F8:
    [some] = _some(values[None], random)
    drawn = some[_drawn_places(len(some), random)]
    if statistic == "mean":
        mean: F8 = drawn.mean(axis=1)
        return mean
    share = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}[statistic]
    place = max(int(np.ceil(share * len(some))) - 1, 0)
    found: F8 = np.partition(drawn, place, axis=1)[:, place]
    return found
