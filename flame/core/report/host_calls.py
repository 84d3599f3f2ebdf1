"""Collect the API calls of a scope: the outermost ones, by name, class and thread."""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I4, I8, U1, Bool, Column, distinct, first_by_group, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.calls import CallClass
from flame.core.model.profile import Profile
from flame.core.projection.labels import Labels
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.call_classes import call_classes
from flame.core.timeline.devices import device_times

NO_CALLS = "no API call was recorded"
RECORD_CALLS = "flame record, nsys (--trace=cuda) or the PyTorch profiler records them"


class CallsByName(NamedTuple):
    """Sum up calls by the frame that they are ``shown`` as, i8[shown]; ``place`` i4[n] of each."""

    shown: I8
    place: I4
    times: Distributions


@dataclass(frozen=True, eq=False)
class HostCalls:
    """Hold the outermost API calls of a scope, none within another, by thread and time.

    ``thread``, ``frame`` i4[n]; ``start``, ``end`` (exclusive) i8[n] in ns, none is empty; ``kind``
    u1[n] is its `CallClass`.
    """

    profile: Profile
    labels: Labels
    thread: I4
    frame: I4
    start: I8
    end: I8
    kind: U1

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def frames(self) -> I4:
        """The different frames, i4[frames]."""
        return unique(self.frame)

    @property
    def shown(self) -> I8:
        """The frame that each is shown as, i8[n]."""
        return self.labels.shown[self.frame].astype(np.int64)

    @property
    def length(self) -> I8:
        """How long each lasted, i8[n] in ns."""
        return self.end - self.start

    @cached_property
    def by_name(self) -> CallsByName:
        """Their times by what they are shown as."""
        shown = unique(self.labels.shown[self.frames].astype(np.int64))
        place = np.searchsorted(shown, self.labels.shown).astype(np.int32)[self.frame]
        return CallsByName(shown, place, distributions(place, self.length, len(shown)))

    def where(self, mask: Bool) -> HostCalls:
        """Choose calls."""
        rows = np.flatnonzero(mask)
        return HostCalls(
            self.profile,
            self.labels,
            self.thread[rows],
            self.frame[rows],
            self.start[rows],
            self.end[rows],
            self.kind[rows],
        )

    def named(self, pattern: re.Pattern[str]) -> Bool:
        """Mark the calls of which all of the name fits ``pattern``, bool[n]."""
        frames = self.profile.frames
        marks = np.zeros(len(frames), bool)
        for at in self.frames.tolist():
            marks[at] = bool(pattern.fullmatch(frames[at].name))
        return marks[self.frame]

    def of_class(self, kind: CallClass) -> HostCalls:
        """Choose the calls of a class."""
        return self.where(self.kind == kind)

    def names(self, shown: I8) -> list[str]:
        """List what the calls are called that are ``shown`` as these frames."""
        return [self.labels.text[frame] for frame in shown.tolist()]

    @cached_property
    def process(self) -> I4:
        """The process of each, i4[n]; -1 unknown."""
        of_thread = [thread.process for thread in self.profile.threads]
        found: I4 = np.array([*of_thread, NONE], np.int32)[self.thread]
        return found

    @cached_property
    def while_busy(self) -> I8:
        """How long any GPU of its process ran something during each, i8[n] in ns."""
        profile, found = self.profile, np.zeros(len(self), np.int64)
        groups, origin = profile.activities.groups, profile.rows_begin
        for process in distinct(self.process.astype(np.int64))[0].tolist():
            used = distinct(groups.device[groups.process == process].astype(np.int64))[0]
            rows = np.flatnonzero(self.process == process)
            busy = _busy_on(profile, used)
            until = (busy.sums_until(time[rows] - origin) for time in (self.end, self.start))
            found[rows] = next(until) - next(until)
        return found

    def longest(self, group: Column, groups: int) -> I8:
        """The place of the longest call of each ``group`` (0 to ``groups`` - 1), i8[groups].

        Of equals it is the first; -1 of no calls.
        """
        return first_by_group(group, self.start - self.end, self.start, groups, last=True)


def _busy_on(profile: Profile, devices: I8) -> BusyTime:
    """When any of ``devices`` ran anything, in ns since ``Profile.rows_begin``."""
    busy = [each.busy for each in device_times(profile) if each.device in devices]
    if len(busy) == 1:
        return busy[0]
    none = np.zeros(0, np.int64)
    low = np.concatenate([none, *(each.low for each in busy)])
    return BusyTime.union(low, np.concatenate([none, *(each.high for each in busy)]))


def calls_left_out(profile: Profile) -> str:
    """Say why a trace has no calls that wait or allocate; empty where it has all there were."""
    reasons = (source.meta.options.get("calls", "") for source in profile.sources)
    reason = next(filter(None, reasons), "")
    return f"launches alone were recorded ({reason})" if reason else ""


def collect_calls(profile: Profile, labels: Labels, calls: ThreadPieces) -> HostCalls:
    """Collect ``calls`` of ``profile``, which are called as ``labels`` say."""
    own = calls is profile.calls
    kind = call_classes(profile) if own else profile.frames.call_classes(calls.frame)
    columns = (calls.thread, calls.frame, calls.start, calls.end, kind)
    return HostCalls(profile, labels, *columns)
