"""Measure how much memory of GPUs was allocated, over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.side_tables.device_memory import NEVER, DeviceMemory, MemoryPlace
from flame.core.report.scope import Scope
from flame.core.timeline.busy_time import TimeWindow

CHUNKS = 60
"""Equal parts of the time, of which is told how much was allocated at most."""


@dataclass(frozen=True)
class MemoryUse:
    """Say how much memory of a ``kind`` was allocated on a GPU, by all processes, in bytes.

    ``gpu`` is None of one on which nothing ran; ``place`` is one of its places. ``peak`` is the
    most in ``window`` (ns), first reached at ``peak_at`` and held until ``peak_until``, ``last``
    what was left at its end. ``allocations`` and ``freed`` count what began and ended in it,
    ``total`` sums up the sizes of the former. ``strays`` counts what was freed that had been there
    before. ``most`` is the peak in each of `CHUNKS` parts.
    """

    gpu: Utilization | None
    place: MemoryPlace
    window: TimeWindow
    peak: int
    peak_at: int
    peak_until: int
    last: int
    allocations: int
    freed: int
    total: int
    strays: int
    most: tuple[int, ...]


def memory_use(scope: Scope) -> list[MemoryUse]:
    """Measure the memory that was allocated, by GPU and kind; none where it was not recorded.

    Filters that choose GPUs or time choose of it, too.
    """
    memory = scope.profile.device_memory
    return [] if memory is None else list(_uses(scope, memory))


def _uses(scope: Scope, memory: DeviceMemory) -> Iterator[MemoryUse]:
    gpus = {gpu.device: gpu for gpu in scope.gpus}
    owners = [_owner(one) for one in memory.places]
    for owner in sorted(set(owners)):
        places = [at for at, one in enumerate(owners) if one == owner]
        first = memory.places[places[0]]
        gpu = gpus.get(first.device)
        if gpu is None and scope.selection.where:
            continue
        rows = np.flatnonzero(np.isin(memory.place, places))
        strays = int(memory.strays[places].sum())
        if len(rows) or strays:
            times = memory.start[rows], memory.end[rows], memory.size[rows]
            window = _window(scope, gpu, *times[:2])
            yield _use(gpu, first, strays, window, *times)


def _owner(place: MemoryPlace) -> tuple[int, int, int, str]:
    """What tells GPUs and kinds apart: a GPU on which nothing ran, by its file and its number."""
    gpu = -1 if place.device >= 0 else place.gpu
    return place.source, place.device, gpu, place.kind


def _window(scope: Scope, gpu: Utilization | None, start: I8, end: I8) -> TimeWindow:
    if gpu is not None and scope.selection.where:
        return gpu.window
    times = np.concatenate([start, end[end != NEVER], [scope.profile.begin, scope.profile.end]])
    return TimeWindow(int(times.min()), int(times.max()) + 1)


def _use(
    gpu: Utilization | None,
    place: MemoryPlace,
    strays: int,
    window: TimeWindow,
    start: I8,
    end: I8,
    size: I8,
) -> MemoryUse:
    ends = end != NEVER
    time, level = _levels(
        np.concatenate([start, end[ends]]), np.concatenate([size, -size[ends]]), window
    )
    at = int(level.argmax())
    begun = (start >= window.low) & (start < window.high)
    return MemoryUse(
        gpu,
        place,
        window,
        peak=int(level[at]),
        peak_at=int(time[at]),
        peak_until=int(np.append(time, window.high)[at + 1]),
        last=int(level[-1]),
        allocations=int(begun.sum()),
        freed=int((ends & (end >= window.low) & (end < window.high)).sum()),
        total=int(size[begun].sum()),
        strays=strays,
        most=tuple(_most(time, level, window).tolist()),
    )


def _levels(time: I8, change: I8, window: TimeWindow) -> tuple[I8, I8]:
    """(times at which the amount changes, amounts from then on); the first is where it begins."""
    time = np.maximum(time, window.low)
    inside = time < window.high
    times = unique(np.append(time[inside], window.low))
    changes = np.zeros(len(times), np.int64)
    np.add.at(changes, np.searchsorted(times, time[inside]), change[inside])
    return times, np.cumsum(changes)


def _most(time: I8, level: I8, window: TimeWindow) -> I8:
    """The largest amount in each of `CHUNKS` parts of ``window``."""
    edges = [window.low + window.length * at // CHUNKS for at in range(CHUNKS + 1)]
    first = np.searchsorted(time, edges[:-1], "right") - 1
    last = np.maximum(np.searchsorted(time, edges[1:]), first + 1)
    bounds = np.stack([first, last], 1).ravel()
    found: I8 = np.maximum.reduceat(np.append(level, level[-1]), bounds)[::2]
    return found
