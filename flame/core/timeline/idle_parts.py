"""Cut the time in which a GPU ran nothing by what its next work was waiting for."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, U1, Column, order_by, places_in, sum_by, unique_rows
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.calls import CallClass
from flame.core.model.calls import IdleCause as IdleCause
from flame.core.model.meta import Overheads
from flame.core.model.profile import Profile
from flame.core.names.overheads import holds_process, is_of_profiler
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.call_classes import call_classes
from flame.core.timeline.devices import DeviceTime, device_times, timed_rows
from flame.core.timeline.lane_intervals import LaneIntervals, Pieces
from flame.core.timeline.thread_states.holdups import find_holdups, split

CAUSE_OF_CALLS = {
    CallClass.SYNC: IdleCause.SYNC,
    CallClass.ALLOC: IdleCause.ALLOC,
    CallClass.COPY: IdleCause.COPY_CALL,
    CallClass.LAUNCH: IdleCause.LAUNCH_CALL,
    CallClass.OTHER: IdleCause.OTHER_CALL,
}
"""What a part of a gap passed with, by the class of the call that was open."""

_CAUSE_OF_CLASS = np.zeros(max(CallClass) + 1, np.uint8)
_CAUSE_OF_CLASS[list(CAUSE_OF_CALLS)] = list(CAUSE_OF_CALLS.values())
_NO_CALL = 0
_CAUSE_OF_CLASS[_NO_CALL] = IdleCause.HOST_CODE


@dataclass(frozen=True, eq=False)
class IdleParts:
    """Hold when a GPU ran nothing, from the first recorded event to the last, and why.

    Gaps are in order of time, with what is before the first activity and after the last: ``begin``,
    ``end`` (exclusive) i8[g] in ns on the trace's clock; ``after`` i8[g] is the row of the activity
    that ended it, of several that began together the one launched last, -1 without any.

    Parts, by gap and time, add up to the gaps: ``gap`` i4[n] is the place of its gap, ``low``,
    ``high`` i8[n] its times, ``cause`` u1[n], and ``call`` i4[n] the piece of `Profile.calls` that
    was open, -1 without one.
    """

    device: int
    begin: I8
    end: I8
    after: I8
    gap: I4
    low: I8
    high: I8
    cause: U1
    call: I4

    def within(self, windows: BusyTime) -> I8:
        """Measure what of each part lies in ``windows`` (trace's clock), i8[n] in ns."""
        return windows.sums_until(self.high) - windows.sums_until(self.low)

    def sums(self, windows: BusyTime) -> I8:
        """Sum what lies in ``windows`` by cause, i8[causes] in ns."""
        return sum_by(self.cause, self.within(windows), len(IdleCause))


def told_causes(profile: Profile) -> list[IdleCause]:
    """List the causes that ``profile`` can tell: not all have garbage collection and the GIL."""
    held = [cause for cause, _ in find_holdups(profile).known]
    return [*(each for each in IdleCause if each <= IdleCause.HOST_CODE), *held]


@kept
def idle_parts(profile: Profile) -> tuple[IdleParts, ...]:
    """Cut the idle time of each GPU of ``profile``; kept as long as the profile is."""
    calls = profile.calls
    return tuple(_parts(profile, each, calls) for each in device_times(profile))


def _parts(profile: Profile, device: DeviceTime, calls: ThreadPieces | None) -> IdleParts:
    begin = np.append(profile.rows_begin, device.busy.high + profile.rows_begin)
    end = np.append(device.busy.low + profile.rows_begin, profile.end)
    begin, end = begin[end > begin], end[end > begin]
    after = _began(profile, device.device, end)
    held, rest = _by_profiler(profile, after, begin, end)
    found = [(held, _all(IdleCause.PROFILER, held)), *_by_launch(profile, rest, after, calls)]
    cause = np.concatenate([cause for _, cause in found])
    gap, call, low, high = map(np.concatenate, zip(*(one for one, _ in found), strict=True))
    del held, rest, found  # of half a million gaps as much memory as all that is kept
    order = order_by([low, gap])
    gap, call = (column.astype(np.int32)[order] for column in (gap, call))
    low, high, cause = low[order], high[order], cause[order]
    return IdleParts(device.device, begin, end, after, gap, low, high, cause, call)


def _began(profile: Profile, device: int, times: I8) -> I8:
    """The activity of ``device`` that began at each of ``times``, which ascend.

    Of several it is the one launched last, -1 without any.
    """
    table = profile.activities
    found = np.full(len(times), NONE, np.int64)
    if not len(times):
        return found
    rows = timed_rows(profile, device)
    place = np.minimum(places_in(times, table.start[rows]), len(times) - 1)
    ends = table.start[rows] == times[place]
    rows, place = rows[ends], place[ends]
    found[place] = rows
    if np.count_nonzero(found >= 0) == len(rows):
        return found
    several = (np.bincount(place, minlength=1) > 1)[place]
    rows, place = rows[several], place[several]
    # Of what is written to one place the last stays.
    order = order_by([table.launch_start[rows], table.launched[rows]])
    found[place[order]] = rows[order]
    return found


def _by_profiler(profile: Profile, after: I8, begin: I8, end: I8) -> tuple[Pieces, Pieces]:
    """Cut gaps by what the profiler held up, of the process, or thread, that launched next.

    (held, rest); the source of a piece is its gap.
    """
    table, gaps = profile.activities, np.arange(len(begin))
    whole = Pieces(gaps, np.full(len(gaps), NONE, np.int64), begin, end)
    if profile.overheads is None or not len(profile.overheads):
        return whole.where(gaps < 0), whole
    some = after >= 0
    process = np.where(some, table.process[after], NONE)
    thread = np.where(some & table.launched[after], table.thread[after], NONE)
    first, owner = unique_rows([process, thread])
    held = _held_up(profile.overheads, process[first], thread[first]).cut(owner, begin, end)
    pieces = held._replace(by=np.full(len(held.by), NONE, np.int64))
    return pieces.where(held.by >= 0), pieces.where(held.by < 0)


def _held_up(overheads: Overheads, process: Column, thread: Column) -> LaneIntervals:
    """When each of some threads, by place, was held up by the profiler."""
    own = np.array([is_of_profiler(name) for name in overheads.names], bool)[overheads.name]
    wide = np.array([holds_process(name) for name in overheads.names], bool)[overheads.name]
    lanes, rows = [], []
    for at, (of_process, of_thread) in enumerate(zip(process, thread, strict=True)):
        fits = wide & (overheads.process == of_process) & (of_process >= 0)
        fits |= ~wide & (overheads.thread == of_thread) & (of_thread >= 0)
        rows.append(np.flatnonzero(fits & own))
        lanes.append(np.full(len(rows[-1]), at))
    lane, row = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (lanes, rows))
    return LaneIntervals.union(lane, overheads.start[row], overheads.end[row])


