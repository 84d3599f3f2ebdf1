"""Times of events: microseconds as a trace spells them, in whole nanoseconds without drift."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.readers.kineto.events import EXACT_US, Us

LIMIT = 1 << 61
"""Times beyond 73 years (ns) are damage; the difference of two within fits 63 bits."""


def nanoseconds(values: Sequence[Us]) -> tuple[I8, Bool]:
    """``values`` (µs) in ns, and which of them are times at all (0 where not)."""
    us = np.array(values, np.float64)
    known = np.abs(us) <= LIMIT // 1000  # not where it is NaN, which None becomes
    us = np.where(known, us, 0.0)
    # Whole microseconds and the rest apart: both are exact, their product by 1000 would not be.
    whole = np.floor(us)
    ns = whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
    for place in np.flatnonzero(us >= EXACT_US).tolist():
        value = values[place]
        if isinstance(value, Decimal):
            ns[place] = round(value * 1000)
    return ns, known
