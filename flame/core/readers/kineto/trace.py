"""Build a `RawTrace` of events: each goes to the collector that knows its category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from flame.core.columns import I4, I8, Column, pack, unique
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.launches import CollectiveCalls, RawCollectives
from flame.core.model.meta import Overheads, ProfilerSteps
from flame.core.model.raw import (
    RawActivities,
    RawCalls,
    RawGpuRanges,
    RawGraphNodes,
    RawPythonCalls,
    RawRanges,
    RawTrace,
    TableBuilder,
)
from flame.core.options import LoadOptions
from flame.core.readers.kineto import memory, metadata, overheads
from flame.core.readers.kineto.collectives import ToldCollectives
from flame.core.readers.kineto.context import AnyEvent, KinetoContext
from flame.core.readers.kineto.cpu import OperatorRanges, PythonCalls, RuntimeCalls
from flame.core.readers.kineto.events import NO_DETAILS, Events, PieceDetails
from flame.core.readers.kineto.forward import FLOWS, ForwardFlows
from flame.core.readers.kineto.gpu import GpuActivities, GpuAnnotations
from flame.core.readers.kineto.memory import NO_EVENTS, MemoryInstants
from flame.core.readers.kineto.overheads import ProfilerOverheads

_Table = TypeVar(
    "_Table",
    RawActivities,
    RawCalls,
    RawPythonCalls,
    RawGpuRanges,
    ProfilerSteps,
    RawRanges,
    Overheads,
    CollectiveCalls,
)


_Collector = Callable[[Sequence[AnyEvent]], None]


class _Collectors(dict[str, _Collector | None]):
    """The collector of each category of events; None: they are left out."""

    def __init__(self, parts: Mapping[str, _Collector | None], calls: _Collector) -> None:
        super().__init__(parts)
        self._calls = calls

    def __missing__(self, category: str) -> _Collector | None:
        """Return the collector of calls for `cuda_runtime`, `hip_driver`, `xpu_runtime`, …."""
        is_call = category.endswith(("_runtime", "_driver"))
        part = self[category] = self._calls if is_call else None
        return part


class TraceBuilder:
    """Collects events; ``known`` says whether any was an event that a profiler records."""

    def __init__(self, options: LoadOptions) -> None:
        self.known = False
        self._context = context = KinetoContext(options)
        self._collectives = ToldCollectives(context)
        self._work = GpuActivities(context, self._collectives)
        self._gpu_ranges = GpuAnnotations(context)
        self._calls = RuntimeCalls(context)
        self._python = PythonCalls(context)
        self._spans = OperatorRanges(context, self._collectives)
        self._overheads, self._memory = ProfilerOverheads(context), MemoryInstants(context)
        self._flows = ForwardFlows(context)
        self._parts = _Collectors(self._collectors_by_category(), self._calls.add)
        self._beside = (self._learn, self._overheads.add, self._memory.add)

    def _collectors_by_category(self) -> dict[str, _Collector | None]:
        """List the collectors by category; capitals are of 2021."""
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
            overheads.CATEGORY: self._overheads.add,
            memory.CATEGORY: self._memory.add,
            "": self._learn,
        }

    def _learn(self, events: Sequence[AnyEvent]) -> None:
        self._context.learn_names(events)
        self._memory.add_old(events)

    def add(self, events: Events, details: PieceDetails) -> None:
        """Hand ``events`` to their collectors, in their order."""
        self._context.details = details
        grouped: defaultdict[_Collector | None, list[AnyEvent]] = defaultdict(list)
        parts = self._parts
        for event in events:
            grouped[parts[event.cat]].append(event)
        for part, selected in grouped.items():
            if part is not None:
                part(selected)
                self.known |= part not in self._beside
        self._context.details = NO_DETAILS  # so that the text of the piece is let go

    def build(self, path: str, top: Mapping[str, bytes]) -> RawTrace:
        """Build the whole trace; ``top`` are the texts of the keys beside the events."""
        context = self._context
        ranges, calls = self._spans.build(), self._calls.build()
        processes, threads = metadata.read_processes(context)
        process_of = np.array([thread.process for thread in threads], np.int32)
        work, gpu_ranges, devices = _number_devices(
            self._work.build(), self._gpu_ranges.build(), self._memory.devices
        )
        if len(processes) > 1:
            work = replace(work, process=find_owners(work, calls, process_of))
        elif processes:
            work = replace(work, process=np.zeros(len(work.start), np.int32))
        forward = self._forward_rows(ranges, process_of) if context.options.forward else None
        raw = RawTrace(
            work,
            calls,
            ranges,
            TableBuilder(RawGraphNodes).build(),
            context.frames,
            context.stacks,
            processes,
            threads,
            metadata.read_devices(top, devices),
            metadata.read_meta(path, top, context.first_time),
            context.last_time,
            context.time_warnings(),
            self._python.build(),
            gpu_ranges,
            self._spans.operators(forward),
            self._spans.steps(process_of),
            self._work.launches().builder(),
            overheads=self._overheads.build(calls, process_of),
            collectives=self._collectives.build(),
            allocator=self._memory.build(devices),
            memory=self._memory.build_events(devices, process_of),
        )
        if (
            raw.meta.options.get("profile_memory", "").lower() in ("1", "true")
            and not self._memory.seen
        ):
            raw.warnings.append(NO_EVENTS)
        return shift_to_zero(raw, context.first_time)

    def _forward_rows(self, ranges: RawRanges, process_of: I4) -> I8:
        return self._spans.sequences.link_operators(
            ranges, process_of, self._flows.forward_rows(ranges)
        )


def _number_devices(
    work: RawActivities, ranges: RawGpuRanges, others: I4
) -> tuple[RawActivities, RawGpuRanges, I4]:
    """Replace numbers of GPUs by indices, in both tables; return the numbers by index.

    There may be ``others`` that only memory was given out of.
    """
    devices = unique(np.concatenate([work.device, ranges.device, others]))
    devices = devices[devices != NONE]
    return (
        replace(work, device=_device_index(devices, work)),
        replace(ranges, device=_device_index(devices, ranges)),
        devices,
    )


def _device_index(devices: I4, rows: RawActivities | RawGpuRanges) -> Column:
    place = np.searchsorted(devices, rows.device)
    return np.where(rows.device == NONE, NONE, place).astype(np.int32)


def shift_to_zero(raw: RawTrace, first: int) -> RawTrace:
    """Count the times (ns) of ``raw`` from ``first``, which ``Meta.origin`` takes in.

    Traces count from whenever the machine started, from 1970, or from some day of the quarter.
    """
    if first > raw.last_time:  # nothing in it has a time
        return raw
    origin = raw.meta.origin
    return replace(
        raw,
        activities=_shift_times(raw.activities, first),
        calls=_shift_times(raw.calls, first),
        functions=_shift_times(raw.functions, first),
        ranges=_shift_times(raw.ranges, first),
        gpu_ranges=_shift_times(raw.gpu_ranges, first),
        steps=_shift_times(raw.steps, first),
        overheads=raw.overheads and _shift_times(raw.overheads, first),
        collectives=raw.collectives and _shift_calls(raw.collectives, first),
        allocator=raw.allocator and replace(raw.allocator, time=raw.allocator.time - first),
        memory=None if raw.memory is None else replace(raw.memory, time=raw.memory.time - first),
        last_time=raw.last_time - first,
        meta=replace(raw.meta, origin=None if origin is None else origin + first),
    )


def _shift_times(table: _Table, first: int) -> _Table:
    return replace(table, start=table.start - first, end=table.end - first)


def _shift_calls(collectives: RawCollectives, first: int) -> RawCollectives:
    return collectives._replace(calls=_shift_times(collectives.calls, first))


def find_owners(activities: RawActivities, calls: RawCalls, process_of: I4) -> I4:
    """Return each activity's process: that of the last call before it with its correlation id.

    A GPU event names no process, and ids repeat from process to process. Clocks may disagree a
    little: where no call was before, the first one after counts. -1 where there is no such call.
    """
    rows = np.flatnonzero(calls.correlation > 0)
    if not len(rows):
        return activities.process
    keys = pack(
        [
            np.append(calls.correlation[rows], activities.correlation),
            np.append(calls.start[rows], activities.start),
        ]
    )
    have, want = keys[: len(rows)], keys[len(rows) :]
    order = np.argsort(have, kind="stable")
    known = np.append(calls.correlation[rows[order]], 0)
    process = np.append(process_of[calls.thread[rows[order]]], NONE)
    last = np.searchsorted(have[order], want, "right") - 1
    call = np.where(known[last] == activities.correlation, last, last + 1)
    same = (known[call] == activities.correlation) & (activities.correlation > 0)
    return np.where(same, process[call], NONE).astype(np.int32)
