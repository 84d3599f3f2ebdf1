"""Tell where ranks that were summed up are not consistent: they may not be those of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from flame.core.rank_summary.summary import RankInfo, RankSummary
from flame.core.units import format_age, format_counted

_LONG = 60_000_000_000
"""Time between the recordings of two ranks, ns, that no clocks make up."""


def inconsistencies(summary: RankSummary, iteration: str) -> Iterator[str]:
    """Say what is odd about the ranks, of which the ranges ``iteration`` were asked for."""
    yield from _inconsistent_numbers(summary)
    yield from _inconsistent_times(summary)
    yield from _inconsistent_iterations(summary, iteration)


def _inconsistent_numbers(summary: RankSummary) -> Iterator[str]:
    often = Counter(one.rank for one in summary.info)
    again = sorted(number for number, count in often.items() if count > 1)
    if again:
        same = [one.path for one in summary.info if one.rank == again[0]]
        rest = format_counted(len(again) - 1, "more number", "more numbers")
        more = f" (and {rest})" if len(again) > 1 else ""
        told = "waits and clocks need a number for each; are they of one run?"
        yield f"{same[0]} and {same[1]} are both rank {again[0]}{more}: {told}"


def _inconsistent_times(summary: RankSummary) -> Iterator[str]:
    known = sorted((one for one in summary.info if one.origin is not None), key=_begin)
    latest = 0
    for before, after in pairwise(known):
        latest = max(latest, _end(before))
        if (gap := _begin(after) - latest) > _LONG:
            when = f"began {format_age(gap / 1e9)} after all before it had ended"
            yield f"{after.path}: {when}: are all ranks of one run?"
            return


def _begin(info: RankInfo) -> int:
    return (info.origin or 0) + info.begin


def _end(info: RankInfo) -> int:
    return (info.origin or 0) + info.end


def _inconsistent_iterations(summary: RankSummary, asked: str) -> Iterator[str]:
    """Say where iterations are not what was asked for, or of several kinds."""
    mine = [one for one in summary.info if one.iteration == asked]
    if asked and mine and not any(one.step_numbers for one in mine):
        yield f"--iteration {asked!r}: no range of any rank matches"
    told = sorted({one.iteration for one in summary.info})
    if asked and len(mine) < len(summary):
        number = format_counted(len(summary) - len(mine), "rank", "ranks")
        yield f"--iteration {asked!r}: {number} of summaries keep the iterations that they had"
    elif len(told) > 1:
        words = [f"--iteration {one!r}" if one else "no --iteration" for one in told]
        number = format_counted(len(told), "way", "ways")
        what = f"iterations were told in {number} ({', '.join(words)})"
        yield f"{what}: steps with one number may be different things"
