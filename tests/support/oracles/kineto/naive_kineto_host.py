"""Steps and host time of PyTorch profiler traces, slowly and plainly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter

from tests.support.oracles.kineto.naive_kineto import Opened, Python, Range, Work, range_of
from tests.support.oracles.kineto.naive_kineto_events import (
    CALLS,
    RANGES,
    Event,
    Thread,
    category,
    thread,
)

# Steps


@dataclass(frozen=True)
class Step:
    """A step that the program told its profiler of."""

    number: int
    pid: str
    start: int
    end: int


def steps_of(events: Iterable[Event]) -> list[Step]:
    """Each once in its process, by start; one ends at the latest where the next one begins."""
    found: dict[tuple[str, int], Step] = {}
    for event in sorted(events, key=itemgetter("start", "end")):
        name = re.fullmatch(r"ProfilerStep#(\d+)", str(event["name"]))
        if name and category(event) in RANGES:
            number, pid = int(name[1]), str(event["pid"])
            found.setdefault((pid, number), Step(number, pid, event["start"], event["end"]))
    steps = list(found.values())
    ends = [
        min([step.end, *(next_.start for next_ in steps[place + 1 :] if next_.pid == step.pid)])
        for place, step in enumerate(steps)
    ]
    return [replace(step, end=end) for step, end in zip(steps, ends, strict=True)]


def in_steps(one: Work, steps: Iterable[Step], first: int, last: int) -> bool:
    """Whether it was launched in the steps ``first`` to ``last`` of its process."""
    return any(
        first <= step.number <= last and step.pid == one.pid and step.start <= one.moment < step.end
        for step in steps
    )


# Host


@dataclass(frozen=True)
class HostTime:
    """Where a thread was for a while: what was open, outermost first."""

    on: Thread
    python: tuple[str, ...]
    ranges: tuple[Range, ...]
    call: str | None
    ns: int = field(compare=False)


def host_times(events: list[Event], raw: bool = False) -> Iterator[HostTime]:
    """Each thread's time, cut at every start and end, where anything was open."""
    python = Python(events)
    kinds = ({"python_function"}, RANGES, CALLS)
    tables = [Opened(event for event in events if category(event) in kind) for kind in kinds]
    everything = set().union(*kinds)
    hosts = [event for event in events if category(event) in everything]
    for on in {thread(event) for event in hosts}:
        own = [event for event in hosts if thread(event) == on and event["end"] > event["start"]]
        cuts = sorted({time for event in own for time in (event["start"], event["end"])})
        yield from _pieces(on, cuts, [table.ordered(on) for table in tables], python, raw)


def _pieces(
    on: Thread, cuts: list[int], tables: Sequence[list[Event]], python: Python, raw: bool
) -> Iterator[HostTime]:
    upcoming = [iter([one for one in table if one["end"] > one["start"]]) for table in tables]
    following = [next(one, None) for one in upcoming]
    opened: list[list[Event]] = [[], [], []]
    for begin, end in pairwise(cuts):
        for kind, one in enumerate(upcoming):
            while (span := following[kind]) is not None and span["start"] <= begin:
                opened[kind].append(span)
                following[kind] = next(one, None)
            opened[kind] = [span for span in opened[kind] if span["end"] > begin]
        functions, ranges, calls = opened
        if functions or ranges or calls:
            yield HostTime(
                on,
                python.path(functions),
                tuple(range_of(span, raw) for span in ranges),
                str(calls[-1]["name"]) if calls else None,
                end - begin,
            )
