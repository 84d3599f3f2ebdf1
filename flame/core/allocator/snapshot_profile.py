"""Make the `Profile` of a memory snapshot: its allocations, and no work of a GPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flame.core.allocator.pairing import PairingLosses, pair_events
from flame.core.allocator.tables import (
    DeviceAllocations,
    Window,
    measured_rows,
    split_devices,
    take_rows,
)
from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, off_gpu_columns, repeat
from flame.core.model.allocator.allocations import BEFORE, Allocations
from flame.core.model.allocator.history import NO_TIME, AllocatorHistory
from flame.core.model.frames import Frame, Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import Device, GraphNodes, Meta, Source
from flame.core.model.metrics import MEMORY_METRICS
from flame.core.model.profile import Profile, TableCut
from flame.core.model.stacks import EMPTY

BEFORE_FRAME = Frame(Kind.PYTHON, "[allocated before recording]")
UNKNOWN_FRAME = Frame(Kind.PYTHON, "[no stack recorded]")


@dataclass(frozen=True, eq=False)
class _Memory:
    """The allocations of a snapshot by place of the device in the profile."""

    devices: tuple[DeviceAllocations, ...]

    @property
    def fullest(self) -> int:
        peaks = [device.peak(device.whole).size for device in self.devices]
        return int(np.argmax(peaks))

    def table(self, profile: Profile, metric: str, cut: TableCut) -> Activities:
        """Make the table of ``metric``."""
        shown = (self.fullest,) if cut.devices is None else cut.devices
        found = [
            measured_rows(self.devices[at], metric, _window(self.devices[at], cut)) for at in shown
        ]
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(rows for rows, _ in found)])
        values = np.concatenate([none, *(values for _, values in found)])
        order = np.argsort(rows, kind="stable")
        return take_rows(profile.activities, rows[order], metric, values[order])


def _window(device: DeviceAllocations, cut: TableCut) -> Window:
    begin = max((one.begin for one in cut.where if one.begin is not None), default=None)
    end = min((one.end for one in cut.where if one.end is not None), default=None)
    return device.between(begin, end)


def build_snapshot_profile(history: AllocatorHistory, meta: Meta) -> Profile:
    """Make the profile of ``history``, whose metrics are those of memory."""
    table, losses = pair_events(history)
    sources = (Source("", meta),)
    parts = dict(split_devices(table))
    devices = tuple(Device(number) for number in parts)
    streams, stream = np.unique(table.stream, return_inverse=True)
    grouping = add_grouping(
        history.frames, (), (), devices, np.arange(len(streams), dtype=np.int32), sources
    )
    python = _with_unknown(history, table)
    activities = _activities(history, table, python, stream.astype(np.int32), list(parts))
    begin, end = _extent(table)
    return Profile(
        frames=history.frames.build(),
        activities=activities,
        processes=(),
        threads=(),
        devices=devices,
        grouping=grouping,
        meta=meta,
        begin=begin,
        end=end,
        graph_nodes=GraphNodes(),
        warnings=tuple(_warnings(history, losses)),
        host_builder=partial(_same, activities),
        sources=sources,
        own_metrics=MEMORY_METRICS,
        timed=end > begin,
        memory_builder=_Memory(tuple(parts.values())).table,
    )


def _same(table: Activities) -> Activities:
    return table


def _with_unknown(history: AllocatorHistory, table: Allocations) -> I4:
    """The Python stack of each allocation; a frame says why one has none."""
    before, unknown = (
        history.stacks.add_path([history.frames.add(frame)])
        for frame in (BEFORE_FRAME, UNKNOWN_FRAME)
    )
    missing = np.where(table.begin == BEFORE, before, unknown).astype(np.int32)
    return np.where((table.python == EMPTY) & (table.native == EMPTY), missing, table.python)


def _activities(
    history: AllocatorHistory,
    table: Allocations,
    python: I4,
    stream: I4,
    numbers: list[int],
) -> Activities:
    size = len(table)
    begin, end = _extent(table)
    start = np.where(table.begin_time == NO_TIME, begin, table.begin_time)
    stop = np.where(table.end_time == NO_TIME, end, table.end_time)
    columns: dict[str, Any] = off_gpu_columns(size) | {
        "kind": repeat(np.uint8(Kind.FRAME), size),
        "start": start,
        "duration": np.maximum(stop - start, 0),
        "device": np.searchsorted(numbers, table.device).astype(np.int32),
        "stream": stream,
        "python": python,
        "native": table.native,
    }
    return Activities(
        **columns, stacks=history.stacks.build(), measures=_measures(table.size), is_cut=True
    )


def _measures(size: I8) -> dict[str, I8]:
    return {metric.key: size for metric in MEMORY_METRICS}


def _extent(table: Allocations) -> tuple[int, int]:
    """First and last time, ns; (0, 0) where there is none."""
    times = np.concatenate([table.begin_time, table.end_time])
    times = times[times != NO_TIME]
    return (int(times.min()), int(times.max())) if len(times) else (0, 0)


def _warnings(history: AllocatorHistory, losses: PairingLosses) -> list[str]:
    return []
