"""Make a `Profile` with the level ``stack`` of ready-made stacks."""

from __future__ import annotations

from functools import partial

import numpy as np

from flame.core.columns import I4, I8, SUM_LIMIT, Column, unique
from flame.core.errors import InputError
from flame.core.model.activities import NONE, Activities, off_gpu_columns, repeat
from flame.core.model.frames import Kind
from flame.core.model.grouping import add_grouping
from flame.core.model.meta import GraphNodes, Source
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackTable

_MOST_CELLS = 1 << 26  # of a table with a row per stack and a column per frame
_ALWAYS, _AT_MOST = 500, 10_000  # frames of a stack
_NOUN = "stacks"


def resolve_stacks(raw: RawStacks) -> Profile:
    """Make the profile of ``raw``: an activity per row, whose values are the measures'.

    The sum of a metric over the rows is the measure's sum, exactly. Stacks that are too deep for
    memory lose their innermost frames, which a warning says. Raises InputError where a sum would
    not fit 64 bits.
    """
    for measure in raw.measures:
        _check_sum(measure)
    sources = (Source("", raw.meta),)
    streams: I4 = np.zeros(0, np.int32)
    grouping = add_grouping(raw.frames, raw.processes, raw.threads, (), streams, sources)
    stacks, stack, warnings = _limit_depth(raw.stacks.build(), raw.stack)
    table = _activities(raw, stacks, stack)
    begin, end = _extent(raw)
    return Profile(
        frames=raw.frames.build(),
        activities=table,
        processes=raw.processes,
        threads=raw.threads,
        devices=(),
        grouping=grouping,
        meta=raw.meta,
        begin=begin,
        end=end,
        graph_nodes=GraphNodes(),
        warnings=(*raw.warnings, *warnings),
        host_builder=partial(_same, table),
        sources=sources,
        own_metrics=tuple(_metrics(raw)),
        timed=raw.start is not None,
    )


def _same(table: Activities) -> Activities:
    return table


def _metrics(raw: RawStacks) -> tuple[Metric, ...]:
    levels = ("thread", "stack") if len(raw.threads) > 1 else ("stack",)
    return tuple(
        Metric(
            measure.key,
            measure.title,
            measure.unit,
            partial(_values, measure.key),
            levels=levels,
            noun=_NOUN,
        )
        for measure in raw.measures
    )


def _values(key: str, table: Activities) -> I8:
    return table.measures[key]


def _limit_depth(table: StackTable, stack: I4) -> tuple[StackTable, I4, list[str]]:
    """Leave out the innermost frames of stacks that are too deep, and warn of it."""
    most = min(max(_MOST_CELLS // max(len(unique(stack)), 1), _ALWAYS), _AT_MOST)
    deep = table.depth > most
    if not deep.any():
        return table, stack, []
    shown = np.where(deep, table.parent, np.arange(len(table)))
    while deep[shown].any():
        shown = shown[shown]  # twice as far each time
    place = (np.cumsum(~deep) - 1).astype(np.int32)
    parent = np.where(table.parent >= 0, place[table.parent], table.parent)
    kept = StackTable(*(column[~deep] for column in (parent, table.frame, table.depth)))
    count = int(deep[stack].sum())
    warning = f"stacks of more than {most:,} frames: {count:,}, their innermost left out"
    return kept, place[shown[stack]], [warning] if count else []


def _activities(raw: RawStacks, stacks: StackTable, stack: I4) -> Activities:
    size = len(raw.stack)
    no_time = repeat(np.int64(0), size)
    duration = _durations(raw)
    columns: dict[str, Column] = {
        "kind": repeat(np.uint8(Kind.FRAME), size),
        "start": no_time if raw.start is None else raw.start,
        "duration": no_time if duration is None else duration,
        "stack": stack,
    }
    if raw.thread is not None:
        of_thread = np.array([*(thread.process for thread in raw.threads), NONE], np.int32)
        columns |= {"thread": raw.thread, "process": of_thread[raw.thread]}
    return Activities(
        **off_gpu_columns(size) | columns,
        stacks=stacks,
        measures={measure.key: measure.values for measure in raw.measures},
    )


def _durations(raw: RawStacks) -> I8 | None:
    """Values of the first measure of time, ns; None without one."""
    return next((measure.values for measure in raw.measures if measure.unit == "ns"), None)


def _extent(raw: RawStacks) -> tuple[int, int]:
    """First and last time, ns; (0, 0) where there is none."""
    if raw.start is None or not len(raw.start):
        return 0, 0
    duration = _durations(raw)
    end = raw.start if duration is None else raw.start + duration
    return int(raw.start.min()), int(end.max())


def _check_sum(measure: Measure) -> None:
    if float(measure.values.sum(dtype=np.float64)) >= SUM_LIMIT:
        raise InputError(f"the {measure.title} in it add up to more than 64 bits hold")
