"""Say in a few words how busy the GPUs were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flame.core.analysis.utilization import Utilization
from flame.core.shown_text import printable
from flame.core.units import format_ns, format_percent

_MOST_NAMED = 4


class BusyWords(NamedTuple):
    """Say how long the GPUs were looked at, which part of it they were busy, how long idle.

    Of several GPUs ``busy`` and ``idle`` range from the least to the most; ``each`` names them,
    where they are few and differ. All are empty where nothing is known, all but ``length`` where
    the time has none.
    """

    length: str = ""
    busy: str = ""
    each: str = ""
    idle: str = ""


def busy_words(gpus: Sequence[Utilization]) -> BusyWords:
    """Choose the words for ``gpus``, the GPUs that are looked at."""
    measured = [each for each in gpus if each.length]
    if not measured:
        return BusyWords(format_ns(0)) if gpus else BusyWords()
    shares = [(each.busy / each.length, busy_share(each)) for each in measured]
    idle = [(each.idle, format_ns(each.idle)) for each in measured]
    return BusyWords(
        format_ns(max(each.length for each in measured)),
        f"busy {_range(shares)}",
        _each(measured),
        f"idle {_range(idle)}",
    )


def busy_share(each: Utilization) -> str:
    """Format the part of its time that a GPU was busy; empty where the time has no length."""
    return format_percent(each.busy, each.length) if each.length else ""


def _range(values: Sequence[tuple[float, str]]) -> str:
    """``89.1–91.3 %``: the least and the most, the unit once where they have the same."""
    low, high = min(values)[1], max(values)[1]
    if low == high:
        return high
    number, _, unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {unit}') else low}–{high}"


def _each(measured: Sequence[Utilization]) -> str:
    shares = [busy_share(each) for each in measured]
    if len(set(shares)) < 2 or len(shares) > _MOST_NAMED:
        return ""
    named = (
        f"{printable(each.label)} {share}" for each, share in zip(measured, shares, strict=True)
    )
    return f"busy {', '.join(named)}"
