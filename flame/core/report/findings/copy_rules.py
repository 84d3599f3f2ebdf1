"""Judge the time in which a GPU did nothing but copy or communicate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.report.findings.facts import GpuFacts
from flame.core.report.findings.finding import Abstained, Evidence, Finding
from flame.core.report.measures.copy_work import CopyWork, asynchronous_pageable, collect_copies
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.exposure import class_times
from flame.core.units import format_count, format_ns, format_percent

EXPOSED = 0.05
"""More exposed communication than a tenth is a known sign of trouble; half of that is told."""

FEWEST_COPIES = 10


class CopiesAlone(NamedTuple):
    """Divide the time, ns, in which only copies ran: each nanosecond is of one part.

    ``pageable`` is that of asynchronous copies of pageable memory, ``synchronous`` that of the
    others by calls that wait, of which there are ``number``.
    """

    pageable: int
    synchronous: int
    others: int
    number: int


def copies_alone(facts: GpuFacts, copies: CopyWork) -> CopiesAlone:
    """Divide what ``copies`` alone kept busy."""
    profile, gpu = facts.scope.profile, facts.gpu
    kernels = class_times(profile, gpu.device).kernels
    pageable = asynchronous_pageable(copies, profile)
    waiting = copies.waits & (profile.activities.kind[copies.row] == Kind.MEMCPY)
    first = _alone(profile, copies.row[pageable], kernels, gpu)
    both = _alone(profile, copies.row[pageable | waiting], kernels, gpu)
    whole = facts.budget.copies_alone
    return CopiesAlone(first, both - first, whole - both, int(waiting.sum()))


def _alone(profile: Profile, rows: I8, kernels: BusyTime, gpu: Utilization) -> int:
    """How long any of ``rows`` ran, and no kernel."""
    table = profile.activities
    start, end = table.start[rows], table.start[rows] + table.duration[rows]
    with_them = BusyTime.union(
        np.concatenate([kernels.low, start]), np.concatenate([kernels.high, end])
    )
    return with_them.within_all(gpu.windows) - kernels.within_all(gpu.windows)


def copy_rules(facts: GpuFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on copies and communication to a GPU."""
    if facts.budget.copies_alone:
        copies = collect_copies(facts.scope.profile, facts.copies)
        alone = copies_alone(facts, copies)
        if copies.known:
            yield _pageable(facts, alone)
        else:
            yield Abstained("pageable", "which memory was copied was not recorded")
        yield _sync_copies(facts, alone)
        yield _copies_exposed(facts, alone)
    yield _communication(facts)


def _pageable(facts: GpuFacts, alone: CopiesAlone) -> Finding | None:
    if not alone.pageable:
        return None
    bound = alone.pageable + facts.idle.async_copies
    return facts.finding(
        "pageable",
        "Asynchronous copies of pageable memory make the host wait",
        f"{format_ns(bound)} ({format_percent(bound, facts.window)} of the window) passed in "
        "copies that cannot be asynchronous: the system may move their memory meanwhile",
        "Pin the memory: tensor.pin_memory(), DataLoader(pin_memory=True), cudaHostAlloc; weights "
        "are made on the GPU at once by device='cuda'.",
        "asynchronous copies with a pageable side, alone on the GPU or in their calls, are 1 % of "
        "the window or more",
        bound=bound,
        part="copies, alone and idle",
    )


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
