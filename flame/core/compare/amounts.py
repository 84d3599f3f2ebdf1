"""Write values and changes on the basis of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8
from flame.core.compare.changes import Changes, Side
from flame.core.units import format_value, sign_of

_TIMES = 10
"""From this many times the base on, a change is written as such."""
_MOST = 99_999
_NEARLY = 0.9995
_DIVIDING = ("step", "second", "unit", "rank")


class Amounts(NamedTuple):
    """Write amounts in ``unit`` on the basis ``kind``, of which shares are in percent."""

    unit: str
    kind: str = "total"

    def value(self, value: float) -> str:
        """Write ``value``, which is not negative and may be a quotient: never a wrong zero."""
        if self.kind == "share":
            return "<0.1 %" if 0 < value < 0.05 else f"{value:.1f} %"
        if self.unit == "ns" and 0 < value < 0.5:
            return "<1 ns"
        return _number(value) if self.unit == "count" else format_value(value, self.unit)

    def delta(self, delta: float) -> str:
        """Write a change with its sign."""
        return f"{sign_of(delta)}{self.value(abs(delta))}"

    def counts(self, side: Side) -> F8:
        """How many activities a side has, f8[n]: on the basis where that divides them, too."""
        return side.scaled_count if self.kind in _DIVIDING else side.count.astype(np.float64)

    def number(self, side: Side, place: int) -> str:
        """Write how many activities ``side`` has at ``place``."""
        return _number(float(self.counts(side)[place]))


def _number(value: float) -> str:
    if value < 100 and value != int(value):
        return "<0.1" if value < 0.05 else f"{value:.1f}"
    return f"{value:,.0f}"


def format_ratio(ratio: float) -> str:
    """Write a change as a part of the base: ``+12.3 %``, ``×51``; ``new`` where that is nothing."""
    if math.isinf(ratio):
        return "new"
    if ratio >= _TIMES - 1:
        return f"×{1 + ratio:,.0f}" if ratio < _MOST else f"×>{_MOST:,}"
    percent = abs(ratio) * 100
    text = "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"
    if -1 < ratio < -_NEARLY:
        text = ">99.9 %"
    return f"{sign_of(ratio)}{text}" if ratio else "0 %"


def change_words(changes: Changes, place: int, amounts: Amounts) -> Iterator[str]:
    """Say in few words how what is at ``place`` has changed, the most important first."""
    base, new = float(changes.base.value[place]), float(changes.new.value[place])
    if changes.is_new[place]:
        yield f"new {amounts.value(new)}"
    elif changes.is_gone[place]:
        yield f"gone {amounts.value(base)}"
    elif base == new:
        yield f"{amounts.value(new)} unchanged"
    else:
        yield f"{amounts.value(base)} → {amounts.value(new)}"
        yield format_ratio(float(changes.ratio[place]))
        yield amounts.delta(float(changes.delta[place]))


def change_counts(changes: Changes, place: int, amounts: Amounts) -> str:
    """Say how many activities the sides have at ``place``."""
    base, new = (amounts.number(side, place) for side in (changes.base, changes.new))
    return f"{base}×" if base == new else f"{base} → {new}×"
