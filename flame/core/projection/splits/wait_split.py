"""Split the GPU time of collectives into waiting for the last rank and transfer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE, GroupWaits
from flame.core.model.metrics import WAIT, Metric
from flame.core.model.profile import Profile
from flame.core.projection.level_columns import StackColumns
from flame.core.projection.splits.weighted_stacks import WeightedStacks
from flame.core.projection.weights import Weights


def split_by_waits(
    profile: Profile,
    metric: Metric,
    columns: Sequence[Column | str],
    kept: I8,
    weights: Weights,
    shown: I4,
) -> WeightedStacks:
    """Split the stacks of the groups ``kept`` at the level that is a name among ``columns``.

    ``weights`` are those of all groups, frames are those ``shown`` for the recorded ones. Of a
    group there are two or three stacks where it has collectives whose waiting is known, else one,
    which has no frame at this level.
    """
    assert profile.totals is not None
    waits = profile.totals.waits
    assert waits is not None
    rows = np.arange(len(kept))
    met = np.flatnonzero(waits.calls[kept])
    unit = np.concatenate([rows, met, met])
    share = np.repeat(np.arange(3), [len(rows), len(met), len(met)])
    parts = Weights(*_parts(weights.take(kept), kept, met, waits, metric))
    frame = np.array([NONE, shown[waits.waiting_frame], shown[waits.transfer_frame]], np.int32)
    there = np.flatnonzero((parts.value > 0) | (parts.activities > 0))
    stack = unit[there]
    frames = tuple(
        frame[share[there]] if isinstance(column, str) else column[stack] for column in columns
    )
    unit_of_group = np.full(len(weights.activities), -1, np.int32)
    unit_of_group[kept] = rows
    return WeightedStacks(StackColumns(there, frames), parts, unit, unit_of_group, True, share)


def _parts(
    whole: Weights, kept: I8, met: I8, waits: GroupWaits, metric: Metric
) -> tuple[Column, Column]:
    """(value, number of activities) of each part: all unknown ones, all waiting, all transfer.

    Each collective has both: which of them has how many says nothing, but all are counted.
    """
    of = kept[met]
    calls, waiting, transfer = waits.calls[of], waits.waiting[of], waits.transfer[of]
    ratio = waiting / np.maximum(waiting + transfer, 1)
    waited = np.rint(calls * ratio).astype(np.int64)
    if metric.key == WAIT.key:
        transfer, waited = np.zeros_like(transfer), calls
    unknown, others = whole.value.copy(), whole.activities.copy()
    unknown[met] -= waiting + transfer
    others[met] -= calls
    return (
        np.concatenate([unknown, waiting, transfer]),
        np.concatenate([others, waited, calls - waited]),
    )
