"""Describe the gaps of a profile: what was not recorded or attributed, each with the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.columns import Bool, sum_by, unique
from flame.core.model.activities import Activities
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.stacks import EMPTY
from flame.core.units import format_percent, format_whole_percent

_MUCH = 0.2
_SOME = 0.05
_CALLS = "Python calls and "


class _Advice(NamedTuple):
    """What gaps mean and how to close them, after what the trace was recorded with."""

    host: str
    nothing: str
    unlaunched: str
    no_ranges: str
    ranges: str
    no_python: str
    graph_nodes: str = "record with --cuda-graph-trace=node"


_NSYS = _Advice(
    host="NVTX ranges and CUDA API calls",
    nothing="nothing on a GPU, no NVTX range, no CUDA call: record with --trace=cuda,nvtx",
    unlaunched="capture began later, or API calls were filtered",
    no_ranges="no NVTX ranges around launches: record with --trace=cuda,nvtx and annotate the code",
    ranges="NVTX coverage {} of GPU time: the rest was launched outside any range",
    no_python="record with --cudabacktrace=kernel --python-backtrace=cuda",
)
_TORCH = _Advice(
    host=f"{_CALLS}operators",
    nothing="nothing on a GPU, no operator, no Python call: record with the CPU activity too",
    unlaunched="the profiler started later, or was not told of it",
    no_ranges="no operators around launches: record with activities CPU and CUDA",
    ranges="operators are around {} of GPU time: the rest was launched outside any",
    no_python="record with torch.profiler.profile(with_stack=True)",
)


_FLAME = _Advice(
    host="NVTX ranges and CUDA API calls",
    nothing="nothing on a GPU, no NVTX range, no CUDA call",
    unlaunched="they were queued before recording began, or their calls were dropped",
    no_ranges="no NVTX ranges around launches: annotate the code",
    ranges="NVTX coverage {} of GPU time: the rest was launched outside any range",
    no_python="launched by threads that run no Python",
    graph_nodes="record without --graphs whole",
)
_ADVICE = {"kineto": _TORCH, "fdump": _FLAME}


_QUEUED = (
    "they are the first, and were queued before the profiler started; torch.cuda.synchronize() "
    "just before that keeps them out"
)


def _is_torch(profile: Profile) -> bool:
    return profile.meta.format == "kineto"


def _advice(profile: Profile) -> _Advice:
    return _ADVICE.get(profile.meta.format, _NSYS)


def describe_gaps(profile: Profile) -> tuple[str, ...]:
    """Describe each gap in a line, most important first; each says how to record what is absent."""
    checks = (
        _nothing_on_gpu,
        _opaque_graphs,
        _unlaunched,
        _graph_nodes,
        _replayed,
        _no_ranges,
        _no_python,
        _little_python,
        describe_unsampled,
    )
    return tuple(line for check in checks for line in check(profile))


def _nothing_on_gpu(profile: Profile) -> Iterator[str]:
    if profile.size:
        return
    reason = profile.meta.options.get("cupti")
    if profile.meta.options.get("COLLECT_CUDA_TRACE") == "false":
        yield "CUDA was not traced: record with --trace=cuda,nvtx"
    elif len(profile.host.groups):
        advice, has_python = _advice(profile), _has_python(profile.host)
        host = advice.host if has_python else advice.host.removeprefix(_CALLS)
        why = f" ({reason})" if reason else ""
        yield f"no GPU activity in this trace{why}: the host metric shows {host}"
    else:
        yield _advice(profile).nothing + (f": {reason}" if reason else "")


def _opaque_graphs(profile: Profile) -> Iterator[str]:
    """The classic: graphs traced as a whole hide their kernels."""
    graphs = _time_of(profile, profile.activities.groups.kind == Kind.GRAPH)
    if graphs and graphs >= 0.01 * profile.gpu_time:
        share = format_percent(graphs, profile.gpu_time)
        yield (
            f"{share} of GPU time is in CUDA graphs traced as a whole, their kernels were not "
            f"recorded: {_advice(profile).graph_nodes}"
        )


def _unlaunched(profile: Profile) -> Iterator[str]:
    table = profile.activities
    unlaunched = ~table.groups.launched
    count = int(profile.gpu_by_group[1][unlaunched].sum())
    if count:
        ns = _time_of(profile, unlaunched)
        why = _QUEUED if _is_torch(profile) and _are_first(table) else _advice(profile).unlaunched
        yield (
            f"{count:,} of {profile.size:,} GPU activities ({format_percent(ns, profile.gpu_time)} "
            f"of GPU time) {'has' if count == 1 else 'have'} no recorded launch: {why}"
        )


def _are_first(table: Activities) -> bool:
    """Whether what has no launch started before all that has one: it was waiting in a queue."""
    launched = table.start[table.launched]
    return len(launched) > 0 and bool(table.start[~table.launched].max() <= launched.min())


def _replayed(profile: Profile) -> Iterator[str]:
    """PyTorch's profiler does not know what was captured in a graph."""
    if not _is_torch(profile):
        return
    groups, frames = profile.activities.groups, profile.frames
    launches = unique(groups.launch[groups.launched]).tolist()
    calls = {frame: frames[frame].name for frame in launches}
    graphs = [frame for frame, name in calls.items() if "GraphLaunch" in name]
    ns = _time_of(profile, np.isin(groups.launch, graphs))
    if ns and ns >= _SOME * profile.gpu_time:
        names = ", ".join(sorted({calls[frame] for frame in graphs}))
        yield (
            f"{format_percent(ns, profile.gpu_time)} of GPU time was replayed from graphs "
            f"({names}): which operators and lines these were captured from is not recorded, "
            "profile a run without graphs to see them"
        )


