"""Tell how long GPUs communicated, how much of that nothing hid, and which rank waited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, taken, unique
from flame.core.kept_results import kept
from flame.core.model.activities import has_times
from flame.core.model.frames import COPIES
from flame.core.model.profile import Profile
from flame.core.names.collectives import Collective, rank_spans
from flame.core.names.kernel_category import COMMUNICATION
from flame.core.report.labels import process_labels
from flame.core.report.measures.launching_calls import early_rows
from flame.core.report.parties.collectives import (
    CommunicationRows,
    MatchedRanks,
    match_ranks,
)
from flame.core.report.parties.devices import device_place
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.devices import device_label, timed_rows
from flame.core.timeline.exposure import (
    WorkClass,
    class_of_groups,
    class_times,
    exposed_times,
    work_classes,
)

NAME, TITLE = "communication", "How GPUs communicated, and who waited"

_DEVICES = (
    TableColumn("gpu", "GPU"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("sum_ns", "sum", "ns"),
    TableColumn("busy_ns", "busy", "ns"),
    TableColumn("overlap_ns", "while computing", "ns"),
    TableColumn("exposed_ns", "exposed", "ns"),
    TableColumn("overlap_percent", "overlap", "percent"),
    TableColumn("exposed_percent", "exposed of window", "percent"),
    TableColumn("gpu_time_percent", "sum of GPU time", "percent"),
    TableColumn("peer_copies", "peer copies", "count"),
    TableColumn("peer_copies_ns", "peer copies", "ns"),
)
_COLLECTIVES = (
    TableColumn("collective", "collective"),
    TableColumn("group", "group"),
    TableColumn("group_ranks", "ranks", "count"),
    TableColumn("count", "number", "count"),
    TableColumn("sum_ns", "sum", "ns"),
    TableColumn("exposed_ns", "exposed", "ns"),
    TableColumn("bytes", "bytes", "bytes"),
    TableColumn("bandwidth", "by bytes", "GB/s"),
    TableColumn("bus_bandwidth", "on the bus", "GB/s"),
    TableColumn("reduction", "reduction"),
    TableColumn("root", "root", "number"),
    TableColumn("peers", "peers"),
    TableColumn("mean_ns", "mean", "ns"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p99_ns", "p99", "ns"),
    TableColumn("max_ns", "max", "ns"),
    TableColumn("recorded_ranks", "recorded"),
)
_SUM = [column.key for column in _COLLECTIVES].index("sum_ns")
_RANKS = (
    TableColumn("rank", "rank"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("sum_ns", "sum", "ns"),
    TableColumn("matched", "matched", "count"),
    TableColumn("wait_ns", "waited", "ns"),
    TableColumn("transfer_ns", "transfer", "ns"),
    TableColumn("last", "came last", "count"),
)
_OPERATIONS = (
    TableColumn("collective", "collective"),
    TableColumn("group", "group"),
    TableColumn("bytes", "bytes", "bytes"),
    TableColumn("ranks", "ranks", "count"),
    TableColumn("number", "operations", "count"),
    TableColumn("transfer_ns", "transfer", "ns"),
    TableColumn("wait_ns", "all waited", "ns"),
    TableColumn("skew_ns", "apart", "ns"),
    TableColumn("alone", "not on all", "count"),
    TableColumn("why", "not matched"),
)


class DeviceCommunication(NamedTuple):
    """Say how a GPU communicated in its windows: times in ns, by all that ran on it.

    ``total`` sums kernels, ``busy`` is their union, ``overlap`` the part of it while the GPU
    computed, ``exposed`` the rest; ``gpu_time`` sums all activities, which is not done where none
    of them communicates. ``peers`` are copies between GPUs, which are none of these kernels.
    """

    gpu: Utilization
    kernels: int
    total: int
    busy: int
    overlap: int
    exposed: int
    gpu_time: int
    peers: int
    peers_time: int


def device_communication(scope: Scope) -> tuple[DeviceCommunication, ...]:
    """Measure how each GPU of ``scope`` communicated."""
    return tuple(_of_device(scope.profile, gpu) for gpu in scope.gpus)


def _of_device(profile: Profile, gpu: Utilization) -> DeviceCommunication:
    table, windows, peer_frames = profile.activities, gpu.windows, _peer_frames(profile)
    if not _communicates(profile, gpu.device, peer_frames):
        return DeviceCommunication(gpu, *(0,) * 8)
    rows = timed_rows(profile, gpu.device)
    start = table.start[rows]
    end = start + table.duration[rows]
    inside = windows.sums_until(end) - windows.sums_until(start)
    talks = work_classes(profile)[rows] == WorkClass.COMMUNICATION
    busy = BusyTime.union(start[talks], end[talks]).within_all(windows)
    exposed = class_times(profile, gpu.device).exposed(windows)[WorkClass.COMMUNICATION]
    peers = np.isin(table.frame[rows], peer_frames) & (inside > 0)
    return DeviceCommunication(
        gpu,
        int((talks & (inside > 0)).sum()),
        int(inside[talks].sum()),
        busy,
        busy - exposed,
        exposed,
        int(inside.sum()),
        int(peers.sum()),
        int(inside[peers].sum()),
    )


def _communicates(profile: Profile, device: int, peer_frames: list[int]) -> bool:
    """Tell whether anything that a GPU ran is communication, or copied to another GPU."""
    groups = profile.activities.groups
    talks = class_of_groups(profile) == WorkClass.COMMUNICATION
    talks |= np.isin(groups.frame, peer_frames)
    return bool(talks[groups.device == device].any())


def _peer_frames(profile: Profile) -> list[int]:
    """The frames of copies from one GPU to another."""
    kinds = profile.frames.kind
    copies = np.flatnonzero(np.isin(kinds, COPIES)).tolist()
    return [at for at in copies if "ptop" in profile.frames[at].name.lower()]


def communication_section(scope: Scope) -> Section:
    """Tell how GPUs communicated: by GPU, by collective, and over ranks."""
    if not scope.gpus:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    devices = device_communication(scope)
    told = [one for one in devices if one.kernels or one.peers]
    rows, labels, matched = communication_of_ranks(scope)
    several = rows.ranks > 1
    return Section(
        NAME,
        TITLE,
        facts=_facts(scope, devices, matched, several),
        tables=(
            Table.of("rows", "", _DEVICES, _device_rows(told), _places(scope, told)),
            Table.of("collectives", "by collective", _COLLECTIVES, _collective_rows(scope, rows)),
            Table.of("ranks", "by rank", _RANKS, _rank_rows(matched, labels) if several else ()),
            Table.of("operations", "over ranks", _OPERATIONS, _operations(matched, several)),
        ),
        notes=tuple(_notes(scope, devices, matched, several)),
    )


class MatchedCommunication(NamedTuple):
    """Hold the kernels of communication, the names of the ranks, and how these match."""

    rows: CommunicationRows
    labels: list[str]
    matched: MatchedRanks


@kept
def communication_of_ranks(scope: Scope) -> MatchedCommunication:
    """Match what passes and communicates over ranks."""
    rows = CommunicationRows.of_scope(scope)
    labels = rank_labels(scope.profile, rows)
    return MatchedCommunication(rows, labels, match_ranks(scope.profile, rows, labels))


def rank_labels(profile: Profile, rows: CommunicationRows) -> list[str]:
    """Name each rank: by its process, with the GPU where that has several."""
    names = process_labels(profile)
    used = rows.processes.tolist()
    return [
        f"{names[process]} {device_label(profile, device)}" if used.count(process) > 1 else name
        for process, device, name in zip(
            used, rows.devices.tolist(), (names[at] for at in used), strict=True
        )
    ]


def _facts(
    scope: Scope, devices: tuple[DeviceCommunication, ...], matched: MatchedRanks, several: bool
) -> dict[str, object]:
    facts: dict[str, object] = {
        "devices": [
            {
                **scope.device(one.gpu),
                "kernels": one.kernels,
                "sum_ns": one.total,
                "busy_ns": one.busy,
                "overlap_ns": one.overlap,
                "exposed_ns": one.exposed,
            }
            for one in devices
        ],
        "clock_error_ns": _clock_error(scope),
    }
    if several:
        most = int(matched.total.max())
        facts["imbalance_percent"] = share(most - int(matched.total.min()), most)
    return facts


def _ranks_of_job(scope: Scope) -> int:
    """How many processes the files' one job has, 0 where they do not say that."""
    told = {source.meta.ranks or 0 for source in scope.profile.sources}
    return told.pop() if len(told) == 1 else 0


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _clock_error(scope: Scope) -> int:
    """By how much an activity began before its launch at most, ns."""
    table = scope.profile.activities
    if not len(early_rows(scope.profile)):
        return 0
    marks = taken(table.launched, scope.rows) & taken(has_times(table), scope.rows)
    rows = scope.rows if marks.all() else scope.rows[marks]
    before = taken(table.launch_start, rows) - taken(table.start, rows)
    return max(int(before.max(initial=0)), 0)


