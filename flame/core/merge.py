"""Several profiles as one, in which everything still knows of which it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import accumulate

import numpy as np

from flame.core.alignment import Clock, align
from flame.core.columns import I4, I8, Column
from flame.core.errors import InputError
from flame.core.frames import FrameBuilder
from flame.core.grouping import add_grouping
from flame.core.launches import UNKNOWN, Launches
from flame.core.measures import joined_measures, joined_metrics
from flame.core.profile import (
    NONE,
    Activities,
    GraphNodes,
    Meta,
    Process,
    Profile,
    ProfilerSteps,
    Source,
    Thread,
)
from flame.core.ranges import RangePieces
from flame.core.stacks import StackBuilder
from flame.core.timeline import timed

_STACKS = ("python", "native", "nvtx", "stack")
_AS_RECORDED = ("kind", "duration", "stream", "launch_share", "idle", "launched")
_SUM_LIMIT = 1 << 62
_UNKNOWN = Process(NONE, "unknown process")


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the profiles, as the new numbers of all that it has; ``shift`` moves its times.

    The last of ``frames``, ``process``, ``thread`` and ``device`` is for what is unknown (-1).
    """

    frames: I4
    process: I4
    thread: I4
    device: I4
    shift: int
    rows: int
    host: Callable[[], Activities]
    ranges: Callable[[], RangePieces] | None
    launches: Callable[[], Launches | None] | None


def merged(profiles: Sequence[Profile], labels: Sequence[str]) -> Profile:
    """One profile of all ``profiles``, called ``labels`` on the level ``rank``.

    Processes, threads and GPUs stay apart, however equal their numbers are. The sum of a metric is
    the sum of the profiles' own, exactly. Times are those of one clock where all traces know the
    time of day and were recorded together; else each begins at 0, and a warning says so. Raises
    InputError where they have nothing in common to be measured by.
    """
    metrics = joined_metrics(profiles, labels)
    _check_sums(profiles)
    clock, frames = align(profiles, labels), FrameBuilder()
    sources = tuple(map(Source, labels, (one.meta for one in profiles)))
    processes = [_processes(one, number) for number, one in enumerate(profiles)]
    parts = _parts(profiles, processes, clock, frames)
    table = _joined(parts, [one.activities for one in profiles])
    listed = tuple(process for own in processes for process in own)
    threads = tuple(
        _moved(thread, part)
        for one, part in zip(profiles, parts, strict=True)
        for thread in one.threads
    )
    devices = tuple(
        replace(device, source=number)
        for number, one in enumerate(profiles)
        for device in one.devices
    )
    grouping = add_grouping(frames, listed, threads, devices, table.stream, sources)
    return Profile(
        frames=frames.build(),
        activities=table,
        processes=listed,
        threads=threads,
        devices=devices,
        grouping=grouping,
        meta=_meta([one.meta for one in profiles], clock),
        begin=clock.begin,
        end=clock.end,
        graph_nodes=_graph_nodes(profiles),
        warnings=(*clock.warnings, *_warnings(profiles, labels)),
        host_builder=partial(_host, parts),
        launches_builder=_launches_builder(parts),
        ranges_builder=_ranges_builder(parts),
        sources=sources,
        steps=_steps(profiles, parts),
        own_metrics=metrics,
        timed=all(one.timed for one in profiles),
    )


def _check_sums(profiles: Sequence[Profile]) -> None:
    sums = [0.0]
    for metric in profiles[0].metrics:
        if metric.table == "gpu" and all(metric in one.metrics for one in profiles):
            tables = [one.activities for one in profiles]
            sums.append(sum(float(metric.values(one).sum(dtype=np.float64)) for one in tables))
    if max(sums) >= _SUM_LIMIT:
        raise InputError("the times in these traces add up to more than a century")


# Who and what was traced


def _processes(profile: Profile, source: int) -> list[Process]:
    """The profile's processes, and one more where some work has none: each rank has all of its."""
    own = [replace(process, source=source) for process in profile.processes]
    nobodys = bool((profile.activities.process < 0).any())
    if nobodys or any(thread.process < 0 for thread in profile.threads):
        own.append(replace(_UNKNOWN, source=source))
    return own


def _parts(
    profiles: Sequence[Profile],
    processes: Sequence[Sequence[Process]],
    clock: Clock,
    frames: FrameBuilder,
) -> list[_Part]:
    first_process = _offsets(processes)
    first_thread = _offsets([one.threads for one in profiles])
    first_device = _offsets([one.devices for one in profiles])
    return [
        _Part(
            _frame_ids(one, frames),
            _numbers(first_process[number], len(one.processes), nobody(one, processes[number])),
            _numbers(first_thread[number], len(one.threads)),
            _numbers(first_device[number], len(one.devices)),
            clock.shifts[number],
            len(one.activities),
            one.host_builder,
            one.ranges_builder,
            one.launches_builder,
        )
        for number, one in enumerate(profiles)
    ]
