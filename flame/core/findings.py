"""What a profile says about its own gaps, each with the remedy."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.frames import Kind
from flame.core.profile import Profile
from flame.core.units import format_percent, format_whole_percent

_MUCH = 0.2


def findings(profile: Profile) -> tuple[str, ...]:
    """One line per gap, most important first. Absent is not zero: each says how to record it."""
    checks = (
        _nothing_on_gpu,
        _opaque_graphs,
        _unlaunched,
        _graph_nodes,
        _no_ranges,
        _no_python,
    )
    return tuple(line for check in checks for line in check(profile))


def _nothing_on_gpu(profile: Profile) -> Iterator[str]:
    if len(profile.activities):
        return
    if profile.meta.options.get("COLLECT_CUDA_TRACE") == "false":
        yield "CUDA was not traced: record with --trace=cuda,nvtx"
    elif len(profile.host):
        yield "no GPU activity in this trace: the host metric shows NVTX ranges and CUDA API calls"
    else:
        yield "nothing on a GPU, no NVTX range, no CUDA call: record with --trace=cuda,nvtx"


def _opaque_graphs(profile: Profile) -> Iterator[str]:
    """The classic: graphs traced as a whole hide their kernels."""
    table = profile.activities
    graphs = int(table.duration[table.kind == Kind.GRAPH].sum())
    if graphs and graphs >= 0.01 * profile.gpu_time:
        share = format_percent(graphs, profile.gpu_time)
        yield (
            f"{share} of GPU time is in CUDA graphs traced as a whole, their kernels were not "
            "recorded: record with --cuda-graph-trace=node"
        )


def _unlaunched(profile: Profile) -> Iterator[str]:
    table = profile.activities
    count = int((~table.launched).sum())
    if count:
        ns = int(table.duration[~table.launched].sum())
        yield (
            f"{count:,} of {len(table):,} GPU activities ({format_percent(ns, profile.gpu_time)} "
            "of GPU time) have no recorded launch: capture began later, or API calls were filtered"
        )


def _graph_nodes(profile: Profile) -> Iterator[str]:
    nodes = profile.graph_nodes
    missing = nodes.activities - nodes.captured
    if missing:
        yield (
            f"{missing:,} of {nodes.activities:,} CUDA graph kernels show no range of their "
            "capture: record from before the graphs are built, and annotate what builds them"
        )


def _no_ranges(profile: Profile) -> Iterator[str]:
    if not profile.gpu_time:
        return
    covered = profile.coverage["nvtx"].percent
    if covered == 0 and profile.meta.options.get("COLLECT_NVTX_TRACE") == "false":
        yield "NVTX was not traced: record with --trace=cuda,nvtx"
    elif covered == 0:
        yield "no NVTX ranges around launches: record with --trace=cuda,nvtx and annotate the code"
    elif covered < 100 * (1 - _MUCH):
        share = format_whole_percent(covered)
        yield f"NVTX coverage {share} of GPU time: the rest was launched outside any range"


def _no_python(profile: Profile) -> Iterator[str]:
    if profile.gpu_time and profile.coverage["python"].percent == 0:
        yield "no Python frames: record with --cudabacktrace=kernel --python-backtrace=cuda"
