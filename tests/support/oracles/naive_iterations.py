"""Iterations and what they hold, by plain loops over ranges and activities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from flame.core.model.profile import Profile


class Span(NamedTuple):
    """A range, or an iteration, of a thread."""

    name: str
    process: int
    thread: int
    start: int
    end: int


class Activity(NamedTuple):
    """What ran on a GPU, and when it was launched."""

    process: int
    device: int
    moment: int
    start: int
    ns: int


def activities_of(profile: Profile) -> list[Activity]:
    """All activities of ``profile``, one by one."""
    table = profile.activities
    return [
        Activity(
            int(table.process[row]),
            int(table.device[row]),
            int(table.launch_start[row] if table.launched[row] else table.start[row]),
            int(table.start[row]),
            int(table.duration[row]),
        )
        for row in range(len(table))
    ]


# Finding ranges that are iterations


def is_like_a_step(name: str) -> bool:
    """Whether a word of the name says that it is an iteration; for the names of these tests."""
    words = re.split(r"[^a-z]+", name.lower())
    whole = re.split(r"[^a-z_]+", name.lower())
    some = {"step", "steps", "iter", "iteration", "iterations"}.intersection(words)
    others = {"execute", "execute_model", "decode", "generate"}.intersection(
        word.strip("_") for word in whole
    )
    return bool(some or others) and not name.startswith("Optimizer.")


def find(ranges: Sequence[Span], activities: Sequence[Activity]) -> list[Span]:
    """The ranges that are iterations, by process and start; the best of all names."""
    families = defaultdict(list)
    for one in ranges:
        if is_like_a_step(one.name) and one.end > one.start:
            families[re.sub(r"\d+", "*", one.name)].append(one)
    found = [chosen for family in families.values() if (chosen := list(_of_family(family)))]
    whole = sum(one.ns for one in activities)
    rated = [
        (launched_in(one, activities), sum(s.end - s.start for s in one), one) for one in found
    ]
    best = max(rated, default=(0, 0, []), key=lambda row: row[:2])
    return best[2] if best[0] and 2 * best[0] >= whole else []


def _of_family(family: list[Span]) -> Iterator[Span]:
    counts = Counter(one.thread for one in family)
    if max(counts.values()) < 3:
        return
    chosen = []
    for process in sorted({one.process for one in family}):
        threads = sorted({one.thread for one in family if one.process == process})
        busiest = max(threads, key=lambda thread: (counts[thread], -thread))
        own = [one for one in family if one.thread == busiest]
        own.sort(key=lambda one: one.start)
        if any(later.start < one.end for one, later in pairwise(own)):
            return
        chosen += own
    yield from chosen


def launched_in(spans: Iterable[Span], activities: Iterable[Activity]) -> int:
    """The GPU time launched in any of ``spans``, ns."""
    spans = list(spans)
    return sum(one.ns for one in activities if place_of(one, spans) >= 0)


def place_of(one: Activity, spans: Sequence[Span]) -> int:
    """Which of ``spans`` it was launched in; -1: none."""
    for place, span in enumerate(spans):
        if span.process == one.process and span.start <= one.moment < span.end:
            return place
    return -1


# Measuring


@dataclass
class Sums:
    """What an iteration holds, of all processes."""

    start: int
    duration: int = 0
    gpu_time: int = 0
    activities: int = 0
    window: int = 0
    busy: int = 0


def measure(profile: Profile) -> tuple[dict[int, Sums], dict[str, tuple[int, int]]]:
    """Each number's sums, and (GPU time, activities) of what lies outside, by where."""
    found = profile.iterations
    numbers, spans = found.number.tolist(), spans_of(profile)
    works = activities_of(profile)
    sums: dict[int, Sums] = {}
    for number, span in zip(numbers, spans, strict=True):
        one = sums.setdefault(number, Sums(span.start))
        one.start = min(one.start, span.start)
        one.duration = max(one.duration, span.end - span.start)
    outside = dict.fromkeys(("before", "between", "after", "elsewhere"), (0, 0))
    for work in works:
        place = place_of(work, spans)
        if place >= 0:
            sums[numbers[place]].gpu_time += work.ns
            sums[numbers[place]].activities += 1
        else:
            where = _where(work, [span for span in spans if span.process == work.process])
            ns, count = outside[where]
            outside[where] = ns + work.ns, count + 1
    for device in {work.device for work in works}:
        users = {work.process for work in works if work.device == device}
        ran = union([(w.start, w.start + w.ns) for w in works if w.device == device])
        for number, one in sums.items():
            own = [s for n, s in zip(numbers, spans, strict=True) if n == number]
            windows = union([(s.start, s.end) for s in own if s.process in users])
            one.window += sum(high - low for low, high in windows)
            one.busy += overlap(windows, ran)
    return sums, outside


def spans_of(profile: Profile) -> list[Span]:
    """The iterations of ``profile``, one by one."""
    found = profile.iterations
    columns = (found.process, found.thread, found.start, found.end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Span("", *row) for row in rows]


def _where(work: Activity, spans: Sequence[Span]) -> str:
    if not spans:
        return "elsewhere"
    if work.moment < min(span.start for span in spans):
        return "before"
    return "after" if work.moment >= max(span.end for span in spans) else "between"


def union(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The disjoint stretches that any of ``intervals`` covers."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def overlap(some: Iterable[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    """How long both are open."""
    return sum(
        max(min(high, end) - max(low, begin), 0) for low, high in some for begin, end in others
    )
