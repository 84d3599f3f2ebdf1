"""Judge the time in which a GPU did nothing but copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.utilization import Utilization
from flame.core.columns import I8
from flame.core.model.frames import Kind
from flame.core.model.launches import UNKNOWN
from flame.core.model.profile import Profile
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.measures.copy_work import CopyWork, asynchronous_pageable, collect_copies
from flame.core.timeline.busy_time import BusyTime
from flame.core.timeline.exposure import class_times
from flame.core.units import format_bytes, format_counted

EXPOSED = 0.05

FEWEST_COPIES = 10

_LARGE = 1_000_000
"""Bytes from which on a rate says something of the link."""


class CopiesAlone(NamedTuple):
    """Divide the time, ns, in which only copies ran: each nanosecond is of one part.

    ``pageable`` is that of asynchronous copies of pageable memory, ``synchronous`` that of the
    others by calls that wait. The rows of `Profile.activities` of each kind are beside it, i8.
    """

    pageable: int
    pageable_rows: I8
    synchronous: int
    synchronous_rows: I8
    others: int
    other_rows: I8


def copies_alone(facts: RuleFacts, copies: CopyWork) -> CopiesAlone:
    """Divide what ``copies`` alone kept busy."""
    profile, gpu = facts.scope.profile, facts.gpu
    kernels = class_times(profile, gpu.device).kernels
    pageable = asynchronous_pageable(copies, profile)
    waiting = copies.waits & (profile.activities.kind[copies.row] == Kind.MEMCPY)
    either = pageable | waiting
    first = _alone(profile, copies.row[pageable], kernels, gpu)
    both = _alone(profile, copies.row[either], kernels, gpu)
    return CopiesAlone(
        pageable=first,
        pageable_rows=copies.row[pageable],
        synchronous=both - first,
        synchronous_rows=copies.row[waiting],
        others=facts.budget.copies_alone - both,
        other_rows=copies.row[~either],
    )


def _alone(profile: Profile, rows: I8, kernels: BusyTime, gpu: Utilization) -> int:
    """How long any of ``rows`` ran, and no kernel."""
    table = profile.activities
    start, end = table.start[rows], table.start[rows] + table.duration[rows]
    with_them = BusyTime.union(
        np.concatenate([kernels.low, start]), np.concatenate([kernels.high, end])
    )
    return with_them.within_all(gpu.windows) - kernels.within_all(gpu.windows)


def copy_rules(facts: RuleFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on copies to a GPU."""
    if facts.budget.copies_alone:
        copies = collect_copies(facts.scope.profile, facts.copies)
        alone = copies_alone(facts, copies)
        if copies.known:
            yield _pageable(facts, alone)
        else:
            yield Abstained("pageable", "which memory was copied was not recorded")
        yield _sync_copies(facts, alone)
        yield _copies_exposed(facts, alone)


def _pageable(facts: RuleFacts, alone: CopiesAlone) -> Finding | None:
    if not alone.pageable:
        return None
    bound = alone.pageable + facts.idle.async_copies
    return facts.finding(
        "pageable",
        "Asynchronous copies of pageable memory make the host wait",
        f"{facts.share(bound)} passed in {_written(facts, alone.pageable_rows)} that cannot be "
        "asynchronous: their memory may be moved meanwhile",
        "asynchronous copies with a pageable side, alone on the GPU or in their calls, are 1 % of "
        "the window or more",
        bound=bound,
        part="copies, alone and idle",
        evidence=tuple(_sums(facts, alone.pageable_rows)),
        place=facts.heaviest(alone.pageable_rows),
    )


def _sync_copies(facts: RuleFacts, alone: CopiesAlone) -> Finding | None:
    bound = alone.synchronous + facts.idle.copies - facts.idle.async_copies
    if len(alone.synchronous_rows) < FEWEST_COPIES:
        return None
    return facts.finding(
        "sync-copies",
        "Copies make the host wait",
        f"{facts.share(bound)} passed in {_written(facts, alone.synchronous_rows)} by calls that "
        "wait for their end",
        "ten copies or more by synchronous calls, alone on the GPU or holding the host, are 1 % of "
        "the window or more",
        bound=bound,
        part="copies, alone and idle",
        evidence=tuple(_sums(facts, alone.synchronous_rows)),
        place=facts.heaviest(alone.synchronous_rows),
    )


def _copies_exposed(facts: RuleFacts, alone: CopiesAlone) -> Finding | None:
    if alone.others < EXPOSED * facts.window:
        return None
    return facts.finding(
        "copies-exposed",
        "Copies run while nothing computes",
        f"{facts.share(alone.others)} passed with {_written(facts, alone.other_rows)}, and no "
        "kernel",
        "asynchronous copies alone on the GPU are 5 % of the window or more",
        bound=alone.others,
        part="copies, alone",
        evidence=tuple(_sums(facts, alone.other_rows)),
        place=facts.heaviest(alone.other_rows),
        advice=_advice(facts, alone),
    )


def _advice(facts: RuleFacts, alone: CopiesAlone) -> str:
    """Which advice fits: no overlap can hide what takes longer than all compute."""
    if _direction(facts, alone.other_rows) == "DtoD":
        return "copies-exposed, within"
    return "copies-exposed, most" if alone.others > facts.budget.compute else ""


def _direction(facts: RuleFacts, rows: I8) -> str:
    """From where to where most of the time of copies went: ``HtoD``; empty where sets lead."""
    name = facts.heaviest_name(rows).rpartition(" ")[2]
    return name if "to" in name else ""


def _sums(facts: RuleFacts, rows: I8) -> Iterator[FindingNumber]:
    """How many copies, of how many bytes, at which rate."""
    yield FindingNumber("copies", len(rows), "count")
    details = facts.scope.profile.launches
    if details is not None and (details.bytes[rows] != UNKNOWN).all():
        size = int(details.bytes[rows].sum())
        time = int(facts.scope.profile.activities.duration[rows].sum())
        yield FindingNumber("bytes", size, "bytes")
        if time:
            yield FindingNumber("rate", round(size / time, 3), "GB/s")


def _written(facts: RuleFacts, rows: I8) -> str:
    """The copies in words: ``703 copies (13.1 GB at 4.2 GB/s, mostly HtoD) in load``."""
    known = {one.name: one.value for one in _sums(facts, rows)}
    sets = (facts.scope.profile.activities.kind[rows] == Kind.MEMSET).any()
    copies = format_counted(len(rows), "copy", "copies and sets" if sets else "copies")
    size, rate = float(known.get("bytes") or 0), float(known.get("rate") or 0)
    told = [f"{format_bytes(size)} at {rate:.2f} GB/s" * (size >= _LARGE and rate > 0)]
    if direction := _direction(facts, rows):
        told.append(f"mostly {direction}")
    words = ", ".join(filter(None, told))
    inside = facts.launched_in(rows)
    where = f" in {inside}" if inside else ""
    return f"{copies} ({words}){where}" if words else f"{copies}{where}"
