"""Find the trend of values over time, with scipy, which is imported here alone and when needed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8

_FEWEST = 5
_MOST = 2_000
"""Values that are looked at: each is compared with each, and 2,000 take 16 MB."""

HOW = "install flame-view[statistics] to see whether they get slower"


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
    """Find the trend of ``values``; None of fewer than 5, of equal ones, and without scipy.

    Of more than 2,000 it is that of 2,000 among them, evenly apart.
    """
    if len(values) < _FEWEST or values.min() == values.max() or not has_statistics():
        return None
    from scipy.stats import kendalltau, theilslopes

    at = np.linspace(0, len(values) - 1, min(len(values), _MOST)).round().astype(np.int64)
    slope = theilslopes(values[at], at).slope
    return Trend(float(slope), float(kendalltau(at, values[at]).pvalue))
