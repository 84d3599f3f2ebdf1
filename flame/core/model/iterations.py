"""Find the iterations of a trace: steps of the PyTorch profiler, or else ranges that repeat."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Column, places_on_lanes, run_starts
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE, Activities, ThreadSpans
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.launches import LaunchedBefore, launch_times
from flame.core.model.meta import ProfilerSteps, Thread
from flame.core.names.numbers import STAR, NumberedName, split_numbers
from flame.core.names.nvtx import clean_range
from flame.core.regex import find_matching

_FEWEST = 3
"""Ranges of one name, but for numbers, on one thread, that are iterations."""

_PROFILER = "ProfilerStep"

# A word for an iteration. Those of the second line are parts of other names, too: `execute_kernel`.
_WORD = lazy_regex(
    r"(?<![^\W_])(?:steps?|iter|iterations?)(?![^\W_])"
    r"|(?<!\w)(?:execute|execute_model|decode|generate)(?!_?[^\W_])",
    re.IGNORECASE,
)
_MAYBE = lazy_regex("step|iter|execute|decode|generate", re.IGNORECASE)
_NOT_ALL = ("Optimizer.",)
"""PyTorch's `Optimizer.step#SGD.step` is a part of an iteration."""


@dataclass(frozen=True, eq=False)
class Iterations:
    """Hold when processes were in which iteration, by process and start; none overlap in one.

    ``number`` i8 is that of the name where it counts up, else the place in its process, from 0 on;
    the same in several processes are one iteration of the job. ``start`` and ``end`` (exclusive)
    are i8 in ns, ``process`` and ``thread`` i4. ``frame`` i4 is that of the range, -1 of a step of
    the profiler; ``frames`` are those of all ranges that stand for iterations.
    """

    source: Literal["profiler", "ranges", "none"]
    number: I8
    process: I4
    thread: I4
    start: I8
    end: I8
    frame: I4
    frames: I8

    def __len__(self) -> int:
        return len(self.number)

    def of(self, table: Activities) -> I4:
        """Find the iteration that each row of ``table`` was launched in, i4[n]; -1: in none.

        Rows without a recorded launch count by their own start. It is kept as long as the table is.
        """
        known = _known_of(self)
        if table not in known:
            known[table] = self.at(table.process, launch_times(table)).astype(np.int32)
        return known[table]

    def at(self, process: Column, time: Column) -> I8:
        """Find the iteration in which each ``process`` was at ``time``, i8[n]; -1: in none."""
        if not len(self):
            return np.full(len(time), NONE, np.int64)
        place = places_on_lanes(self.process, self.start, process, time, "right") - 1
        # What is before all of them is at none: the last one has no time there.
        outside = (self.process[place] != process) | (time >= self.end[place]) | (place < 0)
        place[outside] = NONE
        return place

    def places_among(self, numbers: I8, iteration: Column) -> I8:
        """Find the place among ``numbers`` of the iteration that each row is in, i8[n]; -1: none.

        ``iteration`` has places here, -1 of rows that are in no iteration.
        """
        order = np.argsort(numbers, kind="stable")
        ordered = np.append(numbers[order], NONE)
        at = np.searchsorted(ordered[:-1], self.number)
        places: I8 = np.where(ordered[at] == self.number, np.append(order, NONE)[at], NONE)
        return np.append(places, NONE)[iteration.astype(np.intp, copy=False)]

    def of_processes(self) -> Iterable[tuple[int, int]]:
        """List the rows of each process: from the first until before the second."""
        return pairwise([*run_starts(self.process).tolist(), len(self)])


@kept
def _known_of(_: Iterations) -> WeakKeyDictionary[Activities, I4]:
    """What `Iterations.of` has found, by table."""
    return WeakKeyDictionary()


def step_iterations(steps: ProfilerSteps, frames: FrameTable) -> Iterations:
    """Make iterations of the steps of the PyTorch profiler, `ProfilerStep#12`."""
    ranges = np.flatnonzero(frames.kind == Kind.NVTX).tolist()
    named = [at for at in ranges if clean_range(frames[at].name).name == _PROFILER]
    return _iterations(
        "profiler",
        steps.number,
        steps.process,
        steps.thread,
        steps.start,
        steps.end,
        np.full(len(steps), NONE, np.int32),
        np.array(named, np.int64),
    )


