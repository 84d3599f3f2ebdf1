"""Judge allocations: time in which a GPU waits for them, and what of its memory they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.allocator.out_of_memory import failure_words, verdict
from flame.core.analysis.distribution import distribution
from flame.core.columns import I8
from flame.core.lazy_regex import lazy_regex
from flame.core.model.allocator.recorded import Growth, MemoryOfDevice, OutOfMemory
from flame.core.model.calls import CallClass
from flame.core.model.profile import Profile
from flame.core.report.allocations.stacks import called, devices_with_memory, stack_names
from flame.core.report.allocations.tables import place_of, place_of_failure, why_no_growth
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.program.iterations import report_iterations
from flame.core.report.scope import Scope
from flame.core.report.table import Place
from flame.core.timeline.call_classes import call_classes
from flame.core.units import format_bytes, format_counted, format_percent

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

SPLIT = 0.2
"""From which share of what is reserved on free pieces that cannot go back are told.

In six public snapshots of ordinary programs they are 0 to 14 %.
"""

CACHED = 0.5
"""From which share of what is reserved on empty segments are told: after a step they are usual."""

_SPLIT_RULE = "free memory in segments that are in use is 20 % of what is reserved at the end"
_CACHED_RULE = "segments with nothing in them are half of what is reserved at the end"
_GROWTH_RULE = (
    "of what was allocated since the first step a stack never holds less at the end of a step than "
    "at that of the one before, more in two of three steps, and 1 MiB in all"
)
_FAILED_RULE = (
    "a request failed; fragmented: the allocator had as much free, but in smaller pieces; full: "
    "GPU and allocator together had less than was asked for"
)


def alloc_in_loop(facts: RuleFacts) -> Finding | Abstained | None:
    """Tell the time that passed in allocations, or that iterations make any."""
    if reason := facts.scope.lacks_calls:
        return Abstained("alloc-in-loop", reason)
    each = _per_iteration(facts)
    calls = format_counted(each, "allocation or free", "allocations and frees") if each else ""
    evidence = (FindingNumber("calls per iteration", each, "count"),) if each else ()
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


def _per_iteration(facts: RuleFacts) -> int:
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


def _users(facts: RuleFacts) -> I8:
    """The processes that use the GPU."""
    groups = facts.scope.profile.activities.groups
    users: I8 = groups.process[groups.device == facts.gpu.device].astype(np.int64)
    return users


def _gap(facts: RuleFacts) -> Place | None:
    window = facts.idle.longest.get("alloc")
    return window and Place(window=window)


def memory_rules(scope: Scope) -> Iterator[Finding | Abstained]:
    """Apply the rules to the memory of each GPU that is known."""
    for device in devices_with_memory(scope):
        if device.out_of_memory:
            yield _failed(scope, device, device.out_of_memory)
        if why := why_no_growth(device):
            yield Abstained("memory-growth", why)
        elif device.growth:
            yield _growing(scope, device, device.growth)
        yield from _free(scope, device)


def _failed(scope: Scope, device: MemoryOfDevice, failed: Sequence[OutOfMemory]) -> Finding:
    """Tell of the last request that failed, whose circumstances are known best."""
    last = failed[-1]
    why = verdict(last)
    more = f"; {format_counted(len(failed), 'request', 'requests')} failed in all"
    where = called(stack_names(scope, last.stack))
    asked = f"{where or 'a request'} asked for {format_bytes(last.size)}: {failure_words(last)}"
    return Finding(
        "out-of-memory",
        device.device,
        "high",
        "A request for memory failed" + (f": {why}" if why in ("full", "fragmented") else ""),
        asked + more * (len(failed) > 1),
        _FAILED_RULE,
        (
            FindingNumber("asked for", last.size, "bytes"),
            FindingNumber("requests", len(failed), "count"),
        ),
        place=place_of_failure(scope, device.device),
        advice="out-of-memory, fragmented" if why == "fragmented" else "",
        caution="" if last.free is not None else "what was free then is not known",
    )


def _growing(scope: Scope, device: MemoryOfDevice, growth: Sequence[Growth]) -> Finding:
    """Tell of the stacks that grow from step to step."""
    most, grown = growth[0], sum(one.total for one in growth)
    names, steps = stack_names(scope, most.stack), len(most.sizes) - 1
    stacks = format_counted(len(growth), "stack grows", "stacks grow")
    return Finding(
        "memory-growth",
        device.device,
        "medium",
        "Memory grows from step to step",
        f"{stacks} by {format_bytes(grown)} over {format_counted(steps, 'step', 'steps')}, "
        f"most of all {called(names)} by {format_bytes(most.total)}",
        _GROWTH_RULE,
        (FindingNumber("grown", grown, "bytes"), FindingNumber("steps", steps, "count")),
        place=place_of(scope, device.device, "live", most.stack),
        caution="a cache that is still being filled grows, too",
    )


def _free(scope: Scope, device: MemoryOfDevice) -> Iterator[Finding | Abstained]:
    """Tell what is free and cannot go back, or is kept though nothing is in it."""
    parts = device.parts
    if parts is None:
        why = "what the allocator has reserved was not recorded"
        yield from (Abstained(name, why) for name in ("memory-split", "memory-cached"))
        return
    reserved = FindingNumber("reserved", parts.reserved, "bytes")
    if parts.split and parts.split >= SPLIT * parts.reserved:
        yield Finding(
            "memory-split",
            device.device,
            "medium",
            "Free memory is in pieces that cannot be returned",
            f"{_share(parts.split, parts.reserved)} at the end is free in segments that something "
            f"else uses; the largest free piece is {format_bytes(parts.largest_free)}",
            _SPLIT_RULE,
            (FindingNumber("split", parts.split, "bytes"), reserved),
            place=place_of(scope, device.device, "live"),
            caution="known of the end alone: within a step it may be less",
        )
    if parts.releasable and parts.releasable >= CACHED * parts.reserved:
        yield Finding(
            "memory-cached",
            device.device,
            "info",
            "Most of the reserved memory has nothing in it",
            f"{_share(parts.releasable, parts.reserved)} at the end is kept by the allocator in "
            "empty segments",
            _CACHED_RULE,
            (FindingNumber("releasable", parts.releasable, "bytes"), reserved),
            place=place_of(scope, device.device, "peak"),
        )


def _share(part: int, reserved: int) -> str:
    share = format_percent(part, reserved)
    return f"{format_bytes(part)} ({share}) of the {format_bytes(reserved)} reserved"
