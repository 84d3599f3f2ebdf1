"""Host self time once more, slowly and plainly: each thread's time cut at every start and end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.support.oracles.naive import (
    BACKTRACE,
    Call,
    Range,
    Trace,
    outer_first,
    pid_of,
    read_calls,
    read_ranges,
    tid_of,
)


@dataclass
class HostTime:
    """Host self time of one thread under one set of open ranges and one innermost API call."""

    pid: int
    tid: int
    ranges: tuple[str, ...]
    call: str | None
    ns: int


def naive_host(path: Path, *, start_end: bool = False) -> list[HostTime]:
    """Time of each thread by open ranges and innermost API call; `start_end` as in `naive`."""
    trace = Trace(path)
    ranges = read_ranges(trace, start_end=start_end)
    calls = defaultdict(list)
    for call in read_calls(trace):
        if call.event_class != BACKTRACE:
            calls[call.tid].append(call)
    found: list[HostTime] = []
    for thread in {*ranges, *calls}:
        own = sorted(calls[thread], key=outer_first)
        found += host_times(thread, ranges.get(thread, []), own)
    return found


def host_times(thread: int, ranges: list[Range], calls: list[Call]) -> Iterator[HostTime]:
    """Cut the thread's time at every start and end; charge each piece to what is open in it."""
    spans = [one[:2] for one in ranges] + [one[:2] for one in calls]
    cuts = sorted({time for span in spans for time in span})
    open_ranges: list[Range] = []
    open_calls: list[Call] = []
    at_range = at_call = 0
    for time, until in pairwise(cuts):
        while at_range < len(ranges) and ranges[at_range].start <= time:
            open_ranges.append(ranges[at_range])
            at_range += 1
        while at_call < len(calls) and calls[at_call].start <= time:
            open_calls.append(calls[at_call])
            at_call += 1
        open_ranges = [one for one in open_ranges if one.end > time]
        open_calls = [one for one in open_calls if one.end > time]
        if open_ranges or open_calls:
            path = tuple(one.text for one in open_ranges)
            call = open_calls[-1].name if open_calls else None
            yield HostTime(pid_of(thread), tid_of(thread), path, call, until - time)
