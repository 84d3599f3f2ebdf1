"""Measure calls of the operating system: the outermost ones, and the idle time of GPUs in them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization, gap_edges
from flame.core.attribution.thread_pieces import call_pieces
from flame.core.columns import I8, Bool, sum_by, unique
from flame.core.kept_results import kept
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.profile import Profile
from flame.core.model.raw import RawCalls
from flame.core.model.side_tables.os_calls import OsCalls
from flame.core.projection.filters import Pids, Ranks, RowFilter, Tids
from flame.core.report.scope import Scope, host_rows
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.idle_parts import IdleCause
from flame.core.timeline.lane_intervals import LaneIntervals

RUNNING, NOT_RECORDED = "[running]", "[not recorded]"
"""What host code is that is in no call, and that of processes whose calls nobody recorded."""


def outermost(calls: OsCalls) -> ThreadPieces:
    """Find the calls within no other: ``thread`` is a place in `OsCalls.threads`.

    ``frame`` is one in its names. They are by thread and time; where one outlives the one before
    the rest counts.
    """
    size = len(calls)
    none, never = np.zeros(size, np.int32), np.zeros(size, bool)
    times = (calls.start, calls.end, calls.thread)
    return call_pieces(RawCalls(*times, none.astype(np.int64), calls.name, none, none, never))


@kept
def outermost_of(profile: Profile) -> ThreadPieces | None:
    """Find the outermost calls of all of ``profile``; None without any. Kept as long as it is."""
    if profile.os_calls is None or not len(profile.os_calls):
        return None
    return outermost(profile.os_calls)


def passing_calls(scope: Scope) -> OsCalls | None:
    """Choose the calls by thread, process and file, and by when they began; None without any."""
    calls, where = scope.profile.os_calls, scope.selection.where
    if calls is None or not len(calls):
        return None
    rows = host_rows(len(calls), {"process": processes(calls)[calls.thread], "start": calls.start})
    passing = np.ones(len(calls), bool)
    for one in where:
        if isinstance(one, RowFilter):
            passing &= one.rows(scope.profile, rows)
        elif isinstance(one, Tids | Pids | Ranks):
            passing &= _threads(scope.profile, calls, one)[calls.thread]
    columns = {name: getattr(calls, name)[passing] for name in ("name", "thread", "start", "end")}
    return calls if passing.all() else replace(calls, **columns)


def _threads(profile: Profile, calls: OsCalls, chosen: Tids | Pids | Ranks) -> Bool:
    if isinstance(chosen, Tids):
        fits = [one.tid in chosen.ids for one in calls.threads]
    elif isinstance(chosen, Pids):
        fits = [one.pid in chosen.ids for one in calls.threads]
    else:
        fits = [chosen.fits(profile.sources[one.source]) for one in calls.threads]
    return np.array(fits, bool)


def processes(calls: OsCalls) -> I8:
    """Look up the process of each of the threads, i8[threads] places in the profile's list."""
    return np.array([one.process for one in calls.threads], np.int64)


def idle_in_calls(scope: Scope, calls: OsCalls, pieces: ThreadPieces) -> I8:
    """Measure how long in each any GPU that its process uses had a gap, i8[n] in ns."""
    groups, found = scope.profile.activities.groups, np.zeros(len(pieces), np.int64)
    process = processes(calls)[pieces.thread]
    users = {gpu.device: groups.process[groups.device == gpu.device] for gpu in scope.gpus}
    gaps = {gpu.device: gap_edges(gpu) for gpu in scope.gpus}
    for one in sorted({each.process for each in calls.threads} - {NONE}):
        mine = [gaps[device] for device, who in users.items() if (who == one).any()]
        if not mine:
            continue
        idle = BusyTime.union(*(np.concatenate(edges) for edges in zip(*mine, strict=True)))
        rows = np.flatnonzero(process == one)
        until = (idle.sums_until(time[rows]) for time in (pieces.end, pieces.start))
        found[rows] = next(until) - next(until)
    return found


class HostCodePart(NamedTuple):
    """Say how long a GPU was idle with host code in a call, ns, and in how many parts."""

    name: str
    ns: int
    parts: int


def host_code_parts(scope: Scope, gpu: Utilization) -> list[HostCodePart] | None:
    """Divide the idle time with host code by the call that its thread was in, longest first.

    The parts add up to it. None where no calls were recorded.
    """
    profile, pieces = scope.profile, outermost_of(scope.profile)
    if pieces is None or profile.os_calls is None:
        return None
    idle = scope.idle(gpu)
    rows = np.flatnonzero(idle.cause == IdleCause.HOST_CODE)
    thread = profile.activities.thread[idle.after[idle.gap[rows]]].astype(np.int64)
    lanes = _lanes(profile.os_calls)
    found = _on_threads(lanes, pieces).cut(
        np.where(thread < 0, len(profile.threads), thread), idle.low[rows], idle.high[rows]
    )
    names = [*profile.os_calls.names, NOT_RECORDED, RUNNING]
    known = np.append(_recorded(profile, profile.os_calls), False)[thread[found.source]]
    name = np.append(pieces.frame[_kept(lanes, pieces)], NONE).astype(np.int64)[found.by]
    name = np.where(found.by >= 0, name, len(names) - np.where(known, 1, 2))
    inside = gpu.windows.sums_until(found.end) - gpu.windows.sums_until(found.begin)
    return _summed(names, name, inside)


def _summed(names: list[str], name: I8, inside: I8) -> list[HostCodePart]:
    sums = sum_by(name, inside, len(names))
    number = np.bincount(name[inside > 0], minlength=len(names))
    order = np.argsort(-sums, kind="stable").tolist()
    return [HostCodePart(names[at], int(sums[at]), int(number[at])) for at in order if sums[at]]


def _lanes(calls: OsCalls) -> I8:
    """The thread of the profile that each of the threads is; -1 of others."""
    return np.array([one.thread for one in calls.threads], np.int64)


def _kept(lanes: I8, pieces: ThreadPieces) -> I8:
    """The pieces on threads of the profile, by thread and time."""
    lane = lanes[pieces.thread]
    rows = np.flatnonzero(lane >= 0)
    return rows[np.lexsort((pieces.start[rows], lane[rows]))]


def _on_threads(lanes: I8, pieces: ThreadPieces) -> LaneIntervals:
    rows = _kept(lanes, pieces)
    return LaneIntervals(lanes[pieces.thread[rows]], pieces.start[rows], pieces.end[rows])


def _recorded(profile: Profile, calls: OsCalls) -> Bool:
    """Mark the threads of the profile whose processes' calls were recorded, bool[threads]."""
    known = set(processes(calls)[unique(calls.thread)].tolist()) - {NONE}
    return np.array([one.process in known for one in profile.threads], bool)


def thread_os_calls(profile: Profile) -> tuple[LaneIntervals, Bool]:
    """(the outermost calls on threads of ``profile``, of which threads they were recorded)."""
    pieces, calls = outermost_of(profile), profile.os_calls
    if pieces is None or calls is None:
        none = np.zeros(0, np.int64)
        return LaneIntervals(none, none, none), np.zeros(len(profile.threads), bool)
    return _on_threads(_lanes(calls), pieces), _recorded(profile, calls)
