"""Write values and changes on the basis of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from flame.core.compare.changes import Changes
from flame.core.units import format_value

MINUS = "−"

_TIMES = 10
"""From this many times the base on, a change is written as such."""
_MOST = 99_999


class Amounts(NamedTuple):
    """Write amounts in ``unit``, or in percent where they are shares."""

    unit: str
    is_share: bool = False

    def value(self, value: float) -> str:
        """Write ``value``, which is not negative and may be a quotient: never a wrong zero."""
        if self.is_share:
            return "<0.1 %" if 0 < value < 0.05 else f"{value:.1f} %"
        if self.unit == "ns" and 0 < value < 0.5:
            return "<1 ns"
        if self.unit == "count" and value < 100 and value != int(value):
            return "<0.1" if value < 0.05 else f"{value:.1f}"
        return format_value(value, self.unit)

    def delta(self, delta: float) -> str:
        """Write a change with its sign."""
        return f"{sign_of(delta)}{self.value(abs(delta))}"


def sign_of(delta: float) -> str:
    """The sign of a change, none of 0."""
    return "+" if delta > 0 else MINUS if delta < 0 else ""


def percent_of(ratio: float) -> str:
    """Write a change as a part of the base: ``+12.3 %``, ``×51``; ``new`` where that is nothing."""
    if math.isinf(ratio):
        return "new"
    if ratio >= _TIMES - 1:
        return f"×{1 + ratio:,.0f}" if ratio < _MOST else f"×>{_MOST:,}"
    percent = abs(ratio) * 100
    text = "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"
    return f"{sign_of(ratio)}{text}" if ratio else "0 %"


def change_words(changes: Changes, place: int, amounts: Amounts) -> Iterator[str]:
    """Say in few words how what is at ``place`` has changed, the most important first."""
    base, new = float(changes.base.value[place]), float(changes.new.value[place])
    if changes.is_new[place]:
        yield f"new {amounts.value(new)}"
    elif changes.is_gone[place]:
        yield f"gone {amounts.value(base)}"
    else:
        yield f"{amounts.value(base)} → {amounts.value(new)}"
        yield percent_of(float(changes.ratio[place]))
        yield amounts.delta(float(changes.delta[place]))


def change_counts(changes: Changes, place: int) -> str:
    """Say how many activities the sides have at ``place``, as they were recorded."""
    base, new = int(changes.base.count[place]), int(changes.new.count[place])
    return f"{base:,}×" if base == new else f"{base:,} → {new:,}×"