def find_iterations(
    steps: ProfilerSteps | None,
    frames: FrameTable,
    threads: Sequence[Thread],
    table: Activities | None,
    finder: Callable[[Sequence[int]], ThreadSpans] | None,
) -> Iterations:
    """Find the ``steps`` of the PyTorch profiler, else the ranges that are iterations, if any.

    None of a recording that goes on, of which there is no ``table``: older rows are not kept.
    """
    if steps is not None and len(steps):
        return step_iterations(steps, frames)
    if table is None:
        return no_iterations()
    return repeated_ranges(frames, threads, table, finder)


def no_iterations() -> Iterations:
    """Make the iterations of a trace that has none."""
    wide, narrow = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Iterations("none", wide, narrow, narrow, wide, wide, narrow, wide)


def _iterations(
    source: Literal["profiler", "ranges", "none"],
    number: I8,
    process: I4,
    thread: I4,
    start: I8,
    end: I8,
    frame: I4,
    frames: I8,
) -> Iterations:
    """Order the rows by process and start, each of which ends where the next one begins."""
    order = np.lexsort((start, process))
    start, end, process = start[order], end[order].copy(), process[order]
    same = process[1:] == process[:-1]
    end[:-1][same] = np.minimum(end[:-1], start[1:])[same]
    return Iterations(
        source, number[order], process, thread[order], start, end, frame[order], frames
    )


# Ranges


class _Members(NamedTuple):
    """Frames whose names differ in numbers alone."""

    frames: list[int]
    names: list[NumberedName]


class _Candidate(NamedTuple):
    """Ranges that may be iterations, i8 rows of spans by process and start, and how much they are.

    ``gpu_time`` was launched in them, of ``length`` in all, ns.
    """

    gpu_time: int
    length: int
    members: _Members
    rows: I8


def repeated_ranges(
    frames: FrameTable,
    threads: Sequence[Thread],
    table: Activities,
    find_spans: Callable[[Sequence[int]], ThreadSpans] | None,
) -> Iterations:
    """Find the ranges that are iterations; ``find_spans`` finds all ranges of given frames.

    Their names have a word such as `step` and differ in numbers alone; a thread has at least three
    of them, none within another; and in them at least half of the GPU time of ``table`` was
    launched. Of several such names that with the most of it, of equals the outermost. In each
    process they are those of the thread that has most of them.
    """
    families = list(_families(frames))
    if find_spans is None or not families:
        return no_iterations()
    process_of = np.array([thread.process for thread in threads], np.int32)
    spans = find_spans([frame for members in families for frame in members.frames])
    found = [(members, _ranges_of(members, spans, process_of)) for members in families]
    able = [(members, rows) for members, rows in found if rows is not None]
    if not able:
        return no_iterations()
    every = np.concatenate([rows for _, rows in able])
    process, times = process_of[spans.thread[every]], (spans.start[every], spans.end[every])
    launched = LaunchedBefore.at(table, np.tile(process, 2), np.concatenate(times))
    candidates = []
    for members, rows in able:
        low, high = spans.start[rows], spans.end[rows]
        gpu_time = int(launched.between(process_of[spans.thread[rows]], low, high).sum())
        candidates.append(_Candidate(gpu_time, int((high - low).sum()), members, rows))
    best = max(candidates, key=lambda one: one[:2])
    if not best.gpu_time or 2 * best.gpu_time < launched.total:
        return no_iterations()
    return _numbered(best, spans, process_of)


def _families(frames: FrameTable) -> Iterable[_Members]:
    """Frames of ranges with a word for an iteration, by name without numbers, and by domain."""
    found: defaultdict[tuple[object, ...], _Members] = defaultdict(lambda: _Members([], []))
    named = cache(_iteration_name)  # many frames have one name
    for at in np.flatnonzero(frames.kind == Kind.NVTX).tolist():
        frame = frames[at]
        if (name := named(frame.name)) is not None:
            members = found[(frame.get("domain"), *name.texts)]
            members.frames.append(at)
            members.names.append(name)
    return found.values()


def _iteration_name(text: str) -> NumberedName | None:
    """The name of a range with a word for an iteration; None without one."""
    if not _MAYBE.search(text) or text.startswith(_NOT_ALL):
        return None
    name = split_numbers(clean_range(text).name)
    return name if _WORD.search(STAR.join(name.texts)) else None


