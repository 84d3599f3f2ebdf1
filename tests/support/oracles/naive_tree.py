"""Projection and filters once more, slowly and plainly: one stack of texts per activity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from flame.core.model.tree import StackTree
from tests.support.oracles.facts import CAPTURED
from tests.support.oracles.naive import Row, tid_of

Label = tuple[str, str]
"""Kind and text of a frame."""

Stack = tuple[Label, ...]

WEIGHTS: dict[str, Callable[[Row], int]] = {
    "gpu": lambda row: row.duration,
    "count": lambda row: 1,
    "launch": lambda row: row.launch_share,
    "queue": lambda row: row.queue,
    "idle": lambda row: row.idle,
}

_STEPS: dict[str, Callable[[Row], list[str]]] = {
    "process": lambda row: [] if row.pid is None else [f"process [{row.pid}]"],
    "thread": lambda row: [f"thread [{tid_of(row.call.tid)}]"] if row.call else [],
    "device": lambda row: [f"GPU {row.gpu}"],
    "stream": lambda row: [f"stream {row.stream}"],
    "python": lambda row: list(row.python),
    "native": lambda row: list(row.native),
    "launch": lambda row: [row.launch],
    "nvtx": lambda row: [
        *(one.text for one in row.nvtx),
        *(one.text + CAPTURED for one in row.captured),
    ],
}


def stack(row: Row, levels: Iterable[str]) -> Stack:
    """The frames of one activity from the root down (of a trace that names nobody)."""
    found: list[Label] = []
    for level in levels:
        if level == "kernel":
            found.append((row.kind, row.name))
        else:
            found += [(level, text) for text in _STEPS[level](row)]
    return tuple(found)


def totals(rows: Iterable[Row], levels: Iterable[str], metric: str) -> dict[Stack, tuple[int, int]]:
    """(value, activities) per stack."""
    levels = tuple(levels)
    value, count = Counter[Stack](), Counter[Stack]()
    for row in rows:
        where = stack(row, levels)
        value[where] += WEIGHTS[metric](row)
        count[where] += 1
    return {where: (value[where], count[where]) for where in count}


def tree_stacks(tree: StackTree) -> dict[Stack, tuple[int, int]]:
    """(own value, own activities) per stack of a tree, where any activity ends."""
    return {
        tree_stack(tree, node): (int(tree.own[node]), int(tree.own_count[node]))
        for node in range(len(tree))
        if tree.own_count[node]
    }


def tree_stack(tree: StackTree, node: int) -> Stack:
    return tuple(tree_label(tree, step) for step in tree.path(node)[1:])


def tree_label(tree: StackTree, node: int) -> Label:
    frame = tree.frames[int(tree.frame[node])]
    return frame.kind.title, tree.name(node) + (CAPTURED if frame.get("captured") else "")


def passes(row: Row, filters: dict[str, Any]) -> bool:
    """Whether the activity is in all of `filters`, given as to `filters.where`."""
    return all(_TESTS[name](row, value) for name, value in filters.items())


def _in_window(row: Row, window: str) -> bool:
    begin, end = (int(part.removesuffix("ns")) if part else None for part in window.split("/"))
    return (begin is None or begin <= row.start) and (end is None or row.start < end)


def _in_range(row: Row, pattern: str) -> bool:
    """Globs of `*` and `?`; brackets are part of many names."""
    name, at, domain = pattern.replace("[", "[[]").partition("@")
    return any(
        fnmatchcase(one.text, name) and (not at or fnmatchcase(one.domain, domain))
        for one in row.nvtx + row.captured
    )


def _is_kernel(row: Row, pattern: str) -> bool:
    names = row.name, row.demangled or ""
    return row.kind == "kernel" and any(re.search(pattern, name) for name in names)


_TESTS: dict[str, Callable[[Row, Any], bool]] = {
    "time": _in_window,
    "nvtx": _in_range,
    "device": lambda row, ids: row.gpu in ids,
    "stream": lambda row, ids: row.stream in ids,
    "pid": lambda row, ids: row.pid in ids,
    "tid": lambda row, ids: row.call is not None and tid_of(row.call.tid) in ids,
    "kernel": _is_kernel,
    "include": lambda row, kinds: row.kind in kinds.split(","),
}


@dataclass(frozen=True)
class Shape:
    """Which stacks to show and how, as the options say it; expressions are searched in texts."""

    show_stacks: tuple[str, ...] = ()
    hide_stacks: tuple[str, ...] = ()
    show_from: tuple[str, ...] = ()
    hide_frames: tuple[str, ...] = ()
    inverted: bool = False
    collapsed: bool = False

    @property
    def filters(self) -> dict[str, Any]:
        """The filters of it as `flame.core.projection.filter_options.where` takes them."""
        names = ("show_stacks", "hide_stacks", "show_from", "hide_frames")
        return {name: getattr(self, name) for name in names}

    def apply(self, path: Stack) -> Stack | None:
        """What is shown of the stack `path`; None where it is not shown."""
        if not all(first(path, one) is not None for one in self.show_stacks + self.show_from):
            return None
        if any(first(path, one) is not None for one in self.hide_stacks):
            return None
        path = path[max((first(path, one) or 0 for one in self.show_from), default=0) :]
        path = tuple(one for one in path if all(first((one,), _) is None for _ in self.hide_frames))
        if self.collapsed:
            path = tuple(label for label, _ in groupby(path))
        return path[::-1] if self.inverted else path


def first(path: Stack, pattern: str) -> int | None:
    """Place of the outermost frame whose text matches."""
    found = (at for at, (_, text) in enumerate(path) if re.search(pattern, plain(text)))
    return next(found, None)


def plain(text: str) -> str:
    """The text without the mark that only tests put behind captured ranges."""
    return text.removesuffix(CAPTURED)


def weighed(rows: Iterable[Row], levels: Iterable[str], metric: str) -> list[tuple[Stack, int]]:
    """Stack and value of every activity."""
    levels = tuple(levels)
    return [(stack(row, levels), WEIGHTS[metric](row)) for row in rows]


def shaped(stacks: Iterable[tuple[Stack, int]], shape: Shape) -> dict[Stack, tuple[int, int]]:
    """(value, activities) per stack that `shape` leaves of the activities' `stacks`."""
    value, count = Counter[Stack](), Counter[Stack]()
    for whole, weight in stacks:
        path = shape.apply(whole)
        if path is not None:
            value[path] += weight
            count[path] += 1
    return {path: (value[path], count[path]) for path in count}


SMALLER = ("rest", "[smaller frames]")


def without_smaller(
    stacks: dict[Stack, tuple[int, int]], percent: float
) -> dict[Stack, tuple[int, int]]:
    """`stacks` with siblings below `percent` of everything merged where there are two or more."""
    total = Counter[Stack]()
    for path, (value, _) in stacks.items():
        for depth in range(len(path) + 1):
            total[path[:depth]] += value
    small = {path for path in total if path and total[path] < percent * total[()] / 100}
    siblings = Counter(path[:-1] for path in small)
    found: dict[Stack, tuple[int, int]] = {}
    for path, (value, count) in stacks.items():
        steps = (path[:depth] for depth in range(1, len(path) + 1))
        cut = next((one for one in steps if one in small and siblings[one[:-1]] > 1), None)
        place = path if cut is None else (*cut[:-1], SMALLER)
        known = found.get(place, (0, 0))
        found[place] = known[0] + value, known[1] + count
    return found
