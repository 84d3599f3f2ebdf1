"""Judge the idle time of a GPU: bound by launches, by the host, drained, loading code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.report.findings.caution import of_launches
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Abstained, Finding, FindingNumber
from flame.core.report.findings.idle_evidence import AFTER_SYNC, SHORT, DrainingCall
from flame.core.report.sections.idle import host_frames
from flame.core.report.table import Place
from flame.core.units import format_count, format_counted, format_ns, format_percent

KNOWN_LAUNCHES = 0.7
"""With fewer launches recorded than this part of the kernels it is not known who waited."""

LEAST = 0.05
"""Fed GPUs spend 0 to 1.1 % of their window in short gaps."""

SHORTER = 0.3
PER_SECOND = 10_000
"""Kernels shorter than their launches, or so many of them, are what launches bound."""

FEWEST_DRAINED = 3

_NAMED = 3

_NO_LAUNCHES = "launches of fewer than 70 % of the kernels were recorded"


def idle_rules(facts: RuleFacts) -> Iterator[Finding | Abstained | None]:
    """Apply the rules on idle time to a GPU."""
    if not facts.gpu.idle:
        return
    if facts.launches_known < KNOWN_LAUNCHES:
        yield Abstained("launch-bound", _NO_LAUNCHES)
        yield Abstained("host-bound", _NO_LAUNCHES)
    else:
        yield _launch_bound(facts)
        yield _host_bound(facts)
    if reason := facts.scope.lacks_calls:
        yield Abstained("sync-drain", reason)
    else:
        yield _sync_drain(facts)
    yield _loading(facts)
    yield _gc(facts)
    yield _gil(facts)


def _launch_bound(facts: RuleFacts) -> Finding | None:
    few = facts.shorter_than_launch < SHORTER and facts.kernels_per_second < PER_SECOND
    if few or facts.idle.short < LEAST * facts.window:
        return None
    return facts.finding(
        "launch-bound",
        "Kernels are launched more slowly than they run",
        f"{facts.share(facts.idle.short)} passed in pauses of up to {format_ns(SHORT)} while the "
        f"host prepared the next launch; {format_percent(facts.shorter_than_launch, 1)} of the "
        "kernels take less time than their launch call",
        f"host's part of gaps up to {format_ns(SHORT)} is 5 % of the window or more, and 30 % of "
        "the kernels are shorter than their launch call or there are 10,000 per second",
        bound=facts.idle.short,
        part="idle",
        evidence=(
            FindingNumber(
                "kernels shorter than their launch", 100 * facts.shorter_than_launch, "percent"
            ),
            *_rate(facts),
        ),
        place=_gap(facts, "short"),
        caution=of_launches(facts),
    )


def _rate(facts: RuleFacts) -> Iterator[FindingNumber]:
    """How fast kernels follow each other."""
    yield FindingNumber("kernels per second", round(facts.kernels_per_second), "count")
    if (rate := facts.rate) is not None:
        yield FindingNumber("half of the kernels take at most", rate.p50, "ns")
        if rate.calls:
            yield FindingNumber("kernels per launch call", rate.launched / rate.calls, "ratio")
        if rate.iterations is not None:
            yield FindingNumber("kernels per iteration", rate.iterations, "count")


def _host_bound(facts: RuleFacts) -> Finding | None:
    if not facts.idle.host or facts.idle.host < LEAST * facts.window:
        return None
    top = _host_names(facts)
    doing = f", mostly in {', '.join(name for name, _ in top)}" if top else ""
    return facts.finding(
        "host-bound",
        "The GPU waits for the host",
        f"{facts.share(facts.idle.host)} passed in pauses above {format_ns(SHORT)} in which the "
        f"thread that launches did something else{doing}{_longest(facts)}",
        "host's part of longer gaps that no blocking call began is 5 % of the window or more",
        bound=facts.idle.host,
        part="idle",
        evidence=tuple(FindingNumber(f"in {name}", ns, "ns") for name, ns in top),
        place=_gap(facts, "host"),
        advice="" if top else "host-bound, host unknown",
        caution=of_launches(facts),
    )


def _longest(facts: RuleFacts) -> str:
    """How long the longest of these pauses is, and what it is before, in words."""
    begin, end = facts.idle.longest["host"]
    parts, profile = facts.scope.idle(facts.gpu), facts.scope.profile
    after = int(parts.after[np.searchsorted(parts.begin, begin)])
    name = profile.frames[int(profile.activities.frame[after])].name
    return f"; the longest, {format_ns(end - begin)}, is before {name}"


def _host_names(facts: RuleFacts) -> list[tuple[str, int]]:
    """The three functions or ranges in which the host spent most of the idle time."""
    by_gpu = host_frames(facts.scope)
    found = [one for one in by_gpu[facts.gpu.device] if one.frame >= 0]
    return [(one.name, one.ns) for one in found[:_NAMED]]


def _sync_drain(facts: RuleFacts) -> Finding | None:
    gaps = len(facts.idle.drained_calls)
    if gaps < FEWEST_DRAINED or not facts.is_enough(facts.idle.drained):
        return None  # before all is worked out that is told of it
    return facts.finding(
        "sync-drain",
        "Synchronization runs the GPU dry",
        f"{facts.share(facts.idle.drained)} passed after the host had waited for the GPU to "
        f"finish, {format_count(gaps)} times, before it launched anything "
        f"again{_mostly(facts)}",
        f"three gaps above {format_ns(SHORT)} or more begin in a blocking call or up to "
        f"{format_ns(AFTER_SYNC)} after it, and the host's part of them is 1 % of the window or "
        "more",
        bound=facts.idle.drained,
        part="idle",
        evidence=(
            FindingNumber("gaps", gaps, "count"),
            *(
                FindingNumber(f"after {_call(facts, one)}", one.ns, "ns")
                for one in facts.drained_by[:_NAMED]
            ),
        ),
        place=_gap(facts, "drained"),
    )


def _mostly(facts: RuleFacts) -> str:
    """After which calls most of it passed, in words."""
    calls = [_call(facts, one) for one in facts.drained_by[:2] if one.ns]
    return f"; mostly after {' and '.join(calls)}" if calls else ""


def _call(facts: RuleFacts, one: DrainingCall) -> str:
    """A call, and what made it."""
    frames = facts.scope.profile.frames
    name = frames[one.call].name
    return name if one.inside < 0 else f"{name} in {frames[one.inside].name}"


def _loading(facts: RuleFacts) -> Finding | None:
    return facts.finding(
        "loading",
        "Kernels are loaded at their first launch",
        f"{facts.share(facts.idle.loading)} passed in first launches, which load code, of "
        f"{format_counted(facts.idle.loads, 'kernel', 'kernels')}",
        f"launch calls in gaps above {format_ns(SHORT)} before the first launch of a kernel in its "
        "process are 1 % of the window or more",
        bound=facts.idle.loading,
        part="idle",
        evidence=(FindingNumber("kernels", facts.idle.loads, "count"),),
        place=_gap(facts, "loading"),
    )


def _gc(facts: RuleFacts) -> Finding | None:
    return facts.finding(
        "gc",
        "The GPU waits for garbage collection",
        f"{facts.share(facts.idle.gc)} passed while Python collected garbage on the thread that "
        "launches",
        "garbage collection in the host's part of gaps, on the thread that launches next, is 1 % "
        "of the window or more",
        bound=facts.idle.gc,
        part="idle",
        place=_gap(facts, "gc"),
    )


def _gil(facts: RuleFacts) -> Finding | None:
    return facts.finding(
        "gil",
        "The GPU waits for Python's lock",
        f"{facts.share(facts.idle.gil)} passed while the thread that launches waited for the GIL, "
        "which another thread held",
        "waiting for the GIL in the host's part of gaps, on the thread that launches next, is 1 % "
        "of the window or more",
        bound=facts.idle.gil,
        part="idle",
        place=_gap(facts, "gil"),
    )


def _gap(facts: RuleFacts, name: str) -> Place | None:
    """The longest gap of those."""
    window = facts.idle.longest.get(name)
    return window and Place(window=window)
