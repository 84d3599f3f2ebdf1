"""Python stacks once more, slowly and plainly: every call looked at for every moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PathOf = tuple[str, ...]


class Called(NamedTuple):
    """One call of a Python function. ``call`` is its number, ``caller`` its caller's; 0 unknown."""

    thread: int
    start: int
    end: int
    name: str
    call: int = 0
    caller: int = 0


def stack_at(calls: Sequence[Called], thread: int, time: int) -> PathOf:
    """Names of the functions on ``thread`` at ``time``, outermost first."""
    opened = [one for one in outer_first(calls, thread) if one.start <= time <= one.end]
    return path(calls, opened[-1]) if opened else ()


def path(calls: Sequence[Called], one: Called) -> PathOf:
    """Names of the callers of ``one``, and its own."""
    above = recorded(calls, one) or enclosing(calls, one)
    return (*(path(calls, above) if above else ()), one.name)


def recorded(calls: Sequence[Called], one: Called) -> Called | None:
    """The caller that ``one`` names, where that is a single one and was running."""
    named = [other for other in calls if other.call > 0 and other.call == one.caller]
    if len(named) != 1 or named[0].thread != one.thread:
        return None
    order = outer_first(calls, one.thread)
    earlier = named[0] in order[: order.index(one)]
    return named[0] if earlier and named[0].end >= one.start else None


def enclosing(calls: Sequence[Called], one: Called) -> Called | None:
    """The innermost of the calls before ``one`` that go on when it starts."""
    order = outer_first(calls, one.thread)
    around = [other for other in order[: order.index(one)] if other.end > one.start]
    return around[-1] if around else None


def outer_first(calls: Sequence[Called], thread: int) -> list[Called]:
    """The calls of ``thread``; of those with equal times by number, then as given."""
    own = [one for one in calls if one.thread == thread and one.end >= one.start]
    return sorted(own, key=lambda one: (one.start, -one.end, one.call))