def _device_rows(devices: list[DeviceCommunication]) -> Iterator[tuple[Value, ...]]:
    for one in devices:
        yield (
            *(one.gpu.label, one.kernels, one.total, one.busy, one.overlap, one.exposed),
            share(one.overlap, one.busy),
            share(one.exposed, one.gpu.length),
            share(one.total, one.gpu_time),
            *((one.peers, one.peers_time) if one.peers else (None, None)),
        )


def _places(scope: Scope, devices: list[DeviceCommunication]) -> list[Place | None]:
    """The kernels of communication of each GPU."""
    found = (device_place(scope, one.gpu.device) for one in devices)
    return [
        place and Place(("device", "category", "kernel"), (*place.frames, COMMUNICATION))
        for place in found
    ]


def _collective_rows(scope: Scope, rows: CommunicationRows) -> Iterator[tuple[Value, ...]]:
    """By collective and group, the one with most time first."""
    if not len(rows):
        return
    exposed = exposed_times(scope.profile, [WorkClass.COMMUNICATION])
    kinds = [one._replace(bytes=None) for one in rows.collectives]
    known = list(dict.fromkeys(kinds))
    of_kind = np.array([known.index(kind) for kind in kinds])[rows.of]
    moved = np.array([-1 if one.bytes is None else one.bytes for one in rows.collectives])[rows.of]
    found = []
    for at, kind in enumerate(known):
        told = _took_part(scope.profile, rows.told[of_kind == at])
        measured = rows.row[of_kind == at], moved[of_kind == at], exposed
        found.append(_collective_row(scope.profile, kind, told, *measured))
    yield from sorted(found, key=lambda row: -int(row[_SUM] or 0))


