"""Functions and ranges nested together, slowly and plainly, of PyTorch profiler traces."""

from __future__ import annotations

from tests.support.oracles.kineto.naive_kineto import (
    Opened,
    Range,
    Work,
    call_stack,
    forward_links,
    function_name,
    range_of,
)
from tests.support.oracles.kineto.naive_kineto_events import (
    RANGES,
    Event,
    args_of,
    category,
    thread,
)

Step = str | Range
"""A Python function as text, or a range."""

PathOf = tuple[Step, ...]


def nested_paths(found: list[Work], events: list[Event], forward: bool = False) -> list[PathOf]:
    """What stood around each of ``found`` when it was launched, outermost first."""
    functions = [event for event in events if category(event) == "python_function"]
    ranges = [event for event in events if category(event) in RANGES]
    both, alone = Opened([*functions, *ranges]), Opened(functions)
    links = forward_links(events) if forward else {}
    linked = Opened(event for event in events if id(event) in links)
    places = [(thread(one.call), one.call["start"]) for one in found if one.call]
    around, within = both.at(places), linked.at(places)
    stacks = {id(event): _recorded(event, alone) for event in ranges}
    paths: list[PathOf] = []
    for one in found:
        if one.call is None:
            paths.append((*one.python, *one.ranges))
            continue
        place = thread(one.call), one.call["start"]
        path = _path(around[place], stacks)
        if within[place]:
            source = links[id(within[place][-1])]
            outer = _path(both.around(source), stacks)
            path = _below(outer, path, thread(source) == place[0])
        paths.append(path)
    return paths


def _recorded(event: Event, functions: Opened) -> tuple[str, ...]:
    """The Python stack written down with a range in no Python function."""
    if not args_of(event).get("Call stack"):
        return ()
    place = thread(event), event["start"]
    return () if functions.at([place])[place] else call_stack([event])


def _path(spans: list[Event], stacks: dict[int, tuple[str, ...]]) -> PathOf:
    path: list[Step] = []
    before: tuple[str, ...] = ()
    for span in spans:
        if category(span) not in RANGES:
            path.append(function_name(span))
            continue
        if recorded := stacks[id(span)]:
            path += recorded[_shared(before, recorded) :]
            before = recorded
        path.append(range_of(span, raw=False))
    return tuple(path)


def _below(outer: PathOf, inner: PathOf, same: bool) -> PathOf:
    return (*outer, *inner[_shared(outer, inner) if same else 0 :])


def _shared(one: PathOf, other: PathOf) -> int:
    """How many steps both begin with."""
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared
