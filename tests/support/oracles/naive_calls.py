"""The outermost API calls of an nsys file once more, slowly and plainly."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.support.oracles.naive import BACKTRACE, Trace, outer_first, read_calls, tid_of


class Outermost(NamedTuple):
    """A call that is in no other one of its thread, or what of it is after the one before."""

    pid: int
    tid: int
    name: str
    begin: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.begin


def outermost_calls(path: Path) -> list[Outermost]:
    """Those with any length, without rows that only repeat a call with its backtrace."""
    threads = defaultdict(list)
    for call in read_calls(Trace(path)):
        if call.event_class != BACKTRACE and call.end > call.start:
            threads[call.tid].append(call)
    found = []
    for thread, calls in threads.items():
        reach = min(call.start for call in calls)
        for call in sorted(calls, key=outer_first):
            if call.end > max(call.start, reach):
                begin = max(call.start, reach)
                found.append(Outermost(call.pid, tid_of(thread), call.name, begin, call.end))
                reach = call.end
    return found
