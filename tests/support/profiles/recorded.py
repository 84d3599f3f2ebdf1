"""A trace as recorded, row by row in plain columns, and stack trees from plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from flame.core.columns import I8
from flame.core.loading.file import build_profile
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Device, Meta, Process, Thread
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.raw import (
    OPEN,
    RawActivities,
    RawCalls,
    RawGpuRanges,
    RawGraphNodes,
    RawOperators,
    RawPythonCalls,
    RawRanges,
    RawTrace,
    TableBuilder,
)
from flame.core.model.stacks import StackBuilder
from flame.core.model.tree import StackTree
from flame.core.projection.tree_builder import BreadthFirst, lay_out_preorder

PROCESSES = (Process(100, "trainer"), Process(200))
THREADS = (Thread(0, 100, "main"), Thread(0, 101), Thread(1, 200))
DEVICES = (Device(0, "H100"), Device(1))

Path = tuple[str, ...]
_Table = TypeVar("_Table")


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
        self._rows: list[tuple[type, dict[str, int]]] = []
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
        self._row(
            RawActivities,
            kind=kind,
            start=start,
            end=end,
            process=process,
            device=device,
            stream=stream,
            correlation=corr,
            frame=self.frames.add(Frame(kind, name, extra=extra)),
            graph_node=node,
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
        self._row(
            RawCalls,
            start=start,
            end=end,
            thread=thread,
            correlation=corr,
            frame=self.frames.add(Frame(Kind.LAUNCH, name)),
            python=self._stack(Kind.PYTHON, python),
            native=self._stack(Kind.NATIVE, native),
            chain_only=chain_only,
        )

    def range(
        self,
        name: str,
        start: int,
        end: int | None,
        *,
        thread: int = 0,
        python: Iterable[str] = (),
        forward: int = -1,
        **extra: str,
    ) -> int:
        """One range; ``end`` None: still open when the capture stopped. Returns its row.

        ``python`` is the stack recorded with it, ``forward`` the row of its forward operator.
        """
        self._last = max(self._last, start if end is None else end)
        self._row(RawOperators, python=self._stack(Kind.PYTHON, python), forward=forward)
        frame = Frame(Kind.NVTX, name, extra=tuple(item for item in extra.items() if item[1]))
        self._row(
            RawRanges,
            start=start,
            end=int(OPEN) if end is None else end,
            thread=thread,
            frame=self.frames.add(frame),
        )
        return sum(of is RawRanges for of, _ in self._rows) - 1

    def function(
        self, name: str, start: int, end: int, call: int = 0, caller: int = 0, *, thread: int = 0
    ) -> None:
        """One call of a Python function; ``call`` and ``caller`` 0: numbers not recorded."""
        self._last = max(self._last, end)
        self._row(
            RawPythonCalls,
            start=start,
            end=end,
            thread=thread,
            frame=self.frames.add(Frame(Kind.PYTHON, name)),
            call=call,
            caller=caller,
        )

    def gpu_range(
        self, name: str, start: int, end: int, *, device: int = 0, stream: int = 7
    ) -> None:
        """One range on a GPU's own time line."""
        self._row(
            RawGpuRanges,
            start=start,
            end=end,
            device=device,
            stream=stream,
            frame=self.frames.add(Frame(Kind.NVTX, name)),
        )

    def node(
        self, node: int, original: int, start: int, *, process: int = 0, thread: int = 0
    ) -> None:
        """One CUDA graph node: captured (``original`` -1), or cloned from that node."""
        self._row(
            RawGraphNodes,
            process=process,
            node=node,
            original=original,
            start=start,
            thread=thread,
        )

    def profile(self, meta: Meta | None = None) -> Profile:
        """The trace, attributed."""
        return build_profile(
            RawTrace(
                self._table(RawActivities),
                self._table(RawCalls),
                self._table(RawRanges),
                self._table(RawGraphNodes),
                self.frames,
                self.stacks,
                PROCESSES,
                THREADS,
                DEVICES,
                meta or Meta(),
                self._last,
                functions=self._table(RawPythonCalls),
                gpu_ranges=self._table(RawGpuRanges),
                operators=self._table(RawOperators),
            )
        )

    def _row(self, table: type, **values: int) -> None:
        self._rows.append((table, values))

    def _table(self, table: type[_Table]) -> _Table:
        batches = TableBuilder(table)
        for of, values in self._rows:
            if of is table:
                batches.add(**{name: i8(value) for name, value in values.items()})
        return batches.build()

    def _stack(self, kind: Kind, names: Iterable[str]) -> int:
        return self.stacks.add_path(self.frames.add(Frame(kind, name)) for name in names)


def stack_tree(own: Mapping[Path, int], kind: Kind = Kind.NVTX) -> StackTree:
    """A tree of ``kind`` frames with these own values, one activity to each non-zero value."""
    frames = FrameBuilder()
    paths = {path[:depth] for path in own for depth in range(len(path) + 1)} | {()}
    ordered = sorted(paths, key=lambda path: (len(path), path))
    number = {path: place for place, path in enumerate(ordered)}
    parent = [number[path[:-1]] if path else -1 for path in ordered]
    frame = [frames.add(Frame(kind, path[-1])) if path else 0 for path in ordered]
    values = i8(*(own.get(path, 0) for path in ordered))
    columns = BreadthFirst(
        np.array(parent, np.int32),
        np.array(frame, np.int32),
        np.array([len(path) for path in ordered], np.int32),
        values,
        np.sign(values),
    )
    table = frames.build()
    text = tuple(one.name for one in table.frames)
    return lay_out_preorder(columns, table, text, metric_of("gpu"), ("nvtx",))


def leaves(tree: StackTree) -> dict[Path, Any]:
    """Own values by path, of the nodes that have one."""
    return {tree.names(node): int(tree.own[node]) for node in np.flatnonzero(tree.own).tolist()}
