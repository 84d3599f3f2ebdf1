"""Keep how long activities took, each rounded a little, so that percentiles of any are known."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Bool, sum_by, unique_rows
from flame.core.compare.kept.base_file import KeptDurations, KeptPart
from flame.core.report.gate.percentiles import Durations

_DIGITS = 8
"""Binary digits that are kept of a duration, which is off by 0.8 % at most then."""

_MOST = 60_000
"""Different durations that are kept: of the heaviest groups. They take 70 kB."""


def keep_durations(group: I8, duration: I8, size: int) -> KeptDurations:
    """Count the durations (ns, i8[n]) of each ``group`` (i8[n], of ``size``), rounded down."""
    rounded = duration - (duration & _room(duration))
    first, place = unique_rows([group, rounded])
    count = np.bincount(place, minlength=len(first))
    groups = group[first]
    heaviest = np.argsort(-sum_by(group, duration, size), kind="stable")
    held = np.cumsum(np.bincount(groups, minlength=size)[heaviest])
    kept = np.zeros(size, bool)
    kept[heaviest[held <= _MOST]] = True
    chosen = np.flatnonzero(kept[groups])
    columns = (groups[chosen], rounded[first][chosen], count[chosen])
    return KeptDurations(*(column.tolist() for column in columns))


def kept_durations(part: KeptPart, groups: Bool) -> Durations | None:
    """Collect the durations of marked groups of ``part``; None where not all of them were kept."""
    if part.durations is None:
        return None
    group, low, count = (
        np.array(column, np.int64)
        for column in (part.durations.group, part.durations.ns, part.durations.count)
    )
    chosen = np.flatnonzero(groups[group])
    wanted = int(np.array(part.count, np.int64)[groups].sum())
    if int(count[chosen].sum()) != wanted:
        return None
    chosen = chosen[np.argsort(low[chosen], kind="stable")]
    return Durations(low[chosen], low[chosen] + _room(low[chosen]), count[chosen])


def _room(duration: I8) -> I8:
    """How much longer each could have been and is still rounded to the same, ns."""
    digits = np.frexp(duration.astype(np.float64))[1].astype(np.int64)
    return (np.int64(1) << np.maximum(digits - _DIGITS, 0)) - 1