def _took_part(profile: Profile, told: I8) -> tuple[str | None, str | None]:
    """Which ranks of the group these calls are of, and with which they exchanged, if it is told."""
    recorded = profile.collectives
    kinds = [recorded.kinds[at] for at in unique(told[told >= 0]).tolist()] if recorded else []
    members, peers = (
        ", ".join(rank_spans(sorted({one for one in ranks if one is not None}))) or None
        for ranks in ([one.rank for one in kinds], [one.peer for one in kinds])
    )
    return members, peers


def _collective_row(
    profile: Profile,
    kind: Collective,
    took_part: tuple[str | None, str | None],
    rows: I8,
    moved: I8,
    exposed: I8,
) -> tuple[Value, ...]:
    duration = profile.activities.duration[rows]
    told = distribution(duration)
    assert told is not None, "a collective has kernels"
    size, time = int(moved[moved >= 0].sum()), int(duration[moved >= 0].sum())
    rate = size / time if time and (moved >= 0).any() else None
    factor = kind.bus_factor
    members, peers = took_part
    return (
        *(kind.name, kind.group or None, kind.ranks),
        *(told.count, told.total, int(exposed[rows].sum())),
        size if (moved >= 0).any() else None,
        None if rate is None else round(rate, 3),
        None if rate is None or factor is None else round(rate * factor, 3),
        *(kind.reduction or None, kind.root, peers),
        *(round(told.mean), told.p50, told.p99, told.maximum),
        members,
    )


def _rank_rows(matched: MatchedRanks, labels: list[str]) -> Iterator[tuple[Value, ...]]:
    size = len(labels)
    last = [None] * size if matched.last is None else matched.last.tolist()
    sums = (matched.number, matched.total, matched.matched, matched.wait, matched.transfer)
    cells = zip(labels, *(column.tolist() for column in sums), last, strict=True)
    for label, number, total, found, *rest in cells:
        yield label, number, total, found, *(rest if found else (None, None, None))


def _operations(matched: MatchedRanks, several: bool) -> Iterator[tuple[Value, ...]]:
    ordered = sorted(matched.operations, key=lambda one: -(one.wait + one.transfer))
    for one in ordered if several else ():
        times = (one.number, one.transfer, one.wait, one.skew)
        yield (
            *(one.collective.name, one.collective.group or None, one.collective.bytes, one.ranks),
            *((None,) * 4 if one.why else times),
            one.alone or None,
            one.why or None,
        )


def _notes(
    scope: Scope, devices: tuple[DeviceCommunication, ...], matched: MatchedRanks, several: bool
) -> Iterator[str]:
    if not any(one.kernels for one in devices):
        yield "no kernel communicates, by its name"
    opened = len(scope.profile.sources)
    if any(one.kernels for one in devices) and (job := _ranks_of_job(scope)) > opened:
        yield f"the job has {job:,} ranks, {opened:,} {_were(opened)} opened"
    if (recorded := scope.profile.collectives) and any(one.kernels for one in devices):
        yield from recorded.warnings
    if several and matched.last is None:
        yield "the clocks of the ranks differ: who came last is not known"
    if several and (error := _clock_error(scope)):
        yield f"GPU times are early by up to {error:,} ns: work began before its launch"
