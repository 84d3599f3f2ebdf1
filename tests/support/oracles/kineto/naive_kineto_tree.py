"""Trees of PyTorch profiler traces, slowly and plainly: one stack of texts per activity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from flame.core.model.frames import Frame
from flame.core.model.stack_joins import FORWARD, PLACED
from flame.core.model.tree import StackTree
from tests.support.oracles.kineto import naive_kineto as naive
from tests.support.oracles.kineto.naive_kineto import Range, Work
from tests.support.oracles.kineto.naive_kineto_events import kind_of, shown, thread
from tests.support.oracles.kineto.naive_kineto_host import Step, in_steps
from tests.support.writers.kineto_scripts import KERNELS

Label = tuple[str, str]
"""Kind and text of a frame."""
Stack = tuple[Label, ...]
METRICS: dict[str, Callable[[Work], int]] = {
    "gpu": lambda one: one.ns,
    "count": lambda one: 1,
    "launch": lambda one: one.share,
    "queue": lambda one: one.queue,
    "idle": lambda one: one.idle,
}


def label_of(tree: StackTree, node: int) -> Label:
    """Kind and text of a node."""
    frame = tree.frames[int(tree.frame[node])]
    place = f"{frame.file}({frame.line}): " if frame.file else ""
    mark = " [placed]" if mark_of(frame) == naive.PLACED else ""
    return frame.kind.title, place + tree.name(node) + mark


def found_stacks(tree: StackTree) -> dict[Stack, tuple[int, int]]:
    """(own value, own activities) per stack; every stack is a node of its own."""
    nodes = np.flatnonzero(tree.own_count).tolist()
    found = {
        tuple(label_of(tree, step) for step in tree.path(node)[1:]): (
            int(tree.own[node]),
            int(tree.own_count[node]),
        )
        for node in nodes
    }
    assert len(found) == len(nodes)
    return found


def stack_of(one: Work, levels: Iterable[str], kernel_names: str) -> Stack:
    """What is shown of one activity."""
    return tuple(label for level in levels for label in _step(one, level, kernel_names))


def grouped(
    found: Iterable[Work], levels: Iterable[str], metric: str, kernel_names: str
) -> dict[Stack, tuple[int, int]]:
    """(value, activities) per stack."""
    levels = tuple(levels)
    value, count = Counter[Stack](), Counter[Stack]()
    for one in found:
        stack = stack_of(one, levels, kernel_names)
        value[stack] += METRICS[metric](one)
        count[stack] += 1
    return {stack: (value[stack], count[stack]) for stack in count}


def _step(one: Work, level: str, kernel_names: str) -> list[Label]:
    call = one.call and thread(one.call)
    shapes = [each.shapes for each in one.ranges if each.shapes]
    name = shown(one.event)
    if level == "kernel" and name in KERNELS:
        name = KERNELS[name][("base", "demangled", "mangled").index(kernel_names)]
    of: dict[str, list[str]] = {
        "process": [f"process [{one.pid}]"] if one.pid else [],
        "thread": [f"thread [{call[1]}]"] if call else [],
        "device": [f"GPU {one.device}"],
        "stream": [f"stream {one.stream}"],
        "python": list(one.python),
        "launch": [one.launch],
        "nvtx": [f"{r.name}{' [placed]' * (r.mark == naive.PLACED)}" for r in one.ranges],
        "shapes": shapes[-1:],
        "kernel": [name],
    }
    kind = kind_of(one.event) if level == "kernel" else level
    return [(kind, text) for text in of[level]]


def passes(one: Work, chosen: dict[str, Any], steps: list[Step]) -> bool:
    """Whether it is in all that is ``chosen``, as `flame.where` takes it."""
    tests: dict[str, Callable[[Any], bool]] = {
        "time": lambda window: window[0] <= one.event["start"] < window[1],
        "step": lambda numbers: in_steps(one, steps, *numbers),
        "nvtx": lambda glob: any(fnmatchcase(each.name, glob) for each in one.ranges),
        "device": lambda numbers: one.device in numbers,
        "stream": lambda numbers: one.stream in numbers,
        "pid": lambda pids: one.pid is not None and int(one.pid) in pids,
        "tid": lambda tids: one.call is not None and int(one.call["tid"]) in tids,
        "kernel": lambda regex: _is_kernel(one, regex),
        "include": lambda kinds: kind_of(one.event) in kinds.split(","),
    }
    return all(tests[name](value) for name, value in chosen.items())


def _is_kernel(one: Work, regex: str) -> bool:
    names = KERNELS.get(one.event["name"], ())[:2]
    return kind_of(one.event) == "kernel" and any(re.search(regex, name) for name in names)


def spelled(chosen: dict[str, Any]) -> dict[str, Any]:
    """Windows as texts."""
    texts = {"time": "{}ns/{}ns", "step": "{}-{}"}
    return {
        name: texts[name].format(*value) if name in texts else value
        for name, value in chosen.items()
    }


def python_text(frame: Frame) -> str:
    """A Python function as it is recorded."""
    return f"{frame.file}({frame.line}): {frame.name}" if frame.file else frame.name


def range_text(frame: Frame) -> Range:
    """As a naive reading has it."""
    return Range(frame.name, frame.get("shapes"), mark_of(frame))


def mark_of(frame: Frame) -> str:
    """Why it stands where it was not open."""
    return next((mark[0] for mark in (FORWARD, PLACED) if mark in frame.extra), "")
