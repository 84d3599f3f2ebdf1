"""Gather what the rules look at, for one GPU; each number once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8
from flame.core.model.activities import has_times
from flame.core.model.frames import COPIES, Kind
from flame.core.report.findings.finding import (
    FEWEST_ACTIVITIES,
    SHORTEST_WINDOW,
    Evidence,
    Finding,
    severity_of,
)
from flame.core.report.findings.idle_evidence import IdleEvidence, idle_evidence
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget
from flame.core.report.table import Place

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class GpuFacts:
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

    @cached_property
    def idle(self) -> IdleEvidence:
        """The idle time by what it is evidence of."""
        return idle_evidence(self.scope, self.gpu)

    @cached_property
    def rows(self) -> I8:
        """What ran on the GPU and has times, i8[n] rows of `Profile.activities`."""
        table = self.scope.profile.activities
        return np.flatnonzero((table.device == self.gpu.device) & has_times(table))

    def of_kinds(self, *kinds: Kind) -> I8:
        """Those of ``rows`` that are of some kinds."""
        return self.rows[np.isin(self.scope.profile.activities.kind[self.rows], kinds)]

    @cached_property
    def kernels(self) -> I8:
        """Those of ``rows`` that are kernels."""
        return self.of_kinds(Kind.KERNEL)

    @cached_property
    def copies(self) -> I8:
        """Those of ``rows`` that are copies or sets."""
        return self.of_kinds(*COPIES)

    @cached_property
    def launches_known(self) -> float:
        """The part of the kernels whose launch was recorded, 0..1."""
        launched = self.scope.profile.activities.launched[self.kernels]
        return float(launched.mean()) if len(launched) else 0.0

    @cached_property
    def shorter_than_launch(self) -> float:
        """The part of the launched kernels that take less time than their launch call, 0..1."""
        table, rows = self.scope.profile.activities, self.kernels
        rows = rows[table.launched[rows]]
        calls = table.launch_end[rows] - table.launch_start[rows]
        return float((table.duration[rows] < calls).mean()) if len(rows) else 0.0

    @property
    def kernels_per_second(self) -> float:
        """Kernels per second of the window."""
        return len(self.kernels) * NANOSECONDS / self.window if self.window else 0.0

    def finding(
        self,
        id: str,
        title: str,
        claim: str,
        advice: str,
        rule: str,
        *,
        bound: int,
        part: str,
        evidence: tuple[Evidence, ...] = (),
        place: Place | None = None,
    ) -> Finding | None:
        """Make a finding of what ``bound`` ns of the window are; None where that is too little."""
        severity = severity_of(bound, self.window)
        if severity is None or not bound:
            return None
        if len(self.rows) < FEWEST_ACTIVITIES or self.window < SHORTEST_WINDOW:
            severity = "info"
        return Finding(
            id,
            self.gpu.device,
            severity,
            title,
            claim,
            advice,
            rule,
            (Evidence("at most", bound, "ns"), *evidence),
            bound,
            part,
            place,
        )
