"""Make a profile of a head and columns, after checking that they make sense together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from flame.core.analysis.waiting.measures import MEASURES
from flame.core.columns import I4, I8, Column
from flame.core.efficiency.operator_calls import OperatorSource, operator_costs
from flame.core.efficiency.work import measure_work, rate_work, share_work
from flame.core.efficiency.work_counts import WIDTH
from flame.core.model.activities import FOUND_COLUMNS, GROUP_COLUMNS, Activities
from flame.core.model.frames import FrameTable
from flame.core.model.grouping import Grouping
from flame.core.model.iterations import Iterations
from flame.core.model.launches import LaunchDetails
from flame.core.model.lazy_rows import KnownBusy, KnownSums, LazyActivities, LazyGroups
from flame.core.model.meta import ProfilerSteps, Source
from flame.core.model.profile import Profile
from flame.core.model.side_tables.tables import SideTables
from flame.core.model.stacks import StackTable
from flame.core.operators.cost import Cost
from flame.core.operators.work import KnownWork, OperatorWork, SharedWork
from flame.core.reopening.check import Checked, check_grouping, check_stacks, require
from flame.core.reopening.column_file import ColumnFile, DamagedError
from flame.core.reopening.kept_rows import KeptRows
from flame.core.reopening.profile_head import (
    FAR,
    GROUPING_COLUMNS,
    ITERATION_COLUMNS,
    SIDE_TABLES,
    STACK_COLUMNS,
    STEP_COLUMNS,
    WORK_COLUMNS,
    KeptWork,
    ProfileHead,
)
from flame.core.reopening.trace_again import TraceAgain

ReadLaunches = Callable[[Path, Column], LaunchDetails]
"""Reads how activities with these starts were launched, without all else that is in the trace."""


def read_head(file: ColumnFile) -> ProfileHead:
    """Decode the head; raises DamagedError."""
    try:
        return msgspec.msgpack.decode(file.content, type=ProfileHead)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DamagedError(str(error)) from None


def decode(
    file: ColumnFile,
    head: ProfileHead,
    again: TraceAgain,
    read_launches: ReadLaunches | None,
) -> Profile:
    """Make the profile of ``file``, of which rows are read when they are asked for.

    Raises DamagedError, and OSError.
    """
    checked, meta = Checked(file, head), replace(head.meta, path=str(again.path))
    table = _read_table(file, checked, again)
    grouping = Grouping(
        **{name: checked.grouping(name) for name in GROUPING_COLUMNS}, rest=head.rest
    )
    check_grouping(grouping, table.stacks, table.groups.frame)
    return Profile(
        frames=again.frames,
        activities=table,
        processes=head.processes,
        threads=head.threads,
        devices=head.devices,
        grouping=grouping,
        meta=meta,
        begin=head.begin,
        end=head.end,
        graph_nodes=head.graph_nodes,
        warnings=head.warnings,
        **_builders(file, head, again, partial(_launches_later, table, again, read_launches)),
        sources=(Source("", meta),),
        steps=_steps(checked) if head.has_steps else None,
        known=_known_sums(file, head, checked, table, again),
        **MEASURES,
        work_builder=partial(_kept_work, file, head.work) if head.work else measure_work,
    )


def _read_table(file: ColumnFile, checked: Checked, again: TraceAgain) -> LazyActivities:
    stacks = StackTable(*(file.read(f"stacks.{name}", "i4") for name in STACK_COLUMNS))
    check_stacks(stacks, len(again.frames))
    found = [name for name in FOUND_COLUMNS if f"groups.{name}" in file]
    names = (*GROUP_COLUMNS, "launched", *found)
    columns = {name: checked.group(name, len(stacks)) for name in names}
    rows = KeptRows(file, len(columns["kind"]), again)
    return LazyActivities(rows, LazyGroups(rows, columns), stacks)


def _known_sums(
    file: ColumnFile, head: ProfileHead, checked: Checked, table: Activities, again: TraceAgain
) -> KnownSums:
    counts = checked.sums("sums")
    require(int(counts.sum()) == len(table))
    return KnownSums(
        {key: checked.sums(f"sums.{key}") for key in head.metrics},
        counts,
        partial(_read_busy, file, head, again),
        Iterations(head.iterations, **_events(checked, "iterations", ITERATION_COLUMNS)),
    )


def frames_of(head: ProfileHead) -> FrameTable:
    """Make the table of frames."""
    require(len(head.frames) > 0 and all(0 <= at < len(head.frames) for at in head.examples))
    return FrameTable(tuple(head.frames), head.examples)


def _steps(checked: Checked) -> ProfilerSteps:
    return ProfilerSteps(**_events(checked, "steps", STEP_COLUMNS))


def _events(checked: Checked, table: str, columns: Mapping[str, str]) -> dict[str, Column]:
    """The ``columns`` of iterations, or of steps."""
    read = {name: checked.event(f"{table}.{name}", dtype) for name, dtype in columns.items()}
    require(len({len(read[name]) for name in columns if name != "frames"}) == 1)
    return read


def _builders(
    file: ColumnFile, head: ProfileHead, again: TraceAgain, launches: Callable[[], LaunchDetails]
) -> dict[str, Any]:
    """What a profile is made of later, by the name that `Profile` has for it."""
    made: dict[str, Any] = {
        "host_builder": again.builder("host"),
        "launches_builder": launches,
        "ranges_builder": again.builder("ranges"),
        "functions_builder": again.builder("functions"),
        "calls_builder": again.builder("calls"),
        "callrows_builder": again.builder("callrows"),
        "failures_builder": again.builder("failures"),
        "events_builder": again.builder("events"),
        "overheads_builder": again.builder("overheads"),
        "collectives_builder": again.builder("collectives"),
        "allocator_builder": again.builder("allocator"),
        "memory_builder": again.builder("memory"),
        "spans_finder": again.builder("spans"),
        "nested_finder": again.builder("nested"),
        "captures_builder": again.builder("captures"),
    }
    if head.configs is not None:
        made["launches_builder"] = partial(_kept_launches, file, head, again)
    kept = {
        name: builder
        for name, builder in made.items()
        if name.partition("_")[0] in head.builders or name == "host_builder"
    }
    side = {name: again.builder(name) for name in SIDE_TABLES if name in head.builders}
    return {**kept, "side_tables": SideTables(**side)}


def _launches_later(
    table: Activities, again: TraceAgain, read_launches: ReadLaunches | None
) -> LaunchDetails:
    if read_launches is None:
        details: LaunchDetails = again.builder("launches")()
        return details
    again.check()
    return read_launches(again.path, table.start)


def _kept_launches(file: ColumnFile, head: ProfileHead, again: TraceAgain) -> LaunchDetails:
    assert head.configs is not None
    try:
        config: I4 = file.read("launches.config", "i4")
        size = file.read("launches.bytes", "i8")
        require(len(config) == len(size) == file.length("rows.group"))
        require(config.min(initial=-1) >= -1 and config.max(initial=-1) < len(head.configs))
        return LaunchDetails(config, size, head.configs)
    except (DamagedError, OSError):
        details: LaunchDetails = again.builder("launches")()
        return details


def _kept_work(file: ColumnFile, kept: KeptWork, profile: Profile) -> OperatorWork:
    """What was kept, at the peaks that are known now; types that the user says count bytes anew."""
    if profile.work_options.dtype:
        return measure_work(profile)
    costs = operator_costs(profile)
    share = partial(_kept_shares, file, OperatorSource.of(profile), costs)
    work = rate_work(profile, share, costs)
    if kept.peaks != profile.peaks:
        return work
    return replace(work, known=_known_work(file, kept, np.array(sorted(costs), np.int64)))


def _known_work(file: ColumnFile, kept: KeptWork, frames: I8) -> KnownWork | None:
    try:
        sums, counts = file.read("work.sums", "i8"), file.read("work.counts", "i8")
        require(len(sums) == WIDTH * len(frames) and len(counts) == 3)
        require(sums.min(initial=0) >= 0 and sums.max(initial=0) < FAR and counts.min() >= 0)
    except (DamagedError, OSError):
        return None
    return KnownWork(frames, sums.reshape(WIDTH, len(frames)), counts, kept.memory_known)


def _kept_shares(file: ColumnFile, source: OperatorSource, costs: Mapping[int, Cost]) -> SharedWork:
    try:
        return _read_work(file, costs)
    except (DamagedError, OSError):
        return share_work(source, costs)


def _read_work(file: ColumnFile, costs: Mapping[int, Cost]) -> SharedWork:
    kept = SharedWork(*(file.read(f"work.{name}", dtype) for name, dtype in WORK_COLUMNS.items()))
    rows, size = kept.rows, file.length("rows.group")
    require(len(rows) == len(kept.operator) == len(kept.flops) == len(kept.bytes))
    require(len(kept.counts) == 3)
    require(not len(rows) or (rows[0] >= 0 and rows[-1] < size and (np.diff(rows) > 0).all()))
    require(np.isin(kept.operator, list(costs)).all())
    amounts = (kept.flops, kept.bytes, kept.counts)
    require(all(not len(one) or one.min() >= 0 for one in amounts))
    require(all(one.sum(dtype=np.float64) < FAR for one in amounts))
    return kept


def _read_busy(file: ColumnFile, head: ProfileHead, again: TraceAgain) -> Sequence[KnownBusy]:
    try:
        return [_busy(file, number, device) for number, device in enumerate(head.busy)]
    except (DamagedError, OSError):
        from flame.core.timeline.devices import device_times

        found = device_times(again.profile())
        return [KnownBusy(each.device, each.busy.low, each.busy.before) for each in found]


def _busy(file: ColumnFile, number: int, device: int) -> KnownBusy:
    low, before = (file.read(f"busy.{number}.{name}", "i8") for name in ("low", "before"))
    require(0 < len(low) == len(before) - 1)
    # The ends alone: between them they only rise.
    require(all(abs(int(column[at])) < FAR for column in (low, before) for at in (0, -1)))
    return KnownBusy(device, low, before)
