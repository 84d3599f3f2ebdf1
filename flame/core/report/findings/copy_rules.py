"""Judge the time in which a GPU did nothing but copy or communicate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8, Bool
from flame.core.model.calls import CallClass, call_class
from flame.core.model.profile import Profile
from flame.core.report.findings.facts import GpuFacts
from flame.core.report.findings.finding import Abstained, Evidence, Finding
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.exposure import class_times
from flame.core.units import format_count, format_ns, format_percent

EXPOSED = 0.05
"""More exposed communication than a tenth is a known sign of trouble; half of that is told."""

FEWEST_COPIES = 10


class CopiesAlone(NamedTuple):
    """Divide the time, ns, in which only copies ran: by synchronous calls, and by others."""

    synchronous: int
    others: int
    number: int


def copies_alone(facts: GpuFacts) -> CopiesAlone:
    """Divide what copies alone kept busy; ``number`` counts those of synchronous calls."""
    profile, gpu = facts.scope.profile, facts.gpu
    rows = facts.copies[_synchronous(profile, facts.copies)]
    kernels = class_times(profile, gpu.device).kernels
    alone = _alone(profile, rows, kernels, gpu)
    return CopiesAlone(alone, facts.budget.copies_alone - alone, len(rows))


def _alone(profile: Profile, rows: I8, kernels: BusyTime, gpu: Utilization) -> int:
    """How long any of ``rows`` ran, and no kernel."""
    table = profile.activities
    start, end = table.start[rows], table.start[rows] + table.duration[rows]
    with_them = BusyTime.union(
        np.concatenate([kernels.low, start]), np.concatenate([kernels.high, end])
    )
    return with_them.within_all(gpu.windows) - kernels.within_all(gpu.windows)


def _synchronous(profile: Profile, rows: I8) -> Bool:
    """Tell which copies a call started that waits for them."""
    table, frames = profile.activities, profile.frames
    used = np.unique(table.launch[rows]).tolist()
    names = {at: frames[at].name for at in used if at >= 0}
    waiting = [
        at
        for at, name in names.items()
        if call_class(name) is CallClass.COPY and "Async" not in name and "Memcpy" in name
    ]
    return np.isin(table.launch[rows], waiting) & table.launched[rows]


def copy_rules(facts: GpuFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on copies and communication to a GPU."""
    if facts.budget.copies_alone:
        alone = copies_alone(facts)
        yield _sync_copies(facts, alone)
        yield _copies_exposed(facts, alone)
    yield _communication(facts)


def _sync_copies(facts: GpuFacts, alone: CopiesAlone) -> Finding | None:
    bound = alone.synchronous + facts.idle.copies - facts.idle.async_copies
    if alone.number < FEWEST_COPIES:
        return None
    return facts.finding(
        "sync-copies",
        "Copies make the host wait",
        f"{format_ns(bound)} ({format_percent(bound, facts.window)} of the window) passed in "
        f"{format_count(alone.number)} copies by calls that wait for their end",
        "Use cudaMemcpyAsync from pinned memory; in PyTorch .to(device, non_blocking=True) and "
        "DataLoader(pin_memory=True).",
        "ten copies or more by synchronous calls, alone on the GPU or holding the host, are 1 % of "
        "the window or more",
        bound=bound,
        part="copies, alone and idle",
        evidence=(Evidence("copies", alone.number, "count"),),
    )


def _copies_exposed(facts: GpuFacts, alone: CopiesAlone) -> Finding | None:
    if alone.others < EXPOSED * facts.window:
        return None
    return facts.finding(
        "copies-exposed",
        "Copies run while nothing computes",
        f"{format_ns(alone.others)} ({format_percent(alone.others, facts.window)} of the window) "
        "passed with copies and no kernel",
        "Prefetch on a stream of its own, from pinned memory, while the step before computes.",
        "asynchronous copies alone on the GPU are 5 % of the window or more",
        bound=alone.others,
        part="copies, alone",
    )


def _communication(facts: GpuFacts) -> Finding | None:
    bound = facts.budget.exposed_communication
    if bound < EXPOSED * facts.window:
        return None
    return facts.finding(
        "comm-exposed",
        "Communication is not hidden behind compute",
        f"{format_ns(bound)} ({format_percent(bound, facts.window)} of the window) passed with "
        "communication and nothing that computes",
        "Overlap: larger gradient buckets, prefetching of parameters, a stream of its own; or find "
        "the rank that comes late.",
        "communication kernels alone on the GPU are 5 % of the window or more",
        bound=bound,
        part="communication, exposed",
    )
