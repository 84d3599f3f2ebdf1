"""The clock of a trace, set to 0 at its first event: a window such as 5ms/10ms means something."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from flame.core.model.meta import ProfilerSteps
from flame.core.model.raw import Activities, Calls, Functions, GpuRanges, Ranges, RawTrace

_Table = TypeVar("_Table", Activities, Calls, Functions, GpuRanges, ProfilerSteps, Ranges)


def from_zero(raw: RawTrace, first: int) -> RawTrace:
    """``raw`` with its times (ns) counted from ``first``, which ``Meta.origin`` takes in.

    Traces count from whenever the machine started, from 1970, or from some day of the quarter.
    """
    if first > raw.last_time:  # nothing in it has a time
        return raw
    origin = raw.meta.origin
    return replace(
        raw,
        activities=_moved(raw.activities, first),
        calls=_moved(raw.calls, first),
        functions=_moved(raw.functions, first),
        ranges=_moved(raw.ranges, first),
        gpu_ranges=_moved(raw.gpu_ranges, first),
        steps=_moved(raw.steps, first),
        last_time=raw.last_time - first,
        meta=replace(raw.meta, origin=None if origin is None else origin + first),
    )


def _moved(table: _Table, first: int) -> _Table:
    return replace(table, start=table.start - first, end=table.end - first)
