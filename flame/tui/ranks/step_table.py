"""Hold what each rank did in each step, and how far it is from the others in that step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, run_starts, sum_by, unique
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.rank_summary.summary import METRICS, RankSummary
from flame.tui.ranks.waiting import waiting_of

ABSENT = -1

_MOST_CELLS = 1 << 22
"""Values of a measure, 32 MB of them: where there are more, a column is of several steps."""


class StepCells(NamedTuple):
    """Hold what is drawn of a rank by cell: how far off it is, f8, and in which column, i8.

    NaN and `ABSENT` where the rank has none of the steps of the cell.
    """

    deviation: F8
    column: I8


@dataclass(frozen=True, eq=False)
class StepTable:
    """Hold a measure: ``values`` i8[ranks, columns], ns, `ABSENT` where a rank has none.

    A column is of the steps from ``first`` to ``last`` (i8[columns] each), whose longest counts;
    both are empty where there is one column, of the whole run. How far ranks are apart is told as a
    part of ``scale`` (i8[columns]) where the median of the measure says little: waits may be short.
    """

    title: str
    values: I8
    first: I8
    last: I8
    scale: I8 | None = None

    @property
    def by_step(self) -> bool:
        """Whether columns are steps."""
        return len(self.first) > 0

    @cached_property
    def there(self) -> Bool:
        """Mark what is known, bool[ranks, columns]."""
        there: Bool = self.values != ABSENT
        return there

    @cached_property
    def total(self) -> I8:
        """The sum over the columns of each rank, i8[ranks]; `ABSENT` of one that has none."""
        sums = np.where(self.there, self.values, 0).sum(axis=1)
        return np.where(self.there.any(axis=1), sums, ABSENT)

    @cached_property
    def median(self) -> I8:
        """The median of each column over the ranks that have it, by nearest rank, i8[columns]."""
        return _medians(self.values, self.there)

    @cached_property
    def median_total(self) -> int:
        """The median of the sums of ranks."""
        return int(_medians(self.total[:, None], self.total[:, None] != ABSENT)[0])

    @cached_property
    def worst_first(self) -> I8:
        """List the ranks, those first that were above the medians by most in all."""
        above = np.where(self.there, self.values - self.median, 0)
        excess = np.maximum(above, 0).sum(axis=1)
        return np.lexsort((-self.total, -excess))

    def prepare(self) -> None:
        """Work out what grows with the ranks, so that no key press has to."""
        _ = self.median_total, self.worst_first

    def deviation(self, rank: int) -> F8:
        """How far ``rank`` is above the median of each column, as a part; NaN of no value."""
        scale = self.median if self.scale is None else self.scale
        return _deviation(self.values[rank], self.median, scale, self.there[rank])

    def total_deviation(self, rank: int) -> float:
        """How far its sum is above the median of all."""
        total, median = self.total[rank : rank + 1], np.array([self.median_total])
        scale = median if self.scale is None else self.scale.sum(keepdims=True)
        return float(_deviation(total, median, scale, total != ABSENT)[0])

    def cells(self, rank: int, width: int) -> StepCells:
        """Share the columns of ``rank`` among ``width`` cells: each has the one farthest off."""
        deviation = self.deviation(rank)
        number = min(width, len(deviation))
        edges = np.arange(number) * len(deviation) // max(number, 1)
        size = np.where(np.isnan(deviation), -1.0, np.abs(deviation))
        cell = np.repeat(np.arange(number), np.diff(np.append(edges, len(deviation))))
        is_most = np.flatnonzero(size == np.maximum.reduceat(size, edges)[cell])
        best = is_most[run_starts(cell[is_most])]
        known = size[best] >= 0
        return StepCells(np.where(known, deviation[best], np.nan), np.where(known, best, ABSENT))


def _medians(values: I8, there: Bool) -> I8:
    """The medians of columns over what is there, which is not negative; what is not is -1."""
    ordered, number = np.sort(values, axis=0), there.sum(axis=0)
    middle = len(values) - number + np.maximum((number + 1) // 2 - 1, 0)
    found: I8 = ordered[np.minimum(middle, len(values) - 1), np.arange(values.shape[1])]
    return found


def _deviation(values: I8, median: I8, scale: I8, there: Bool) -> F8:
    part = np.where(values > median, np.inf, 0.0)
    np.divide(values - median, scale, out=part, where=scale > 0)
    return np.where(there, part, np.nan)


@kept
def step_tables(summary: RankSummary) -> tuple[StepTable, ...]:
    """Lay out each measure that ``summary`` has: by step, if it knows any, and of the whole run.

    What it knows of no rank, it does not have.
    """
    tables = (*_by_step(summary), *_of_run(summary))
    for table in tables:
        table.prepare()
    return tables


def _by_step(summary: RankSummary) -> Iterator[StepTable]:
    """What GPUs did for each step first: ranks that meet in collectives take equally long."""
    counts = [len(one.step_numbers) for one in summary.info]
    numbers = _joined([one.step_numbers for one in summary.info])
    if not len(numbers):
        return
    known = unique(numbers)
    each = -(-len(known) * len(summary) // _MOST_CELLS)
    first, last = (
        known[::each],
        np.append(known[each - 1 :: each], known[-1])[: -(-len(known) // each)],
    )
    cell = np.repeat(np.arange(len(summary)), counts), np.searchsorted(known, numbers) // each

    def laid_out(title: str, values: I8, scale: I8 | None = None) -> StepTable:
        table = np.full((len(summary), len(first)), ABSENT, np.int64)
        np.maximum.at(table, cell, values)
        return StepTable(title, table, first, last, scale)

    times = laid_out("step time", _of_steps(summary, "step_times"))
    work = laid_out("own work", _of_steps(summary, "step_work"))
    yield from (one for one in (work, times) if one.there.any())
    if summary.waits is not None and len(summary.waits.step_wait) == len(numbers):
        waits = laid_out("wait in collectives", summary.waits.step_wait, times.median)
        yield from [waits] if waits.there.any() else []


def _of_steps(summary: RankSummary, name: str) -> I8:
    """What ranks know of their steps, one after the other; of one that does not `ABSENT`."""
    found = ((getattr(one, name), len(one.step_numbers)) for one in summary.info)
    return _joined([one if len(one) == size else (ABSENT,) * size for one, size in found])


def _of_run(summary: RankSummary) -> Iterator[StepTable]:
    nothing = np.zeros(0, np.int64)
    gpu = summary.rank_total[METRICS.index("gpu")]
    scale = np.array([int(np.sort(gpu)[(len(gpu) - 1) // 2])])
    found = [
        ("work between collectives", _work(summary), None),
        ("wait in collectives, whole run", _waits(summary), scale),
        ("GPU time", gpu, None),
        ("GPU idle before", summary.rank_total[METRICS.index("idle")], scale),
        ("host self time", summary.rank_total[METRICS.index("host")], None),
    ]
    for title, values, against in found:
        if np.any(values > 0):
            yield StepTable(title, values[:, None], nothing, nothing, against)


def _waits(summary: RankSummary) -> I8:
    """How long each rank waited in all, which is known of those summed up apart, too."""
    waited = waiting_of(summary).waited
    return np.full(len(summary), ABSENT, np.int64) if waited is None else waited


def _work(summary: RankSummary) -> I8:
    """What each rank did between collectives; not known where two have the same number."""
    rank, found = summary.rank, summary.communication
    together = np.flatnonzero(found.together > 0)
    if len(unique(rank)) < len(rank) or not np.isin(found.rank[together], rank).all():
        return np.full(len(rank), ABSENT, np.int64)
    place = np.searchsorted(rank, found.rank[together])
    known = np.isin(np.arange(len(rank)), place)
    return np.where(known, sum_by(place, found.work[together], len(rank)), ABSENT)


def _joined(of_ranks: list[tuple[int, ...]]) -> I8:
    return np.concatenate([np.asarray(one, np.int64) for one in ((), *of_ranks)])