def _ranges_of(members: _Members, spans: ThreadSpans, process_of: I4) -> I8 | None:
    """Find the rows of ``spans`` that are ``members``, by process and start, of a thread in each.

    None where no thread has enough of them, or one lies within another.
    """
    rows = np.flatnonzero(np.isin(spans.frame, members.frames))
    thread = spans.thread[rows]
    counts = np.bincount(thread, minlength=len(process_of)) * (process_of >= 0)
    if counts.max(initial=0) < _FEWEST:
        return None
    rows = rows[np.isin(thread, _busiest(counts, process_of))]
    process = process_of[spans.thread[rows]]
    rows = rows[np.lexsort((spans.start[rows], process))]
    same = np.diff(process_of[spans.thread[rows]]) == 0
    within = spans.start[rows][1:] < spans.end[rows][:-1]
    return None if (same & within).any() else rows


def _busiest(counts: Column, process_of: I4) -> I8:
    """The thread of each process with the highest of ``counts``; of equals the first."""
    order = np.lexsort((np.arange(len(counts)), -counts, process_of))
    best: I8 = order[run_starts(process_of[order])]
    return best


def chosen_ranges(
    frames: FrameTable,
    threads: Sequence[Thread],
    pattern: re.Pattern[str],
    find_spans: Callable[[Sequence[int]], ThreadSpans] | None,
) -> Iterations:
    """Make iterations of the ranges whose name ``pattern`` matches; ``find_spans`` finds them.

    In each process they are those of the thread that has most of them; those within another one
    are left out. Raises UsageError where the pattern takes too long.
    """
    ranges = np.flatnonzero(frames.kind == Kind.NVTX)
    names = [frames[at].name for at in ranges.tolist()]
    found = ranges[find_matching(names, np.arange(len(names)), pattern)]
    if find_spans is None or not len(found):
        return no_iterations()
    process_of = np.array([thread.process for thread in threads], np.int32)
    spans = find_spans(found.tolist())
    counts = np.bincount(spans.thread, minlength=len(process_of)) * (process_of >= 0)
    busiest = _busiest(counts, process_of)
    rows = np.flatnonzero(np.isin(spans.thread, busiest[counts[busiest] > 0]))
    rows = _outermost(spans, rows, process_of)
    split = [split_numbers(frames[at].name) for at in found.tolist()]
    best = _Candidate(0, 0, _Members(found.tolist(), split), rows)
    return _numbered(best, spans, process_of) if len(rows) else no_iterations()


def _outermost(spans: ThreadSpans, rows: I8, process_of: I4) -> I8:
    """Those of ``rows``, a thread in each process, that lie in no other: by process and start."""
    process = process_of[spans.thread[rows]]
    rows = rows[np.lexsort((-spans.end[rows], spans.start[rows], process))]
    kept = []
    for first, last in pairwise([*run_starts(process_of[spans.thread[rows]]).tolist(), len(rows)]):
        end = spans.end[rows[first:last]]
        kept.append(
            first + np.flatnonzero(np.append(True, end[1:] > np.maximum.accumulate(end)[:-1]))
        )
    return rows[np.concatenate(kept)] if kept else rows


def _numbered(best: _Candidate, spans: ThreadSpans, process_of: I4) -> Iterations:
    rows, frames = best.rows, np.array(best.members.frames, np.int64)
    process = process_of[spans.thread[rows]]
    order = np.argsort(frames)
    member = order[np.searchsorted(frames[order], spans.frame[rows])]
    return _iterations(
        "ranges",
        _numbers([best.members.names[at] for at in member.tolist()], process),
        process,
        spans.thread[rows],
        spans.start[rows],
        spans.end[rows],
        spans.frame[rows],
        frames,
    )


def _numbers(names: list[NumberedName], process: I4) -> I8:
    """The first of the numbers in ``names`` that counts up in each process, else their places."""
    if len({name.texts for name in names}) > 1:
        return _places(process)
    same = np.diff(process) == 0
    for column in zip(*(name.numbers for name in names), strict=True):
        if max(map(len, column)) <= _DIGITS:
            number = np.array(column).astype(np.int64)
            if (number[1:] > number[:-1])[same].all():
                return number
    return _places(process)


_DIGITS = 18
"""Digits of a number at most: more do not fit a column."""


def _places(process: I4) -> I8:
    first = run_starts(process)
    length = np.diff(np.append(first, len(process)))
    places: I8 = np.arange(len(process)) - np.repeat(first, length)
    return places
