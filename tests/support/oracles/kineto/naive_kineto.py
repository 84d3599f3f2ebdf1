"""An independent reading of PyTorch profiler traces: `json` and plain loops, no columns.

What a test compares flame with. It shares no code with flame but the cleaning of range names,
which has tests of its own.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from flame.core.names.nvtx import clean_range
from tests.support.oracles.kineto.naive_kineto_events import (
    CALLS,
    RANGES,
    Event,
    Place,
    Thread,
    args_of,
    category,
    gpu_events,
    thread,
)
from tests.support.oracles.naive_python import Called
from tests.support.oracles.naive_python import path as recorded_path

NO_LAUNCH = "[no launch recorded]"
FORWARD, PLACED = "forward", "placed"
_FEW = 60
"""Python calls for which each is looked at at every moment: recorded callers may be wrong ones."""


@dataclass(frozen=True)
class Range:
    """An operator or annotation as it is shown; ``mark`` says that it was open elsewhere."""

    name: str
    shapes: str
    mark: str = ""


@dataclass
class Work:
    """One GPU activity and where it came from, outermost frames first."""

    event: Event
    call: Event | None
    pid: str | None
    python: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    share: int = 0
    idle: int = 0

    @property
    def ns(self) -> int:
        """How long it took."""
        length: int = self.event["end"] - self.event["start"]
        return length

    @property
    def launch(self) -> str:
        """The call."""
        return NO_LAUNCH if self.call is None else str(self.call["name"])

    @property
    def queue(self) -> int:
        """From the end of the call to its own start."""
        return 0 if self.call is None else max(self.event["start"] - self.call["end"], 0)

    @property
    def device(self) -> int:
        """Number of its GPU."""
        return int(args_of(self.event)["device"])

    @property
    def stream(self) -> int:
        """Number of its stream."""
        return int(args_of(self.event)["stream"])

    @property
    def moment(self) -> int:
        """When it was launched; when it ran where nobody knows that."""
        at: int = (self.event if self.call is None else self.call)["start"]
        return at


# What was open


class Opened:
    """Ranges or functions of all threads: which are open on one of them at a moment."""

    def __init__(self, spans: Iterable[Event]) -> None:
        self._by_thread: defaultdict[Thread, list[Event]] = defaultdict(list)
        for span in spans:
            self._by_thread[thread(span)].append(span)
        for own in self._by_thread.values():
            own.sort(key=_outer_first)
        self._around: dict[int, list[Event]] = {}

    def at(self, places: Iterable[Place]) -> dict[Place, list[Event]]:
        """Spans open at each place, outermost first: the earlier, the longer, the first."""
        wanted: defaultdict[Thread, set[int]] = defaultdict(set)
        for on, time in places:
            wanted[on].add(time)
        return {
            (on, time): spans
            for on, times in wanted.items()
            for time, spans in self._swept(on, sorted(times))
        }

    def ordered(self, on: Thread) -> list[Event]:
        """The spans of a thread, outer ones first."""
        return self._by_thread.get(on, [])

    def _swept(self, on: Thread, times: list[int]) -> Iterator[tuple[int, list[Event]]]:
        opened: list[Event] = []
        upcoming = iter(self.ordered(on))
        following = next(upcoming, None)
        for now in times:
            while following is not None and following["start"] <= now:
                opened.append(following)
                following = next(upcoming, None)
            opened = [span for span in opened if span["end"] >= now]
            yield now, list(opened)

    def around(self, one: Event) -> list[Event]:
        """The spans in which ``one`` began, itself included."""
        if id(one) not in self._around:
            above, start = [], one["start"]
            for span in self.ordered(thread(one)):
                if span is one or span["start"] > start:
                    break
                if span["end"] > start:
                    above.append(span)
            self._around[id(one)] = [*above, one]
        return self._around[id(one)]


def _outer_first(span: Event) -> tuple[int, int, bool, int]:
    """By start, then the longer, functions before ranges, by number."""
    return span["start"], span["start"] - span["end"], category(span) in RANGES, _number(span)


def _number(span: Event) -> int:
    return int(args_of(span).get("Python id") or 0)


# Launches


def works(events: list[Event], forward: bool = False, raw: bool = False) -> list[Work]:
    """Every GPU activity with the Python functions and ranges open where it was launched.

    ``forward``: those around the forward operator stand above a backward pass. ``raw``: names of
    ranges as recorded.
    """
    found = _joined(events)
    _attribute(found, events, forward, raw)
    _share_calls(found)
    _count_idle(found)
    return found


def processes_of(events: Iterable[Event]) -> set[str]:
    """Processes with anything on a CPU; functions of unknown threads stand in process 0."""
    hosts = {*CALLS, *RANGES, "python_function"}
    pids = {str(event["pid"]) for event in events if category(event) in hosts}
    return pids - {"0"} if len(pids) == 2 else pids


def _joined(events: list[Event]) -> list[Work]:
    """GPU events name no process: it is that of a call with their number.

    Within a process the earliest call of a number counts, of equally early ones the longest.
    """
    calls: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        number = args_of(event).get("correlation")
        if category(event) in CALLS and number:
            calls[number].append(event)
    pids, found = processes_of(events), []
    for event in gpu_events(events):
        candidates = calls.get(args_of(event).get("correlation", 0), [])
        if len(pids) > 1:
            owner = _owner(candidates, event)
            candidates = [call for call in candidates if str(call["pid"]) == owner]
        ordered = sorted(candidates, key=lambda one: (one["start"], -one["end"]))
        call = ordered[0] if ordered else None
        pid = next(iter(pids)) if len(pids) == 1 else str(call["pid"]) if call else None
        found.append(Work(event, call, pid))
    return found


def _owner(calls: list[Event], event: Event) -> str | None:
    """The process of the last of ``calls`` before ``event``, else of the first one after."""
    ordered = sorted(calls, key=itemgetter("start"))
    before = [call for call in ordered if call["start"] <= event["start"]]
    nearest = [*before[-1:], *ordered[:1]]
    return str(nearest[0]["pid"]) if nearest else None


def _attribute(found: list[Work], events: list[Event], forward: bool, raw: bool) -> None:
    ranges = Opened(event for event in events if category(event) in RANGES)
    python = Python(events)
    launched = [(one, (thread(one.call), one.call["start"])) for one in found if one.call]
    within = ranges.at(place for _, place in launched)
    functions = python.at([place for _, place in launched])
    for one, place in launched:
        one.python = functions[place]
        one.ranges = tuple(range_of(span, raw) for span in within[place])
    lanes = Opened(event for event in events if category(event) == "gpu_user_annotation")
    placed = lanes.at(_lane(one) for one in found if not one.call)
    for one in found:
        if not one.call:
            one.ranges = tuple(range_of(span, raw, PLACED) for span in placed[_lane(one)])
    if forward:
        _add_forward(launched, events, ranges, python, raw)


def _lane(one: Work) -> Place:
    """Its stream, where annotations of the GPU's own stand."""
    return (str(one.device), str(one.stream)), one.event["start"]