def _graph_nodes(profile: Profile) -> Iterator[str]:
    nodes = profile.graph_nodes
    missing = nodes.activities - nodes.captured
    if missing:
        verb = "shows" if missing == 1 else "show"
        yield (
            f"{missing:,} of {nodes.activities:,} CUDA graph kernels {verb} no range of their "
            "capture: record from before the graphs are built, and annotate what builds them"
        )


def _no_ranges(profile: Profile) -> Iterator[str]:
    if not profile.gpu_time:
        return
    covered = profile.coverage["nvtx"].percent
    if covered == 0 and profile.meta.options.get("COLLECT_NVTX_TRACE") == "false":
        yield "NVTX was not traced: record with --trace=cuda,nvtx"
    elif covered == 0:
        yield _advice(profile).no_ranges
    elif _missing(profile, "nvtx") > _MUCH:
        yield _advice(profile).ranges.format(format_whole_percent(covered))


def _no_python(profile: Profile) -> Iterator[str]:
    lacking = bool(profile.gpu_time) and profile.coverage["python"].percent == 0
    on_host = not profile.size and _is_torch(profile) and len(profile.host.groups)
    if lacking or (on_host and not _has_python(profile.host)):
        reason = profile.meta.options.get("python") or _advice(profile).no_python
        yield f"no Python frames: {reason}"


def _has_python(table: Activities) -> bool:
    return bool((table.groups.python != EMPTY).any())


def _little_python(profile: Profile) -> Iterator[str]:
    """A backward pass runs on threads of its own, where no Python function is open."""
    covered = profile.coverage["python"].percent
    if profile.meta.format not in _ADVICE or not covered or _missing(profile, "python") <= _MUCH:
        return
    remedy = "; --forward shows a backward pass below its forward pass" * _is_torch(profile)
    linked = any(frame.get("forward") for frame in profile.frames.frames)
    share = format_whole_percent(covered)
    yield (
        f"Python frames for {share} of GPU time: the rest was launched where no Python function "
        f"was recorded{'' if linked else remedy}"
    )


def describe_unsampled(profile: Profile) -> Iterator[str]:
    """Describe which kernels lack PC samples (too short, or not asked for), if there are any."""
    if profile.sampling is None or profile.resolved or not profile.gpu_time:
        return
    groups = profile.activities.groups
    bare = (profile.sampling.of_group < 0) & (groups.kind == Kind.KERNEL)
    time = sum_by(groups.frame[bare], profile.gpu_by_group[0][bare], len(profile.frames))
    if time.sum() < _SOME * profile.gpu_time:
        return
    heaviest = int(time.argmax())
    covered, share = (
        format_percent(ns, profile.gpu_time)
        for ns in (profile.coverage["sass"].ns, int(time[heaviest]))
    )
    yield (
        f"{covered} of GPU time has PC samples: the heaviest kernel without any is "
        f"{profile.frames[heaviest].name} ({share} of GPU time)"
    )


def _missing(profile: Profile, column: str) -> float:
    """The part of the GPU time whose launch is known, but not its ``column`` (a stack)."""
    groups = profile.activities.groups
    missing = groups.launched & (getattr(groups, column) == EMPTY)
    return _time_of(profile, missing) / max(profile.gpu_time, 1)


def _time_of(profile: Profile, groups: Bool) -> int:
    """GPU time of the activities of some groups, ns."""
    return int(profile.gpu_by_group[0][groups].sum())