def _by_launch(
    profile: Profile, whole: Pieces, after: I8, calls: ThreadPieces | None
) -> list[tuple[Pieces, U1]]:
    """Cut ``whole`` gaps at the beginning and the end of the call that launched what is after."""
    table = profile.activities
    launched = ((after >= 0) & table.launched[after])[whole.source]
    known = whole.where(launched)
    row = after[known.source]
    begin = np.clip(table.launch_start[row], known.begin, known.end)
    end = np.clip(table.launch_end[row], begin, known.end)
    before, _ = _some(known._replace(end=begin), IdleCause.HOST_CODE)
    return [
        _some(whole.where(~launched), IdleCause.UNKNOWN),
        _some(known._replace(begin=end), IdleCause.AFTER_LAUNCH),
        _some(known._replace(begin=begin, end=end), IdleCause.IN_LAUNCH),
        *_before_launch(profile, before, table.thread[after].astype(np.int64), calls),
    ]


def _before_launch(
    profile: Profile, before: Pieces, thread: I8, calls: ThreadPieces | None
) -> list[tuple[Pieces, U1]]:
    """Cut what was ``before`` a launch by what the ``thread`` of each gap did then."""
    found, cause = _by_calls(profile, before, thread[before.source], calls)
    known = find_holdups(profile).known
    if not known:
        return [(found, cause)]
    in_call = cause != IdleCause.HOST_CODE
    parts, rest = [(found.where(in_call), cause[in_call])], found.where(~in_call)
    for state, times in known:
        inside, rest = split(rest, thread[rest.source], times)
        parts.append((inside, _all(state, inside)))
    return [*parts, (rest, _all(IdleCause.HOST_CODE, rest))]


def _by_calls(
    profile: Profile, before: Pieces, thread: I8, calls: ThreadPieces | None
) -> tuple[Pieces, U1]:
    """Cut what was ``before`` a launch by the calls that its ``thread`` made then."""
    if calls is None:
        return before, _all(IdleCause.HOST_CODE, before)
    made = LaneIntervals(calls.thread, calls.start, calls.end)
    found = made.cut(thread, before.begin, before.end)
    by = np.append(call_classes(profile), np.uint8(_NO_CALL))[found.by]
    cause = _CAUSE_OF_CLASS[by]
    return found._replace(source=before.source[found.source]), cause


def _some(pieces: Pieces, cause: IdleCause) -> tuple[Pieces, U1]:
    """Those of ``pieces`` that are not empty, and their cause."""
    some = pieces.where(pieces.end > pieces.begin)
    return some, _all(cause, some)


def _all(cause: IdleCause, pieces: Pieces) -> U1:
    return np.full(len(pieces.source), cause, np.uint8)
