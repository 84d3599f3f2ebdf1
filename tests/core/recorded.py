"""A trace as recorded, row by row in plain columns, and stack trees from plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flame.core.attribute import attribute
from flame.core.columns import I8
from flame.core.frames import Frame, FrameBuilder, Kind
from flame.core.metrics import metric_of
from flame.core.profile import Device, Meta, Process, Profile, Thread
from flame.core.raw import OPEN, Activities, Batches, Calls, Nodes, Ranges, RawTrace
from flame.core.stacks import StackBuilder
from flame.core.tree import Breadth, StackTree, in_preorder

PROCESSES = (Process(100, "trainer"), Process(200))
THREADS = (Thread(0, 100, "main"), Thread(0, 101), Thread(1, 200))
DEVICES = (Device(0, "H100"), Device(1))

Path = tuple[str, ...]


def i8(*values: int) -> I8:
    """A column of whole numbers."""
    return np.array(values, np.int64)


class Recorded:
    """Two processes (0, 1), three threads (0 and 1 of process 0, 2 of process 1) and two GPUs.

    Activities and calls with equal ``corr`` belong together; 0 is none.
    """

    def __init__(self) -> None:
        self.frames = FrameBuilder()
        self.stacks = StackBuilder()
        self._activities = Batches(Activities)
        self._calls = Batches(Calls)
        self._ranges = Batches(Ranges)
        self._nodes = Batches(Nodes)
        self._last = 0

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        corr: int = 0,
        *,
        process: int = 0,
        device: int = 0,
        stream: int = 7,
        node: int = -1,
        kind: Kind = Kind.KERNEL,
        extra: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """One GPU activity, a kernel unless ``kind`` says otherwise."""
        self._last = max(self._last, end)
        self._activities.add(
            kind=i8(kind),
            start=i8(start),
            end=i8(end),
            process=i8(process),
            device=i8(device),
            stream=i8(stream),
            correlation=i8(corr),
            frame=i8(self.frames.add(Frame(kind, name, extra=extra))),
            graph_node=i8(node),
        )

    def call(
        self,
        name: str,
        start: int,
        end: int,
        corr: int = 0,
        *,
        thread: int = 0,
        python: Iterable[str] = (),
        native: Iterable[str] = (),
        chain_only: bool = False,
    ) -> None:
        """One CUDA API call."""
        self._last = max(self._last, end)
        self._calls.add(
            start=i8(start),
            end=i8(end),
            thread=i8(thread),
            correlation=i8(corr),
            frame=i8(self.frames.add(Frame(Kind.LAUNCH, name))),
            python=i8(self._stack(Kind.PYTHON, python)),
            native=i8(self._stack(Kind.NATIVE, native)),
            chain_only=i8(chain_only),
        )

    def range(
        self, name: str, start: int, end: int | None, *, thread: int = 0, **extra: str
    ) -> None:
        """One NVTX range; ``end`` None: still open when the capture stopped."""
        self._last = max(self._last, start if end is None else end)
        frame = Frame(Kind.NVTX, name, extra=tuple(item for item in extra.items() if item[1]))
        self._ranges.add(
            start=i8(start),
            end=i8(int(OPEN) if end is None else end),
            thread=i8(thread),
            frame=i8(self.frames.add(frame)),
        )

    def node(
        self, node: int, original: int, start: int, *, process: int = 0, thread: int = 0
    ) -> None:
        """One CUDA graph node: captured (``original`` -1), or cloned from that node."""
        self._nodes.add(
            process=i8(process),
            node=i8(node),
            original=i8(original),
            start=i8(start),
            thread=i8(thread),
        )

    def profile(self) -> Profile:
        """The trace, attributed."""
        return attribute(
            RawTrace(
                self._activities.build(),
                self._calls.build(),
                self._ranges.build(),
                self._nodes.build(),
                self.frames,
                self.stacks,
                PROCESSES,
                THREADS,
                DEVICES,
                Meta(),
                self._last,
            )
        )

    def _stack(self, kind: Kind, names: Iterable[str]) -> int:
        return self.stacks.path(self.frames.add(Frame(kind, name)) for name in names)


def stack_tree(own: Mapping[Path, int], kind: Kind = Kind.NVTX) -> StackTree:
    """A tree of ``kind`` frames with these own values, one activity to each non-zero value."""
    frames = FrameBuilder()
    paths = {path[:depth] for path in own for depth in range(len(path) + 1)} | {()}
    ordered = sorted(paths, key=lambda path: (len(path), path))
    number = {path: place for place, path in enumerate(ordered)}
    parent = [number[path[:-1]] if path else -1 for path in ordered]
    frame = [frames.add(Frame(kind, path[-1])) if path else 0 for path in ordered]
    values = i8(*(own.get(path, 0) for path in ordered))
    columns = Breadth(
        np.array(parent, np.int32),
        np.array(frame, np.int32),
        np.array([len(path) for path in ordered], np.int32),
        values,
        np.sign(values),
    )
    table = frames.build()
    text = tuple(one.name for one in table.frames)
    return in_preorder(columns, table, text, metric_of("gpu"), ("nvtx",))


def leaves(tree: StackTree) -> dict[Path, Any]:
    """Own values by path, of the nodes that have one."""
    return {tree.names(node): int(tree.own[node]) for node in np.flatnonzero(tree.own).tolist()}
