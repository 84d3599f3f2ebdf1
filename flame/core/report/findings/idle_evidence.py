"""Divide the idle time of a GPU by what it is evidence of: each nanosecond in one part at most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import (
    I8,
    LATEST,
    Bool,
    distinct,
    order_by,
    places_on_lanes,
    sum_by,
    unique_rows,
)
from flame.core.kept_results import kept
from flame.core.model.activities import NONE
from flame.core.model.calls import CallClass
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.report.host.held_host import held_host
from flame.core.report.scope import Scope
from flame.core.timeline.call_classes import call_classes
from flame.core.timeline.idle_host import frames_at
from flame.core.timeline.idle_parts import IdleCause, IdleParts
from flame.core.timeline.thread_states.holdups import HOLDUPS

SHORT = 200_000
"""Longest gap, ns, of the pattern kernel, pause, kernel: 50 to 200 µs in code bound by launches."""

AFTER_SYNC = 20_000
"""Within so many ns of the end of a blocking call a gap began because of it."""

_HOST = (
    IdleCause.HOST_CODE,
    *HOLDUPS,
    IdleCause.OTHER_CALL,
    IdleCause.LAUNCH_CALL,
    IdleCause.SYNC,
    IdleCause.IN_LAUNCH,
)


class DrainingCall(NamedTuple):
    """Say how much idle time passed after a blocking call, ns.

    ``call`` is its frame, ``inside`` the innermost function or range that made it, -1 unknown.
    """

    call: int
    inside: int
    ns: int


class IdleEvidence(NamedTuple):
    """Sum idle time, ns, by what it is evidence of.

    Of the host's part ``gc`` passed with garbage collection and ``gil`` with waiting for the GIL.
    Of the rest ``short`` is that of short gaps; of longer ones ``drained`` is that of those that
    began with a blocking call, ``loading`` the launches of kernels for the first time, and ``host``
    all else. ``alloc`` and ``copies`` are calls before launches, ``async_copies`` a part of those.
    ``drained_calls`` are the calls that drained gaps began with, ``drained_ns`` what passed after
    each, i8[gaps]; ``loads`` counts gaps. ``longest`` is the (begin, end) of the longest gap of
    each, by name.
    """

    gc: int
    gil: int
    short: int
    drained: int
    loading: int
    host: int
    alloc: int
    copies: int
    async_copies: int
    drained_calls: I8
    drained_ns: I8
    loads: int
    longest: dict[str, tuple[int, int]]


def idle_evidence(scope: Scope, gpu: Utilization) -> IdleEvidence:
    """Divide the idle time of a GPU in its windows."""
    profile, parts = scope.profile, scope.idle(gpu)
    inside = parts.within(gpu.windows)
    of_host = np.isin(parts.cause, _HOST)
    gc, gil = held_host(scope, parts, of_host, gpu.windows)
    free = inside - gc - gil
    host = _per_gap(parts, free, of_host)
    loads = _per_gap(parts, free, parts.cause == IdleCause.IN_LAUNCH) * _loads(profile, parts)
    host -= loads
    is_short = parts.end - parts.begin <= SHORT
    began_by = np.full(len(is_short), NONE, np.int64)
    began_by[~is_short] = _began_by(profile, parts.begin[~is_short], parts.after[~is_short])
    drained = (began_by >= 0) & (_per_gap(parts, inside, inside > 0) > 0)
    late = ~is_short & ~drained
    return IdleEvidence(
        gc=int(gc.sum()),
        gil=int(gil.sum()),
        short=int(host[is_short].sum()),
        drained=int(host[drained].sum()),
        loading=int(loads.sum()),
        host=int(host[late].sum()),
        alloc=_sum(inside, parts.cause == IdleCause.ALLOC),
        copies=_sum(inside, parts.cause == IdleCause.COPY_CALL),
        async_copies=_sum(inside, _in_async_copies(profile, parts)),
        drained_calls=began_by[drained],
        drained_ns=host[drained],
        loads=int((loads > 0).sum()),
        longest={
            name: _longest(parts, ns)
            for name, ns in (
                ("gc", _per_gap(parts, gc, of_host)),
                ("gil", _per_gap(parts, gil, of_host)),
                ("short", host * is_short),
                ("drained", host * drained),
                ("loading", loads),
                ("host", host * late),
                ("alloc", _per_gap(parts, inside, parts.cause == IdleCause.ALLOC)),
                ("profiler", _per_gap(parts, inside, parts.cause == IdleCause.PROFILER)),
            )
            if ns.any()
        },
    )


def _per_gap(parts: IdleParts, inside: I8, of: Bool) -> I8:
    rows = np.flatnonzero(of)
    return sum_by(parts.gap[rows], inside[rows], len(parts.begin))


def _sum(inside: I8, of: Bool) -> int:
    return int(inside[of].sum())


def _longest(parts: IdleParts, ns: I8) -> tuple[int, int]:
    at = int(np.argmax(ns))
    return int(parts.begin[at]), int(parts.end[at])


def _loads(profile: Profile, parts: IdleParts) -> Bool:
    """Tell which long gaps end with the first launch of a kernel in its process."""
    table, loads = profile.activities, parts.end - parts.begin > SHORT
    loads &= parts.after >= 0
    rows = parts.after[loads]
    group = table.groups.of_row[rows]
    first = table.launch_start[rows] == _first_launch(profile)[group]
    loads[loads] = first & (table.groups.kind[group] == Kind.KERNEL) & table.launched[rows]
    return loads


@kept
def _first_launch(profile: Profile) -> I8:
    """When kernels of the process and name of each group were first launched, i8[groups] in ns."""
    table, groups = profile.activities, profile.activities.groups
    of_group = np.full(len(groups), LATEST)
    np.minimum.at(of_group, groups.of_row, table.launch_start)
    of_group[(groups.kind != Kind.KERNEL) | ~groups.launched] = LATEST
    some, kind = unique_rows([groups.process, groups.frame])
    first = np.full(len(some), LATEST)
    np.minimum.at(first, kind, of_group)
    return first[kind]


def _began_by(profile: Profile, begin: I8, after: I8) -> I8:
    """Find the blocking call in which gaps began, or just after it, i8[gaps]; -1: none.

    It is one of the thread that launched what came ``after`` the gap.
    """
    calls, table = profile.calls, profile.activities
    if calls is None or not len(table):
        return np.full(len(begin), NONE, np.int64)
    waits = np.flatnonzero(call_classes(profile) == CallClass.SYNC)
    waits = waits[order_by([calls.start[waits], calls.thread[waits]])]
    thread, start = calls.thread[waits], calls.start[waits]
    end = calls.end[waits] + AFTER_SYNC + 1
    end[:-1] = np.where(thread[1:] == thread[:-1], np.minimum(end[:-1], start[1:]), end[:-1])
    launched = (after >= 0) & table.launched[after]
    of_gap = np.where(launched, table.thread[after], NONE)
    at = places_on_lanes(thread, start, of_gap, begin, "right") - 1
    inside = (at >= 0) & (np.append(thread, NONE)[at] == of_gap)
    inside &= begin < np.append(end, 0)[at]
    return np.where(inside, np.append(waits, NONE)[at], NONE)


def drained_by(profile: Profile, evidence: IdleEvidence) -> tuple[DrainingCall, ...]:
    """Sum what drained by the frames of calls and by what made them, most first."""
    made, calls, ns = profile.calls, evidence.drained_calls, evidence.drained_ns
    if made is None or not len(calls):
        return ()
    frame = made.frame[calls].astype(np.int64)
    made_in = frames_at(profile, made.thread[calls], made.start[calls])
    first, place = unique_rows([frame, made_in])
    sums = sum_by(place, ns, len(first))
    order = np.argsort(-sums, kind="stable")
    columns = (frame[first][order], made_in[first][order], sums[order])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(DrainingCall(*row) for row in rows)


def _in_async_copies(profile: Profile, parts: IdleParts) -> Bool:
    """Tell which parts lie in calls that copy or set memory asynchronously."""
    calls = profile.calls
    copying: Bool = parts.cause == IdleCause.COPY_CALL
    if calls is None or not copying.any():
        return np.zeros(len(copying), bool)
    frames = distinct(calls.frame[parts.call[copying]].astype(np.int64))[0]
    asynchronous = [at for at in frames.tolist() if "Async" in profile.frames[at].name]
    found = copying.copy()
    found[copying] = np.isin(calls.frame[parts.call[copying]], asynchronous)
    return found
