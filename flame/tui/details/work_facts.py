"""Work out how near the kernels below a frame are to the peak of the GPU, and in which shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, sum_by
from flame.core.efficiency.by_operator import OperatorRows, by_operator
from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.model.profile import Profile

_LEAST = 0.01
"""Part of the time from which on a peak is worth a line."""


class RatedOn(NamedTuple):
    """Say by what kernels were rated: a GPU's peak of a ``precision``.

    ``tflops`` is that, TFLOP/s, ``bandwidth`` that of the memory, bytes/s, ``ridge`` both divided,
    FLOPs per byte; the latter are None where not known. ``source`` says who says so.
    """

    gpu: str
    precision: str
    tflops: float
    bandwidth: float | None
    ridge: float | None
    source: str


class WorkFacts(NamedTuple):
    """Hold the work of a frame: ``counts`` has one row, ``shapes`` one for each of the operators.

    ``rated_on`` are the peaks of what is rated, each once, most time first.
    """

    counts: WorkCounts
    verdict: BoundVerdict
    shapes: OperatorRows
    rated_on: tuple[RatedOn, ...]


def work_facts(profile: Profile, rows: I8) -> WorkFacts | None:
    """Sum up the work of ``rows`` of the activities; None where no operator has a formula."""
    operators = count_operators(profile, rows)
    if operators is None or not operators.covered.any():
        return None
    counts, shapes = whole_of(profile, operators, rows), by_operator(profile, operators, True)
    verdict = BoundVerdict(int(judge(counts)[0]))
    return WorkFacts(counts, verdict, shapes, tuple(_rated_on(profile, rows)))


def _rated_on(profile: Profile, rows: I8) -> Iterator[RatedOn]:
    work, groups = profile.work, profile.activities.groups
    assert work is not None
    rated = rows[work.rated[rows]]
    device = groups.device[groups.of_row[rated]].astype(np.int64)
    pairs, place = distinct(device << 32 | work.operator[rated].astype(np.int64))
    times = sum_by(place, profile.activities.duration[rated], len(pairs))
    found = dict[RatedOn, int]()
    for pair, time in zip(pairs.tolist(), times.tolist(), strict=True):
        at, precision = pair >> 32, work.costs[pair & 0xFFFFFFFF].precision
        peak = profile.peaks[at]
        if peak is not None and precision in peak.tflops:
            name, rate = profile.devices[at].name, peak.tflops[precision]
            memory, ridge = peak.bandwidth or None, peak.ridge(precision)
            one = RatedOn(name, precision, rate, memory, ridge, peak.source)
            found[one] = found.get(one, 0) + time
    least = _LEAST * sum(found.values())
    yield from sorted((one for one in found if found[one] >= least), key=lambda one: -found[one])
