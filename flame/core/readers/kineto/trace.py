"""The parts of one trace: events go to the part that knows their category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.raw import Activities, Batches, GpuRanges, Nodes, Ranges, RawTrace
from flame.core.options import LoadOptions
from flame.core.readers.kineto import machine
from flame.core.readers.kineto.clock import from_zero
from flame.core.readers.kineto.context import AnyEvent, Context
from flame.core.readers.kineto.cpu import PythonCalls, RuntimeCalls, Spans
from flame.core.readers.kineto.events import Events
from flame.core.readers.kineto.forward import FLOWS, Flows
from flame.core.readers.kineto.gpu import GpuAnnotations, Work
from flame.core.readers.kineto.owners import owners

_Part = Callable[[Sequence[AnyEvent]], None]


class _Parts(dict[str, _Part | None]):
    """What takes in the events of a category; None: nothing."""

    def __init__(self, parts: Mapping[str, _Part | None], calls: _Part) -> None:
        super().__init__(parts)
        self._calls = calls

    def __missing__(self, category: str) -> _Part | None:
        """`cuda_runtime`, `hip_driver`, `xpu_runtime`, … are calls."""
        is_call = category.endswith(("_runtime", "_driver"))
        part = self[category] = self._calls if is_call else None
        return part


class Trace:
    """Collects events; ``known`` says whether any was one that a profiler records."""

    def __init__(self, options: LoadOptions) -> None:
        self.known = False
        self._context = context = Context(options)
        self._work = Work(context)
        self._gpu_ranges = GpuAnnotations(context)
        self._calls = RuntimeCalls(context)
        self._python = PythonCalls(context)
        self._spans = Spans(context)
        self._flows = Flows(context)
        self._parts = _Parts(self._by_category(), self._calls.add)

    def _by_category(self) -> dict[str, _Part | None]:
        """Capitals are of 2021."""
        kernels, copies, sets = (
            partial(self._work.add, kind) for kind in (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
        )
        flows = self._flows.add if self._context.options.forward else None
        return {
            **dict.fromkeys(("kernel", "Kernel"), kernels),
            **dict.fromkeys(("gpu_memcpy", "Memcpy"), copies),
            **dict.fromkeys(("gpu_memset", "Memset"), sets),
            **dict.fromkeys(("cpu_op", "Operator", "user_annotation"), self._spans.add),
            **dict.fromkeys(FLOWS, flows),
            "Runtime": self._calls.add,
            "python_function": self._python.add,
            "gpu_user_annotation": self._gpu_ranges.add,
            "": self._context.name,
        }

    def add(self, events: Events) -> None:
        """Hand ``events`` to the parts, in their order."""
        grouped: defaultdict[_Part | None, list[AnyEvent]] = defaultdict(list)
        parts = self._parts
        for event in events:
            grouped[parts[event.cat]].append(event)
        for part, mine in grouped.items():
            if part is not None:
                part(mine)
                self.known |= part != self._context.name

    def build(self, path: str, top: Mapping[str, bytes]) -> RawTrace:
        """The whole trace; ``top`` are the texts of the keys beside the events."""
        context = self._context
        ranges, calls = self._spans.build(), self._calls.build()
        processes, threads = machine.read_processes(context)
        process_of = np.array([thread.process for thread in threads], np.int32)
        work, gpu_ranges, devices = _on_devices(self._work.build(), self._gpu_ranges.build())
        if len(processes) > 1:
            work = replace(work, process=owners(work, calls, process_of))
        elif processes:
            work = replace(work, process=np.zeros(len(work.start), np.int32))
        forward = self._forward(ranges, process_of) if context.options.forward else None
        raw = RawTrace(
            work,
            calls,
            ranges,
            Batches(Nodes).build(),
            context.frames,
            context.stacks,
            processes,
            threads,
            machine.read_devices(top, devices),
            machine.read_meta(path, top, context.first_time),
            context.last_time,
            context.warnings(),
            self._python.build(),
            gpu_ranges,
            self._spans.operators(forward),
            self._spans.steps(process_of),
            self._work.launches(),
        )
        return from_zero(raw, context.first_time)

    def _forward(self, ranges: Ranges, process_of: I4) -> I8:
        return self._spans.sequences.links(ranges, process_of, self._flows.arrows(ranges))


def _on_devices(work: Activities, ranges: GpuRanges) -> tuple[Activities, GpuRanges, I4]:
    """Both with indices of GPUs instead of their numbers, and the numbers."""
    devices = np.unique(np.concatenate([work.device, ranges.device]))
    devices = devices[devices != NONE]
    return (
        replace(work, device=_index(devices, work)),
        replace(ranges, device=_index(devices, ranges)),
        devices,
    )


def _index(devices: I4, rows: Activities | GpuRanges) -> Column:
    place = np.searchsorted(devices, rows.device)
    return np.where(rows.device == NONE, NONE, place).astype(np.int32)
