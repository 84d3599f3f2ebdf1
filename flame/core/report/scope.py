"""Say what a report is about: which activities, and which time of which GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from flame.core.analysis.node_activities import rows_in_tree
from flame.core.analysis.utilization import Utilization, utilizations
from flame.core.columns import I8, Bool, Column, is_any, run_starts, sum_by, taken
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities, ThreadPieces, off_gpu_columns, repeat
from flame.core.model.frames import Kind
from flame.core.model.meta import process_of_threads
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder
from flame.core.model.threads.events import EventThread, ThreadEvents
from flame.core.model.tree import StackTree
from flame.core.names.phases import Phase
from flame.core.projection.filters import Pids, Ranks, RowFilter, Tids
from flame.core.projection.labels import Labels
from flame.core.projection.number_folds import labels_of
from flame.core.projection.project import project, shown_profile
from flame.core.projection.selection import Selection
from flame.core.projection.weights import Weights
from flame.core.report.host_calls import NO_CALLS, HostCalls, calls_left_out, collect_calls
from flame.core.report.range_instances import RangeInstances
from flame.core.timeline.idle_parts import IdleParts, idle_parts

DETAILS = ("config", "pace", "row", "path")
"""Tables that are there only when they are asked for."""

_WHO = Ranks | Pids | Tids
"""Filters that choose threads."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Hold a trace and the selection of it.

    Tables by name are of ``rows``, the activities that pass all filters. How busy a GPU was is of
    all that ran on it, in the time that ``gpus`` have: names and stacks choose nothing of that.
    ``details`` are of `DETAILS`: tables that are long, and wanted all the same. ``links`` is what
    links can do that copies go over, bytes per second by direction. With ``all_findings`` nothing
    that a rule says is left out. ``dtype`` is the type of tensors of which the trace tells none.
    """

    profile: Profile
    selection: Selection = field(default_factory=Selection)
    details: frozenset[str] = frozenset()
    links: Mapping[str, int] = field(default_factory=dict)
    all_findings: bool = False
    dtype: str = ""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that the user has named; none where he has not."""
        return self.profile.phases.rules if self.profile.phases else ()

    @cached_property
    def tree(self) -> StackTree:
        """The GPU time that passes, as a tree. Raises NoMatchError where nothing does."""
        return project(self.profile, replace(self.selection, metric="gpu"))

    @cached_property
    def shown(self) -> Profile:
        """The trace with the stacks that the selection shows; its activities are the same."""
        return shown_profile(self.profile, self.selection)

    @cached_property
    def labels(self) -> Labels:
        """What frames are called."""
        return labels_of(self.shown, self.selection.naming, self.shown.activities)

    @cached_property
    def rows(self) -> I8:
        """The activities that pass, i8[n] rows of `Profile.activities`; none of stacks."""
        if self.profile.resolved:
            return np.zeros(0, np.int64)
        return rows_in_tree(self.shown, self.tree, self.selection.where)

    @cached_property
    def weights(self) -> Weights:
        """The GPU time and the number of the activities that pass, by group of ``shown``."""
        return weights_of(self.shown.activities, self.rows)

    @cached_property
    def own_weights(self) -> Weights:
        """The same by group of ``profile``."""
        table = self.profile.activities
        if table.groups.of_row is self.shown.activities.groups.of_row:
            return self.weights
        return weights_of(table, self.rows)

    def rows_of(self, *kinds: Kind) -> I8:
        """The activities of these kinds that pass, i8 rows of `Profile.activities`."""
        if kinds not in self._of_kinds:
            wanted = is_any(taken(self.profile.activities.kind, self.rows), kinds)
            self._of_kinds[kinds] = self.rows if wanted.all() else self.rows[wanted]
        return self._of_kinds[kinds]

    @cached_property
    def _of_kinds(self) -> dict[tuple[Kind, ...], I8]:
        return {}

    def on_host(self, pieces: ThreadPieces) -> ThreadPieces:
        """Choose what threads did: by thread, process and file, and by when it began."""
        passing = self.passes(pieces.thread, pieces.start)
        return pieces if passing.all() else pieces.where(passing)

    def passes(self, thread: Column, start: I8) -> Bool:
        """Tell what passes of what threads (-1: unknown) did from ``start`` on, bool[n]."""
        if not self.selection.where:
            return np.ones(len(start), bool)
        threads = _of_threads(self.profile)
        process = process_of_threads(self.profile.threads)
        passing = self.in_time(process[thread], start)
        for one in self.selection.where:
            if isinstance(one, _WHO):
                chosen = one.groups(self.profile, threads)[threads.groups.of_row]
                passing &= np.append(chosen, False)[thread]
        return passing

    def in_time(self, process: Column, start: I8) -> Bool:
        """Tell what filters by time and step leave of what processes did, bool[n]."""
        rows = host_rows(len(start), {"process": process.astype(np.int32), "start": start})
        passing = np.ones(len(start), bool)
        for one in self.selection.where:
            if isinstance(one, RowFilter):
                passing &= one.rows(self.profile, rows)
        return passing

    @cached_property
    def events(self) -> ThreadEvents | None:
        """What the chosen threads recorded besides ranges that nest; None where that is nothing."""
        events = self.profile.events
        if events is None:
            return None
        chosen = np.array([self._chooses(thread) for thread in events.threads], bool)
        return events if chosen.all() else events.where(chosen[events.thread])

    def _chooses(self, thread: EventThread) -> bool:
        processes, sources = self.profile.processes, self.profile.sources
        for one in self.selection.where:
            if isinstance(one, Pids) and thread.pid not in one.ids:
                return False
            if isinstance(one, Tids) and thread.tid not in one.ids:
                return False
            if isinstance(one, Ranks):
                known = thread.process >= 0
                if not known or not one.fits(sources[processes[thread.process].source]):
                    return False
        return True

    @cached_property
    def calls(self) -> HostCalls | None:
        """The outermost API calls; None where the trace has none."""
        calls = self.profile.calls
        return collect_calls(self.profile, self.labels, self.on_host(calls)) if calls else None

    @cached_property
    def ranges(self) -> RangeInstances | None:
        """The ranges of threads; None where the trace has none."""
        ranges = self.profile.ranges
        return RangeInstances.of(self.on_host(ranges)) if ranges else None

    @property
    def lacks_calls(self) -> str:
        """Why the trace cannot tell of calls that wait or allocate; empty where it can."""
        if not self.profile.calls:
            return NO_CALLS
        return calls_left_out(self.profile)

    @cached_property
    def thread_times(self) -> I8:
        """Time of each thread from its first call, range or function to its last, i8[n] in ns."""
        first, last = self.thread_spans
        return np.where(last > first, last - np.minimum(first, last), 0)

    @cached_property
    def thread_spans(self) -> tuple[I8, I8]:
        """When each thread began its first call, range or function, and ended its last, i8[n].

        Of threads without any the first is after the last.
        """
        size, limits = len(self.profile.threads), np.iinfo(np.int64)
        first, last = np.full(size, limits.max), np.full(size, limits.min)
        for pieces in (self.profile.calls, self.profile.ranges, self.profile.functions):
            if pieces:
                chosen = self.on_host(pieces)
                begins = run_starts(chosen.thread)  # they are ordered by thread
                thread = chosen.thread[begins]
                if len(begins):
                    low = np.minimum.reduceat(chosen.start, begins)
                    high = np.maximum.reduceat(chosen.end, begins)
                    first[thread] = np.minimum(first[thread], low)
                    last[thread] = np.maximum(last[thread], high)
        return first, last

    @cached_property
    def gpus(self) -> tuple[Utilization, ...]:
        """The GPUs and their windows; none of stacks without times."""
        return utilizations(self.profile, self.selection.where)

    def idle(self, gpu: Utilization) -> IdleParts:
        """Get the idle time of a GPU by cause, of all the trace."""
        return next(each for each in idle_parts(self.profile) if each.device == gpu.device)

    def thread(self, thread: int) -> dict[str, int | None]:
        """Name a thread in JSON; null where it is not known."""
        if thread < 0:
            return {"pid": None, "tid": None}
        one = self.profile.threads[thread]
        pid = self.profile.processes[one.process].pid if one.process >= 0 else None
        return {"pid": pid, "tid": one.tid}

    def device(self, gpu: Utilization) -> dict[str, object]:
        """Name a GPU in JSON: its number and its file, null where they are not known."""
        if gpu.device < 0:
            return {"id": None, "source": None}
        device = self.profile.devices[gpu.device]
        return {"id": device.id, "source": device.source}


def weights_of(table: Activities, rows: I8) -> Weights:
    """Sum the GPU time and the number of ``rows`` of ``table`` by group."""
    group, size = taken(table.groups.of_row, rows), len(table.groups)
    count = np.bincount(group, minlength=size).astype(np.int64)
    return Weights(sum_by(group, taken(table.duration, rows), size), count)


def _of_threads(profile: Profile) -> Activities:
    """A table of what filters choose threads by, with a row for each thread."""
    process = [thread.process for thread in profile.threads]
    size = len(process)
    columns: dict[str, Column] = {
        "process": np.array(process, np.int32),
        "thread": np.arange(size, dtype=np.int32),
        "start": np.zeros(size, np.int64),
    }
    return host_rows(size, columns)


def host_rows(size: int, columns: dict[str, Column]) -> Activities:
    """Make a table of what filters choose by: ``columns`` are ``process``, ``start`` or more."""
    made = {
        "kind": repeat(np.uint8(Kind.LAUNCH), size),
        "duration": repeat(np.int64(0), size),
        **columns,
    }
    return Activities(**off_gpu_columns(size) | made, stacks=StackBuilder().build())
