"""Find the trend of values over time, with scipy, which is imported here alone and when needed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8

_FEWEST = 5
_MOST = 2_000
"""Values that are looked at: each is compared with each, and 2,000 take 16 MB."""

_LEVEL = 0.01

HOW = "install scipy to see whether they get slower"


class Trend(NamedTuple):
    """Say how much values change from each to the next (Theil-Sen), and how likely by chance.

    ``chance`` is the p-value of Kendall's rank correlation with time (Mann-Kendall), 0..1.
    """

    slope: float
    chance: float


def has_statistics() -> bool:
    """Tell whether scipy is installed."""
    return find_spec("scipy") is not None


def trend(values: I8) -> Trend | None:
    """Find the trend of ``values``; None of fewer than 5, and without scipy.

    None, too, where the medians of both halves are within 1 %: whatever a test said, nobody would
    look for it, and to import scipy takes longer than all else that is done with iterations. Of
    more than 2,000 values it is the trend of 2,000 among them, evenly apart.
    """
    if len(values) < _FEWEST or _is_level(values) or not has_statistics():
        return None
    from scipy.stats import kendalltau, theilslopes

    at = np.linspace(0, len(values) - 1, min(len(values), _MOST)).round().astype(np.int64)
    slope = theilslopes(values[at], at).slope
    return Trend(float(slope), float(kendalltau(at, values[at]).pvalue))


def _is_level(values: I8) -> bool:
    early, late = (float(np.median(half)) for half in np.array_split(values, 2))
    return abs(late - early) <= _LEVEL * max(abs(early), abs(late))