def _add_forward(
    launched: list[tuple[Work, Place]],
    events: list[Event],
    ranges: Opened,
    python: Python,
    raw: bool,
) -> None:
    links = forward_links(events)
    linked = Opened(event for event in events if id(event) in links).at(p for _, p in launched)
    pairs = [(*one, links[id(linked[one[1]][-1])]) for one in launched if linked[one[1]]]
    functions = python.at([(thread(source), source["start"]) for *_, source in pairs])
    for one, (on, _), source in pairs:
        one.python = one.python or functions[thread(source), source["start"]]
        outer = tuple(range_of(span, raw) for span in ranges.around(source))
        one.ranges = _below(outer, one.ranges, thread(source) == on)


def _below(outer: tuple[Range, ...], inner: tuple[Range, ...], same: bool) -> tuple[Range, ...]:
    """``outer``, marked, above ``inner``; on one thread what both begin with stands there once."""
    shared = 0
    while same and shared < min(len(outer), len(inner)) and outer[shared] == inner[shared]:
        shared += 1
    marked = (Range(one.name, one.shapes, FORWARD) for one in outer[shared:])
    return (*outer[:shared], *marked, *inner[shared:])


def range_of(event: Event, raw: bool, mark: str = "") -> Range:
    """How it is shown; ``raw`` as recorded."""
    name = str(event["name"]) if raw else _cleaned(str(event["name"]))
    return Range(name or "[range without a name]", _shapes(event), mark)


@cache
def _cleaned(name: str) -> str:
    return clean_range(name).name


def _shapes(event: Event) -> str:
    if "shapes" not in event:
        text = json.dumps(args_of(event).get("Input Dims", []))
        event["shapes"] = text if any(sign.isdigit() for sign in text) else ""
    return str(event["shapes"])


