"""What a live recording has to show, worked out slowly: loops over all rows there ever were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

NO_CALL = 0
METRICS = ("count", "gpu", "launch", "queue", "idle")
Sums = dict[tuple[object, ...], tuple[int, ...]]


class Call(NamedTuple):
    """A CUDA API call; ``path`` is the stack of ranges that it was made in."""

    correlation: int
    start: int
    end: int
    thread: int
    frame: int
    path: int = 0


class Activity(NamedTuple):
    """GPU work; ``thread`` and ``path`` are of its launch as it was seen without the call."""

    start: int
    end: int
    device: int
    frame: int
    correlation: int = NO_CALL
    thread: int = -1
    path: int = 0
    copy: bool = False


class Span(NamedTuple):
    """A range on the path ``path``, or (``frame`` >= 0) a call made within it."""

    start: int
    end: int
    thread: int
    path: int
    frame: int = -1


def work_sums(work: Sequence[Activity], calls: Iterable[Call], begin: int | None) -> Sums:
    """The sums of what starts at ``begin`` or later, by (thread, launch, path, frame, device)."""
    by_id: dict[int, Call] = {}
    for call in sorted(calls, key=lambda one: (one.start, one.start - one.end)):
        by_id.setdefault(call.correlation, call)
    order = sorted(range(len(work)), key=lambda at: (work[at].start, work[at].copy, at))
    of_call: dict[Call, list[int]] = defaultdict(list)
    for at in order:
        if work[at].correlation in by_id:
            of_call[by_id[work[at].correlation]].append(at)
    share = dict.fromkeys(order, 0)
    for call, rows in of_call.items():
        length = max(call.end - call.start, 0)
        for at in rows:
            share[at] = length // len(rows)
        share[rows[0]] += length % len(rows)
    busy: dict[int, int] = {}
    found: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0] * len(METRICS))
    for at in order:
        one = work[at]
        duration = max(one.end - one.start, 0)
        idle = max(one.start - busy.get(one.device, one.start), 0)
        busy[one.device] = max(busy.get(one.device, one.start), one.start + duration)
        if begin is not None and one.start < begin:
            continue
        known = by_id.get(one.correlation)
        queue = max(one.start - known.end, 0) if known else 0
        where = (known.thread, known.frame, known.path) if known else (one.thread, -1, one.path)
        sums = found[(*where, one.frame, one.device)]
        for place, value in enumerate((1, duration, share[at], queue, idle)):
            sums[place] += value
    return {key: tuple(values) for key, values in found.items()}


def host_sums(spans: Iterable[Span], parents: Sequence[int], begin: int | None) -> Sums:
    """(number, time of its own) of the spans after ``begin``, by (thread, path, call's frame)."""
    found: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for one in spans:
        start = one.start if begin is None else max(one.start, begin)
        if one.end <= start or one.thread < 0 or (one.path == 0 and one.frame < 0):
            continue
        own = found[one.thread, one.path, one.frame]
        own[0] += 1
        own[1] += one.end - start
        around = one.path if one.frame >= 0 else parents[one.path]
        if around:
            found[one.thread, around, -1][1] -= one.end - start
    return {key: tuple(values) for key, values in found.items()}
