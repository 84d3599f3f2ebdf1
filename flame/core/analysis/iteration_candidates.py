"""Find the ranges that repeat, of which a user may name one as the iterations of a trace."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, distinct, pack, run_starts, sum_by
from flame.core.model.activities import ThreadSpans
from flame.core.model.frames import Kind
from flame.core.model.launches import LaunchedBefore
from flame.core.model.profile import Profile
from flame.core.names.numbers import split_numbers

_FEWEST = 3
"""Ranges of one name, but for numbers, on one thread, that may be iterations."""


class IterationCandidate(NamedTuple):
    """Sum up ranges of a thread whose names differ in numbers alone, none within another.

    ``pattern`` is an expression for these names; ``gpu_time`` was launched in all of them
    together, ns.
    """

    pattern: str
    number: int
    gpu_time: int


def iteration_candidates(profile: Profile, most: int) -> tuple[IterationCandidate, ...]:
    """Find the ranges that repeat in which ``most`` GPU time was launched, of equals the longest.

    Each name is listed once, of the thread with most in it.
    """
    if profile.spans_finder is None or profile.resolved:
        return ()
    patterns, family_of = _families(profile)
    spans = profile.spans_finder(np.flatnonzero(family_of >= 0).tolist())
    process_of = np.array([thread.process for thread in profile.threads], np.int32)
    launched = LaunchedBefore.of(profile.activities)
    gpu_time = launched.between(process_of[spans.thread], spans.start, spans.end)
    family = family_of[spans.frame]
    keys, place = distinct(pack([family, spans.thread]))
    first = np.zeros(len(keys), np.int64)
    first[place[::-1]] = np.arange(len(place) - 1, -1, -1)
    number = np.bincount(place, minlength=len(keys))
    time = sum_by(place, gpu_time, len(keys))
    length = sum_by(place, spans.end - spans.start, len(keys))
    able = (number >= _FEWEST) & (time > 0) & ~_overlap(spans, place, len(keys))
    found: dict[str, IterationCandidate] = {}
    for at in np.lexsort((-length, -time)).tolist():
        pattern = patterns[int(family[first[at]])]
        if able[at] and len(found) < most and pattern not in found:
            found[pattern] = IterationCandidate(pattern, int(number[at]), int(time[at]))
    return tuple(found.values())


def _families(profile: Profile) -> tuple[list[str], I8]:
    """Expressions for names that differ in numbers, and the place of each frame's, -1: no range."""
    frames = profile.frames
    family_of = np.full(len(frames), -1, np.int64)
    known: dict[str, int] = {}
    for at in np.flatnonzero(frames.kind == Kind.NVTX).tolist():
        texts = map(re.escape, split_numbers(frames[at].name).texts)
        pattern = "[0-9]+".join(texts).replace(r"\ ", " ")
        family_of[at] = known.setdefault(f"^{pattern}$", len(known))
    return list(known), family_of


def _overlap(spans: ThreadSpans, place: I8, size: int) -> np.ndarray[tuple[int], np.dtype[np.bool]]:
    """Which of ``size`` places has a range that begins before the one before it has ended."""
    order = np.lexsort((spans.start, place))
    start, end, of = spans.start[order], spans.end[order], place[order]
    within = np.zeros(len(order), bool)
    within[1:] = start[1:] < end[:-1]
    within[run_starts(of)] = False
    marks = np.zeros(size, bool)
    marks[of[within]] = True
    return marks
