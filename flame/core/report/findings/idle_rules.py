"""Judge the idle time of a GPU: bound by launches, by the host, drained, loading, allocating."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.report.findings.facts import GpuFacts
from flame.core.report.findings.finding import Abstained, Evidence, Finding
from flame.core.report.findings.idle_evidence import AFTER_SYNC, SHORT
from flame.core.report.sections.idle import host_frames
from flame.core.report.table import Place
from flame.core.timeline.idle_parts import IdleCause
from flame.core.units import format_count, format_ns, format_percent

KNOWN_LAUNCHES = 0.7
"""With fewer launches recorded than this part of the kernels it is not known who waited."""

LEAST = 0.05
"""Fed GPUs spend 0 to 1.1 % of their window in short gaps."""

SHORTER = 0.3
PER_SECOND = 10_000
"""Kernels shorter than their launches, or so many of them, are what launches bound."""

FEWEST_DRAINED = 3
PROFILED = 0.02

_NO_LAUNCHES = "launches of fewer than 70 % of the kernels were recorded"


def idle_rules(facts: GpuFacts) -> Iterator[Finding | Abstained | None]:
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
        yield Abstained("alloc-in-loop", reason)
    else:
        yield _sync_drain(facts)
        yield _alloc(facts)
    yield _loading(facts)
    yield _profiler(facts)


def _launch_bound(facts: GpuFacts) -> Finding | None:
    few = facts.shorter_than_launch < SHORTER and facts.kernels_per_second < PER_SECOND
    if few or facts.idle.short < LEAST * facts.window:
        return None
    return facts.finding(
        "launch-bound",
        "Kernels are launched more slowly than they run",
        f"{_of(facts, facts.idle.short)} passed in pauses of up to {format_ns(SHORT)} while the "
        f"host prepared the next launch; {format_percent(facts.shorter_than_launch, 1)} of the "
        "kernels take less time than their launch call",
        "Capture the step in a CUDA graph (torch.compile(mode='reduce-overhead')), or fuse small "
        "kernels, or use larger batches.",
        f"host's part of gaps up to {format_ns(SHORT)} is 5 % of the window or more, and 30 % of "
        "the kernels are shorter than their launch call or there are 10,000 per second",
        bound=facts.idle.short,
        part="idle",
        evidence=(
            Evidence(
                "kernels shorter than their launch", 100 * facts.shorter_than_launch, "percent"
            ),
            Evidence("kernels per second", round(facts.kernels_per_second), "count"),
        ),
        place=_gap(facts, "short"),
    )


def _host_bound(facts: GpuFacts) -> Finding | None:
    if facts.idle.host < LEAST * facts.window:
        return None
    top = _host_names(facts)
    doing = f", mostly in {', '.join(name for name, _ in top)}" if top else ""
    return facts.finding(
        "host-bound",
        "The GPU waits for the host",
        f"{_of(facts, facts.idle.host)} passed in pauses above {format_ns(SHORT)} in which the "
        f"thread that launches did something else{doing}",
        "Look at what the host does there: data loading, tokenization, logging, Python between "
        "launches. Overlap it with GPU work, or take it out of the loop.",
        "host's part of longer gaps that no blocking call began is 5 % of the window or more",
        bound=facts.idle.host,
        part="idle",
        evidence=tuple(Evidence(f"in {name}", ns, "ns") for name, ns in top),
        place=_gap(facts, "host"),
    )


def _host_names(facts: GpuFacts) -> list[tuple[str, int]]:
    """The three functions or ranges in which the host spent most of the idle time."""
    frames = facts.scope.profile.frames
    found = [one for one in host_frames(facts.scope, facts.gpu) if one.frame >= 0]
    return [(frames[frame].name, ns) for frame, ns in found[:3]]


def _sync_drain(facts: GpuFacts) -> Finding | None:
    if facts.idle.drained_gaps < FEWEST_DRAINED:
        return None
    return facts.finding(
        "sync-drain",
        "Synchronization runs the GPU dry",
        f"{_of(facts, facts.idle.drained)} passed after the host had waited for the GPU to finish, "
        f"{format_count(facts.idle.drained_gaps)} times, before it launched anything again",
        "Take out synchronizations: .item(), .cpu(), print of a tensor, torch.cuda.synchronize(); "
        "or launch the next work before waiting.",
        f"three gaps above {format_ns(SHORT)} or more begin in a blocking call or up to "
        f"{format_ns(AFTER_SYNC)} after it, and the host's part of them is 1 % of the window or "
        "more",
        bound=facts.idle.drained,
        part="idle",
        evidence=(Evidence("gaps", facts.idle.drained_gaps, "count"),),
        place=_gap(facts, "drained"),
    )


def _loading(facts: GpuFacts) -> Finding | None:
    return facts.finding(
        "loading",
        "Kernels are loaded at their first launch",
        f"{_of(facts, facts.idle.loading)} passed in the first launches of kernels, which load "
        "their code",
        "Warm up before measuring, or set CUDA_MODULE_LOADING=EAGER to load all at the start.",
        f"launch calls in gaps above {format_ns(SHORT)} before the first launch of a kernel in its "
        "process are 1 % of the window or more",
        bound=facts.idle.loading,
        part="idle",
        place=_gap(facts, "loading"),
    )


def _alloc(facts: GpuFacts) -> Finding | None:
    return facts.finding(
        "alloc-in-loop",
        "The GPU waits while memory is allocated or freed",
        f"{_of(facts, facts.idle.alloc)} passed in calls that allocate or free memory",
        "Allocate once and reuse: PyTorch's caching allocator does where sizes repeat "
        "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), cudaMallocAsync elsewhere.",
        "calls of allocation in gaps are 1 % of the window or more",
        bound=facts.idle.alloc,
        part="idle",
    )


def _profiler(facts: GpuFacts) -> Finding | None:
    held = int(facts.budget.idle[IdleCause.PROFILER])
    if held < PROFILED * facts.window or not held:
        return None
    return Finding(
        "profiler-cost",
        facts.gpu.device,
        "info",
        "The profiler holds the program up",
        f"{_of(facts, held)} passed while the GPU waited for the profiler",
        "Record less: fewer --trace kinds, no backtraces, a shorter capture (--capture-range).",
        "the profiler's own part of idle time is 2 % of the window or more",
        part="idle",
    )


def _of(facts: GpuFacts, ns: int) -> str:
    """An amount of time, and what of the window it is."""
    return f"{format_ns(ns)} ({format_percent(ns, facts.window)} of the window)"


def _gap(facts: GpuFacts, name: str) -> Place | None:
    """The longest gap of those."""
    window = facts.idle.longest.get(name)
    return window and Place(window=window)
