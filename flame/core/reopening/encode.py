"""Write a profile as a head and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from flame.core.columns import Column
from flame.core.efficiency.sums import count_by_operator
from flame.core.efficiency.work import measure_work
from flame.core.model.activities import FOUND_COLUMNS, GROUP_COLUMNS, Activities
from flame.core.model.frames import PackedFrames
from flame.core.model.launches import launches_at_hand
from flame.core.model.lazy_rows import ROW_COLUMNS
from flame.core.model.meta import Source
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.operators.work import OperatorWork
from flame.core.reopening.profile_head import (
    BUILDER_FIELDS,
    GROUPING_COLUMNS,
    ITERATION_COLUMNS,
    STACK_COLUMNS,
    STEP_COLUMNS,
    WORK_COLUMNS,
    Builder,
    KeptWork,
    ProfileHead,
)
from flame.core.timeline.devices import device_times

Columns = dict[str, Column]


def can_be_kept(profile: Profile, path: Path) -> bool:
    """Tell whether `encode` knows all that ``profile`` has, and it holds for any later load.

    Where nothing ran on a GPU nothing would be gained, for the host's part is not kept. PC samples
    are left out: what is said of them depends on more files than the trace at ``path``,
    and on what disassembles them. So are warnings that name the trace, which may have other names.
    """
    return (
        not profile.resolved
        and len(profile.activities) > 0
        and profile.sampling is None
        and profile.totals is None
        and profile.timed
        and not any(path.name in warning for warning in profile.warnings)
        and profile.sources == (Source("", profile.meta),)
        and not isinstance(profile.frames.frames, PackedFrames)
    )


def encode(profile: Profile) -> tuple[bytes, Columns]:
    """Make the head and the columns of ``profile``.

    Raises UnicodeEncodeError for names that are no UTF-8.
    """
    launches = launches_at_hand(profile.launches_builder)
    busy = device_times(profile)
    columns = dict(_columns(profile))
    # Not that of the profile, which it would keep: this may go to another process.
    work = measure_work(profile) if profile.sized_operators else None
    if work is not None:
        columns |= _work_columns(profile, work)
    if launches is not None:
        columns |= {"launches.config": launches.config, "launches.bytes": launches.bytes}
    for number, each in enumerate(busy):
        columns[f"busy.{number}.low"] = each.busy.low
        columns[f"busy.{number}.before"] = each.busy.before
    head = ProfileHead(
        frames=list(profile.frames.frames),
        examples=profile.frames.examples,
        processes=profile.processes,
        threads=profile.threads,
        devices=profile.devices,
        rest=profile.grouping.rest,
        meta=profile.meta,
        begin=profile.begin,
        end=profile.end,
        graph_nodes=profile.graph_nodes,
        warnings=profile.warnings,
        builders=tuple(_builders(profile)),
        metrics=tuple(_metrics(profile)),
        busy=tuple(each.device for each in busy),
        iterations=profile.iterations.source,
        has_steps=profile.steps is not None,
        work=None if work is None else KeptWork(profile.peaks, work.memory_known),
        configs=None if launches is None else launches.configs,
    )
    return msgspec.msgpack.encode(head), columns


def _builders(profile: Profile) -> Iterator[Builder]:
    return (name for name, of in BUILDER_FIELDS.items() if attrgetter(of)(profile) is not None)


def _metrics(profile: Profile) -> Iterator[str]:
    return (metric.key for metric in _kept_metrics(profile))


def _kept_metrics(profile: Profile) -> Iterator[Metric]:
    return (one for one in profile.metrics if one.table == "gpu" and not one.when_asked)


def _columns(profile: Profile) -> Iterator[tuple[str, Column]]:
    table = profile.activities
    yield from _table_columns(table)
    yield from _named("stacks", table.stacks, STACK_COLUMNS)
    yield from _named("grouping", profile.grouping, GROUPING_COLUMNS)
    yield from _named("iterations", profile.iterations, ITERATION_COLUMNS)
    if profile.steps is not None:
        yield from _named("steps", profile.steps, STEP_COLUMNS)
    for metric in _kept_metrics(profile):
        values, counts = profile.totals_by_group(metric)
        yield f"sums.{metric.key}", values
    yield "sums", counts


def _work_columns(profile: Profile, work: OperatorWork) -> Columns:
    shared = work.shared_once()
    sums = count_by_operator(profile, work, shared).columns[:, sorted(work.costs)]
    return {**dict(_named("work", shared, WORK_COLUMNS)), "work.sums": sums.ravel()}


def _table_columns(table: Activities) -> Iterator[tuple[str, Column]]:
    groups = table.groups
    yield from _named("rows", table, ROW_COLUMNS)
    yield "rows.group", groups.of_row
    yield from _named("groups", groups, (*GROUP_COLUMNS, "launched"))
    found = (name for name in FOUND_COLUMNS if getattr(groups, name) is not None)
    yield from _named("groups", groups, found)
    # A column of the table that differs within a group would be lost.
    if not np.array_equal(groups.launched[groups.of_row], table.launched):
        raise ValueError("groups of which some were launched, and some were not")


def _named(prefix: str, table: Any, names: Iterable[str]) -> Iterator[tuple[str, Column]]:
    return ((f"{prefix}.{name}", getattr(table, name)) for name in names)
