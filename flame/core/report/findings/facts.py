"""Gather what the rules look at, for one GPU; each number once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I4, I8, Bool, distinct, is_any, sum_by
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import has_times
from flame.core.model.frames import COPIES, Kind
from flame.core.projection.weights import Weights
from flame.core.report.findings.finding import (
    FEWEST_ACTIVITIES,
    ON_REQUEST,
    SHORTEST_WINDOW,
    Finding,
    FindingNumber,
    severity_of,
)
from flame.core.report.findings.idle_evidence import (
    DrainingCall,
    IdleEvidence,
    drained_by,
    idle_evidence,
)
from flame.core.report.labels import innermost_ranges, shown_as
from flame.core.report.measures.activity_groups import unique_by_group
from flame.core.report.measures.launch_times import LaunchRate, launch_rates
from flame.core.report.measures.launching_calls import shorter_than_launch
from flame.core.report.scope import Scope, weights_of
from flame.core.report.sections.budget import Budget
from flame.core.report.table import Place
from flame.core.timeline.devices import timed_rows
from flame.core.timeline.exposure import WorkClass, work_classes
from flame.core.units import format_counted, format_ns, format_percent

NANOSECONDS = 1_000_000_000


@kept
def _innermost_ranges(scope: Scope) -> I4:
    return innermost_ranges(scope.profile)


@dataclass(frozen=True, eq=False)
class RuleFacts:
    """Hold the budget of a GPU and, when they are asked for, other facts that rules share."""

    scope: Scope
    budget: Budget

    @property
    def gpu(self) -> Utilization:
        """The GPU and its window."""
        return self.budget.gpu

    @property
    def window(self) -> int:
        """Length of the window, ns."""
        return self.budget.window

    def tells(self, id: str) -> bool:
        """Whether the finding ``id`` is to be told: some only when all are asked for."""
        return self.scope.all_findings or id not in ON_REQUEST

    @cached_property
    def idle(self) -> IdleEvidence:
        """The idle time by what it is evidence of."""
        return idle_evidence(self.scope, self.gpu)

    @cached_property
    def drained_by(self) -> tuple[DrainingCall, ...]:
        """How much idle time passed after which blocking calls; lays out what the host ran."""
        return drained_by(self.scope.profile, self.idle)

    # What ran

    @cached_property
    def rows(self) -> I8:
        """What ran on the GPU in its window, i8[n] rows of `Profile.activities` with times."""
        table, windows = self.scope.profile.activities, self.gpu.windows
        rows = timed_rows(self.scope.profile, self.gpu.device)
        if not self.scope.selection.where:
            return rows
        start = table.start[rows]
        inside = windows.meets(start, start + table.duration[rows])
        return rows if inside.all() else rows[inside]

    def of_kinds(self, *kinds: Kind) -> I8:
        """Those of ``rows`` that are of some kinds."""
        groups = self.scope.profile.activities.groups
        of_group = is_any(groups.kind, kinds)
        of_gpu = of_group[groups.device == self.gpu.device]
        if of_gpu.all():
            return self.rows
        return self.rows[of_group[groups.of_row[self.rows]]] if of_gpu.any() else self.rows[:0]

    @cached_property
    def kernels(self) -> I8:
        """Those of ``rows`` that are kernels."""
        return self.of_kinds(Kind.KERNEL)

    @cached_property
    def copies(self) -> I8:
        """Those of ``rows`` that are copies or sets."""
        return self.of_kinds(*COPIES)

    @cached_property
    def computing(self) -> I8:
        """Those of ``rows`` that pass all filters and compute: no copies, no communication."""
        table, classes = self.scope.profile.activities, work_classes(self.scope.profile)
        rows = self.scope.rows
        mine = (table.device[rows] == self.gpu.device) & (classes[rows] == WorkClass.COMPUTE)
        timed: I8 = rows[mine & has_times(table)[rows]]
        return timed

    @cached_property
    def computed(self) -> I8:
        """The time of ``computing``, i8[groups of activities] in ns."""
        table, rows = self.scope.profile.activities, self.computing
        return sum_by(table.groups.of_row[rows], table.duration[rows], len(table.groups))

    @cached_property
    def gpu_time(self) -> int:
        """The sum of what ran on the GPU and passes all filters, ns."""
        groups = self.scope.profile.activities.groups
        return int(self.scope.own_weights.value[groups.device == self.gpu.device].sum())

    def heaviest(self, rows: I8) -> Place | None:
        """Get the place of what most of the time of ``rows`` is of, where it passes all filters."""
        if not (name := self.heaviest_name(rows)):
            return None
        return Place(("kernel",), (name,))

    def heaviest_name(self, rows: I8) -> str:
        """Name what most of the time of ``rows`` is of, as it is shown; empty of none."""
        return self.heaviest_of(rows)[0]

    def heaviest_of(self, rows: I8) -> tuple[str, int]:
        """Name what most of the time of ``rows`` that pass is of, and that time, ns."""
        table, labels = self.scope.profile.activities, self.scope.labels
        if len(self.scope.rows) < len(table):
            rows = rows[self._passing[rows]]
        if not len(rows):
            return "", 0
        weights = self._weights(rows)
        groups = np.flatnonzero(weights.activities)
        frames, place = distinct(labels.shown[table.groups.frame[groups]].astype(np.int64))
        sums = sum_by(place, weights.value[groups], len(frames))
        most = int(np.argmax(sums))
        return labels.text[int(frames[most])], int(sums[most])

    def _weights(self, rows: I8) -> Weights:
        """Weigh ``rows`` by group; where all kernels pass, their weights are known already."""
        table, scope = self.scope.profile.activities, self.scope
        is_all = len(scope.rows) == len(table) and not scope.selection.where
        if rows is not self.kernels or not is_all or not has_times(table).all():
            return weights_of(table, rows)
        groups = table.groups
        mine = (groups.device == self.gpu.device) & (groups.kind == Kind.KERNEL)
        return Weights(*(np.where(mine, column, 0) for column in scope.own_weights))

    def launched_in(self, rows: I8) -> str:
        """Name the innermost range below which half of the time of ``rows`` was launched, or more.

        Empty where there is none.
        """
        profile, labels = self.scope.profile, self.scope.labels
        table = profile.activities
        shown = shown_as(labels, _innermost_ranges(self.scope))
        some, place = unique_by_group(table, rows, [shown])
        frames = shown[table.groups.of_row[rows[some]]]
        sums = sum_by(place, table.duration[rows], len(frames))
        most = int(np.argmax(sums)) if len(frames) else -1
        told = most >= 0 and frames[most] >= 0 and 2 * sums[most] >= sums.sum()
        return labels.text[int(frames[most])] if told else ""

    @cached_property
    def _passing(self) -> Bool:
        """Which activities pass all filters, bool[n]."""
        marks = np.zeros(len(self.scope.profile.activities), bool)
        marks[self.scope.rows] = True
        return marks

    # How it was launched

    @cached_property
    def launches_known(self) -> float:
        """The part of the kernels whose launch was recorded, 0..1."""
        launched = self.scope.profile.activities.launched
        if not len(self.kernels) or launched.all():
            return float(len(self.kernels) > 0)
        return float(launched[self.kernels].mean())

    @cached_property
    def shorter_than_launch(self) -> float:
        """The part of the launched kernels that take less time than their launch call, 0..1."""
        profile, rows = self.scope.profile, self.kernels
        if not profile.activities.launched.all():
            rows = rows[profile.activities.launched[rows]]
        return float(shorter_than_launch(profile)[rows].mean()) if len(rows) else 0.0

    @property
    def kernels_per_second(self) -> float:
        """Kernels per second of the window."""
        return len(self.kernels) * NANOSECONDS / self.window if self.window else 0.0

    @property
    def rate(self) -> LaunchRate | None:
        """The rate of the kernels that pass all filters; None without any."""
        rates = launch_rates(self.scope)
        return next((one for one in rates if one.gpu.device == self.gpu.device), None)

    # What is said of it

    def share(self, ns: int) -> str:
        """Write an amount of time, and what of the window it is."""
        return f"{format_ns(ns)} ({format_percent(ns, self.window)} of the window)"

    def is_enough(self, bound: int) -> bool:
        """Whether ``bound`` ns of the window make a finding.

        Where all findings are asked for what is below a hundredth does, too, as information.
        """
        known = self.scope.all_findings or severity_of(bound, self.window) is not None
        return bound > 0 and known

    def finding(
        self,
        id: str,
        title: str,
        claim: str,
        rule: str,
        *,
        bound: int,
        part: str,
        evidence: tuple[FindingNumber, ...] = (),
        place: Place | None = None,
        advice: str = "",
        caution: str = "",
    ) -> Finding | None:
        """Make a finding of what ``bound`` ns of the window are; None where that is too little."""
        if not self.is_enough(bound):
            return None
        severity = severity_of(bound, self.window)
        if len(self.rows) < FEWEST_ACTIVITIES or self.window < SHORTEST_WINDOW:
            severity = "info"
            caution = "; ".join(filter(None, (self._too_little, caution)))
        known = (FindingNumber("at most", bound, "ns"), *evidence)
        about = (title, claim, rule, known, bound, part, place, advice, caution)
        return Finding(id, self.gpu.device, severity or "info", *about)

    @property
    def _too_little(self) -> str:
        """Why shares say little of a small example."""
        activities = format_counted(len(self.rows), "activity", "activities")
        return f"{activities} in {format_ns(self.window)}: too little to judge"

    def information(
        self,
        id: str,
        title: str,
        claim: str,
        rule: str,
        evidence: tuple[FindingNumber, ...] = (),
        place: Place | None = None,
        *,
        caution: str = "",
    ) -> Finding:
        """Make a finding that says nothing of time to save."""
        about = (title, claim, rule, evidence)
        return Finding(id, self.gpu.device, "info", *about, place=place, caution=caution)
