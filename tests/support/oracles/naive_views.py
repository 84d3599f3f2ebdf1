"""What the views show, once more, slowly and plainly: loops over activities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.support.oracles.naive import Range, Row
from tests.support.oracles.naive_tree import WEIGHTS, Label, Shape, Stack, passes, plain, stack

Interval = tuple[int, int]


class Seen(NamedTuple):
    """One activity that passes all filters: what is shown of its stack, and what it weighs."""

    path: Stack
    value: int
    row: Row


class Named(NamedTuple):
    """One name of one kind: sums with recursion counted once, and the value of each activity."""

    total: int
    own: int
    places: int
    values: list[int]


def seen(
    rows: Iterable[Row],
    levels: Iterable[str],
    metric: str,
    shape: Shape,
    chosen: dict[str, Any],
) -> list[Seen]:
    """The activities that are shown."""
    levels, known = tuple(levels), dict[Stack, Stack | None]()
    found = []
    for row in rows:
        whole = stack(row, levels)
        if whole not in known:
            known[whole] = shape.apply(whole)
        path = known[whole]
        if path is not None and passes(row, chosen):
            found.append(Seen(path, WEIGHTS[metric](row), row))
    return found


def by_name(activities: Iterable[Seen]) -> dict[Label, Named]:
    """The rows of a table of names."""
    own, values = Counter[Label](), defaultdict[Label, list[int]](list)
    places = defaultdict[Label, set[Stack]](set)
    for path, value, _ in activities:
        for label in set(path):
            values[label].append(value)
        for depth, label in enumerate(path, 1):
            places[label].add(path[:depth])
        if path:
            own[path[-1]] += value
    return {
        label: Named(sum(of), own[label], len(places[label]), sorted(of))
        for label, of in values.items()
    }


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that at least `percent` % of the values do not exceed."""
    return next(
        value
        for place, value in enumerate(ordered, 1)
        if place * 100 >= percent * len(ordered) or place == len(ordered)
    )


def around(
    activities: Iterable[Seen], label: Label, innermost: bool = False
) -> tuple[dict[Stack, int], dict[Stack, int]]:
    """What is above `label` (inner to outer) and below it (outer to inner), at every depth.

    Where it recurs the outermost place counts, or the innermost.
    """
    callers, callees = Counter[Stack](), Counter[Stack]()
    for path, value, _ in activities:
        if label in path:
            at = path.index(label)
            if innermost:
                at = len(path) - 1 - path[::-1].index(label)
            for into, way in ((callers, path[:at][::-1]), (callees, path[at + 1 :])):
                for depth in range(len(way) + 1):
                    into[way[:depth]] += value
    return callers, callees


def matched(activities: Sequence[Seen], pattern: re.Pattern[str]) -> list[Seen]:
    """Those with a match anywhere in a name of their stack."""
    known = dict[Stack, bool]()
    for path, *_ in activities:
        if path not in known:
            known[path] = any(pattern.search(plain(text)) for _, text in path)
    return [one for one in activities if known[one.path]]


def union(intervals: Iterable[Interval], low: int, high: int) -> int:
    """How much of [low, high) at least one of `intervals` covers."""
    covered, reach = 0, low
    for start, end in sorted(intervals):
        start, end = max(start, reach), min(end, high)
        if end > start:
            covered += end - start
            reach = end
    return covered


def deepest(ranges: Iterable[Range]) -> int:
    """The most ranges with any length that are open at once."""
    edges = [edge for one in ranges if one.end > one.start for edge in _edges(one)]
    now = most = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


def _edges(one: Range) -> tuple[Interval, Interval]:
    return (one.start, 1), (one.end, -1)
