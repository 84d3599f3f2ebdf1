"""Judge allocations: time in which a GPU waits for them, and those that each iteration makes."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.distribution import distribution
from flame.core.columns import I8
from flame.core.lazy_regex import lazy_regex
from flame.core.model.calls import CallClass
from flame.core.model.profile import Profile
from flame.core.report.findings.facts import GpuFacts
from flame.core.report.findings.finding import Abstained, Evidence, Finding
from flame.core.report.program.iterations import report_iterations
from flame.core.report.table import Place
from flame.core.timeline.call_classes import call_classes
from flame.core.units import format_counted

_OF_DEVICE = lazy_regex(
    r"(?:cuda|hip)(?:Malloc(?:Pitch|3D|Array|3DArray)?|Free(?:Array)?)(?:_v\d+|_ptsz|_ptds)*"
    r"|cuMem(?:Alloc|AllocPitch|Free|Create|Release)(?:_v\d+|_ptsz|_ptds)*"
)
"""Calls that allocate or free memory of a GPU; those of pools cost next to nothing."""

_TITLE = "The GPU waits while memory is allocated or freed"
_RULE = (
    "calls of allocation in gaps are 1 % of the window or more, or half of the iterations after "
    "the warm-up allocate or free memory of the GPU"
)


def alloc_in_loop(facts: GpuFacts) -> Finding | Abstained | None:
    """Tell the time that passed in allocations, or that iterations make any."""
    if reason := facts.scope.lacks_calls:
        return Abstained("alloc-in-loop", reason)
    each = _per_iteration(facts)
    calls = format_counted(each, "allocation or free", "allocations and frees") if each else ""
    evidence = (Evidence("calls per iteration", each, "count"),) if each else ()
    also = f"; an iteration makes {calls} of GPU memory" if each else ""
    passed = f"{facts.share(facts.idle.alloc)} passed in calls that allocate or free memory"
    found = facts.finding(
        "alloc-in-loop",
        _TITLE,
        passed + also,
        _RULE,
        bound=facts.idle.alloc,
        part="idle",
        evidence=evidence,
        place=_gap(facts),
    )
    if found is not None or not each:
        return found
    title = "Each iteration allocates or frees memory"
    claim = f"an iteration makes {calls} of GPU memory, for which the GPU has not had to wait long"
    return facts.information("alloc-in-loop", title, claim, _RULE, evidence)


def _per_iteration(facts: GpuFacts) -> int:
    """How many allocations and frees of its memory an iteration after the warm-up makes, p50."""
    found = report_iterations(facts.scope)
    if found is None or not _allocates(facts.scope.profile):
        return 0  # before calls are chosen by filters, which takes long of a million
    calls = facts.scope.calls
    if calls is None:
        return 0
    calls = calls.of_class(CallClass.ALLOC)
    calls = calls.where(calls.named(_OF_DEVICE))
    iterations, users = facts.scope.profile.iterations, _users(facts)
    warm_up = found.times.number[found.verdicts.warm_up]
    steady = np.isin(iterations.process, users) & ~np.isin(iterations.number, warm_up)
    of = iterations.at(calls.process, calls.start)
    number = np.bincount(of[of >= 0], minlength=len(iterations))[steady]
    told = distribution(number)
    return told.p50 if told else 0


def _allocates(profile: Profile) -> bool:
    """Whether any call of ``profile`` allocates or frees."""
    return bool((call_classes(profile) == CallClass.ALLOC).any())


def _users(facts: GpuFacts) -> I8:
    """The processes that use the GPU."""
    groups = facts.scope.profile.activities.groups
    users: I8 = groups.process[groups.device == facts.gpu.device].astype(np.int64)
    return users


def _gap(facts: GpuFacts) -> Place | None:
    window = facts.idle.longest.get("alloc")
    return window and Place(window=window)