class Python:
    """Python stacks: of functions, or where none is open those recorded with operators."""

    def __init__(self, events: list[Event]) -> None:
        self._calls = [event for event in events if category(event) == "python_function"]
        self._functions = Opened(self._calls)
        self._recorded = Opened(event for event in events if args_of(event).get("Call stack"))
        self._one_process = len(processes_of(events)) == 1

    def at(self, places: list[Place]) -> dict[Place, tuple[str, ...]]:
        """Names of the functions at each place, outermost first."""
        functions, recorded = self._functions.at(places), self._recorded.at(places)
        return {
            place: self.path(functions[place]) or call_stack(recorded[place]) for place in functions
        }

    def path(self, opened: list[Event]) -> tuple[str, ...]:
        """Names of the last function of ``opened`` and its callers.

        By time; in small traces by recorded callers, which may be wrong there.
        """
        if len(self._calls) > _FEW or not opened:
            return tuple(map(function_name, opened))
        last, calls = opened[-1], self._calls
        if not self._one_process:
            calls = [one for one in calls if str(one["pid"]) == str(last["pid"])]
        named = [_called(one, place) for place, one in enumerate(calls)]
        start = next(named[place] for place, one in enumerate(calls) if one is last)
        return tuple(name.partition("#")[2] for name in recorded_path(named, start))


def _called(event: Event, place: int) -> Called:
    """Equal calls are told apart by their places."""
    name = f"{place}#{function_name(event)}"
    caller = int(args_of(event).get("Python parent id") or 0)
    on = hash(thread(event))
    return Called(on, event["start"], event["end"], name, _number(event), caller)


def function_name(event: Event) -> str:
    """`file.py(3): f` as recorded; built-in functions without their address."""
    return _without_address(str(event["name"]))


@cache
def _without_address(name: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", name)


def call_stack(ranges: list[Event]) -> tuple[str, ...]:
    """The Python stack written down with the innermost range that has one."""
    if not ranges:
        return ()
    return tuple(reversed(args_of(ranges[-1])["Call stack"].split(";")))


def forward_links(events: Iterable[Event]) -> dict[int, Event]:
    """The forward operator of each operator of a backward pass, by its `id`.

    That is the one with its sequence number that started last, and innermost, before it on the
    forward thread: as PyTorch itself draws its arrows. Which thread is meant shows in whose
    operators fit most often, and most recently.
    """
    numbered = [event for event in events if args_of(event).get("Sequence number", -1) >= 0]
    homes: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
    known: defaultdict[tuple[Thread, int], list[Event]] = defaultdict(list)
    for event in numbered:
        home = args_of(event).get("Fwd thread id") or 0
        if home > 0:
            homes[str(event["pid"]), home].append(event)
        else:
            known[thread(event), args_of(event)["Sequence number"]].append(event)
    links: dict[int, Event] = {}
    for (pid, _), backward in homes.items():
        threads = list(dict.fromkeys(on for on, _ in known if on[0] == pid))
        found = [_linked(backward, known, on) for on in threads]
        if found:
            best = max(found, key=_evidence)
            links.update(best)
    return links


def _evidence(found: dict[int, Event]) -> tuple[int, int]:
    return len(found), max((one["start"] for one in found.values()), default=0)


def _linked(
    backward: list[Event], known: dict[tuple[Thread, int], list[Event]], on: Thread
) -> dict[int, Event]:
    found = {}
    for event in backward:
        number = args_of(event)["Sequence number"]
        earlier = [one for one in known.get((on, number), []) if one["start"] <= event["start"]]
        if earlier:
            ordered = sorted(earlier, key=lambda one: (one["start"], -one["end"]))
            found[id(event)] = ordered[-1]
    return found


def _share_calls(found: list[Work]) -> None:
    """The time of a call goes to what it launched in equal parts, the rest to the first."""
    by_call: defaultdict[int, list[Work]] = defaultdict(list)
    for one in found:
        if one.call:
            by_call[id(one.call)].append(one)
    for together in by_call.values():
        call = together[0].call
        assert call
        length = call["end"] - call["start"]
        for one in together:
            one.share = length // len(together)
        first = min(together, key=lambda one: one.event["start"])
        first.share += length % len(together)


def _count_idle(found: list[Work]) -> None:
    """How long the GPU had been empty."""
    busy: dict[int, int] = {}
    for one in sorted(found, key=lambda one: one.event["start"]):
        until = busy.get(one.device, one.event["start"])
        one.idle = max(one.event["start"] - until, 0)
        busy[one.device] = max(until, one.event["end"])
