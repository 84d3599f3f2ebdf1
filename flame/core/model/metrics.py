"""Declare the metrics by which activities are weighed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.nearest import did_you_mean
from flame.core.units import FLOP


@dataclass(frozen=True)
class Metric:
    """Declare a way to weigh activities; ``values`` gives int64 per row, never negative.

    ``unit`` is ``ns``, ``count``, ``bytes``, or ``1e-k`` (k from 1 to 9): a plain number, of which
    the values count the parts of that size. ``noun`` is what the rows are called. ``about`` says on
    a short line what is measured and in what, but for metrics that a file brings, ``lacking`` why
    a trace may have nothing of it. What is worked out of all rows together is made ``when_asked``.
    """

    key: str
    title: str
    unit: str
    values: Callable[[Activities], I8]
    table: Literal["gpu", "host", "waiting", "memory"] = "gpu"
    levels: tuple[str, ...] = ("python", "native", "launch", "nvtx", "kernel")
    noun: str = "activities"
    about: str = ""
    lacking: str = "zero everywhere"
    when_asked: bool = False


def _duration(table: Activities) -> I8:
    return table.duration


def _count(table: Activities) -> I8:
    return np.ones(len(table), np.int64)


def _launch(table: Activities) -> I8:
    return table.launch_share


def _queue(table: Activities) -> I8:
    waited = np.maximum(table.start - table.launch_end, 0)
    return np.where(table.launched, waited, 0)


def _idle(table: Activities) -> I8:
    return table.idle


def _samples(table: Activities) -> I8:
    return table.measures.get("stalls", np.zeros(len(table), np.int64))


_NOTHING_RAN = "nothing ran on a GPU"


def _exposed(table: Activities) -> I8:
    return table.measures[EXPOSED.key]


def _no_wait(table: Activities) -> I8:
    """Of single activities it is not known: only a summary has sums of it."""
    return np.zeros(len(table), np.int64)


HOST_LEVELS = ("thread", "python", "nvtx", "launch")
_WAITING_LEVELS = ("cause", "thread", "python", "native", "nvtx", "launch")

EXPOSED = Metric(
    "exposed",
    "exposed time",
    "ns",
    _exposed,
    about="time that each alone kept its GPU busy",
    lacking=_NOTHING_RAN,
    when_asked=True,
)
WAITING = Metric(
    "waiting",
    "GPU waiting",
    "ns",
    _duration,
    "waiting",
    _WAITING_LEVELS,
    "idle parts",
    about="idle time by what the launching CPU did",
    lacking="no GPU was idle between activities",
    when_asked=True,
)
"""With `EXPOSED`, metrics of profiles that have all their rows, besides `METRICS`."""

WAIT = Metric(
    "wait",
    "collective wait",
    "ns",
    _no_wait,
    noun="collectives",
    about="time collectives waited for other ranks",
    lacking="only of a summary of ranks: flame ranks",
)
"""Metric of summaries of ranks besides `METRICS`, whose activities are collectives."""

STALLS = Metric(
    "stalls",
    "PC samples",
    "count",
    _samples,
    about="number of times warps were seen there",
    lacking="none: name --ncu, or record with --pc",
)
"""Metric that profiles with PC samples have besides `METRICS`."""

METRICS: tuple[Metric, ...] = (
    Metric(
        "gpu",
        "GPU time",
        "ns",
        _duration,
        about="time kernels and copies ran, summed",
        lacking=_NOTHING_RAN,
    ),
    Metric(
        "count",
        "GPU activities",
        "count",
        _count,
        about="number of kernels, copies, sets, graphs",
        lacking=_NOTHING_RAN,
    ),
    Metric(
        "launch",
        "launch API time",
        "ns",
        _launch,
        about="CPU time in calls that launched them",
        lacking="no launching call was recorded",
    ),
    Metric(
        "queue",
        "queue delay",
        "ns",
        _queue,
        about="time they waited from launch to start",
        lacking="no launch was recorded, or none waited",
    ),
    Metric(
        "idle",
        "GPU idle before",
        "ns",
        _idle,
        about="time the GPU was empty just before each",
        lacking="no GPU was idle between activities",
    ),
    Metric(
        "host",
        "host self time",
        "ns",
        _duration,
        "host",
        HOST_LEVELS,
        about="wall time of CPU threads in their code",
        lacking="no call, range or function of the CPU",
    ),
)
"""Metrics of traces; files of resolved stacks bring metrics of their own."""


def _memory_metric(key: str, title: str, about: str) -> Metric:
    values = partial(_measured, key)
    return Metric(key, title, "bytes", values, "memory", ("python",), "allocations", about)


def _measured(key: str, table: Activities) -> I8:
    return table.measures[key]


MEMORY_METRICS: tuple[Metric, ...] = (
    _memory_metric("peak", "memory at the peak", "bytes in use when the most were"),
    _memory_metric("live", "live memory", "bytes in use at the end"),
    _memory_metric("alloc", "allocated memory", "bytes allocated, however briefly"),
    _memory_metric("churn", "memory given back", "bytes allocated and given back again"),
    _memory_metric("held", "memory held", "bytes in use, as a mean over time"),
)
"""Metrics of traces that tell who allocated memory of GPUs."""

OF_A_MOMENT = ("peak", "live")
"""Those of what lived at one moment, not over a time."""

NO_MEMORY = "no profile_memory/--cuda-memory-usage"

TRACE_MEMORY_METRICS = tuple(
    replace(metric, levels=("python", "native", "launch", "nvtx"), lacking=NO_MEMORY)
    for metric in MEMORY_METRICS
)
"""The same of traces of GPU work, where the memory of GPUs was recorded besides."""

NO_SHAPES = "needs shapes: record_shapes=True"
NO_PEAK = "no peak known: --peak bf16=989,mem=3350"

FLOPS, BYTES, WASTE = WORK = tuple(
    Metric(key, title, unit, partial(_measured, key), about=about, lacking=lacking, when_asked=True)
    for key, title, unit, about, lacking in (
        ("flops", "FLOPs", FLOP, "number computed in products, attention", NO_SHAPES),
        ("bytes", "bytes moved", "bytes", "bytes that these move, at least", NO_SHAPES),
        ("waste", "time above bound", "ns", "time these took above what peaks allow", NO_PEAK),
    )
)
"""Metrics of traces with the shapes of operators; the last where the peak of a GPU is known."""

_USUAL = (METRICS[0], EXPOSED, *METRICS[1:5], WAITING, *METRICS[5:], STALLS, WAIT)

ALL_METRICS = (*_USUAL, *WORK, *TRACE_MEMORY_METRICS)
"""All of them, in the order in which they are listed."""


def trace_metrics(
    sampled: bool,
    ended: bool,
    met: bool = False,
    worked: bool = False,
    rated: bool = False,
    allocated: bool = False,
) -> tuple[Metric, ...]:
    """Choose the metrics of a trace that has ``ended``, all of whose rows are there, or goes on.

    ``sampled``: it has PC samples; ``met``: it is of ranks whose waiting in collectives is known;
    ``worked``: the work of operators is known; ``rated``: and the peak of a GPU; ``allocated``: it
    tells who allocated memory.
    """
    known = {STALLS: sampled, WAIT: met, FLOPS: worked, BYTES: worked, WASTE: rated}
    usual = (*_USUAL, *WORK)
    found = tuple(metric for metric in usual if known.get(metric, ended or not metric.when_asked))
    return (*found, *TRACE_MEMORY_METRICS) if allocated else found


NO_SAMPLES = (
    "there are no PC samples here: name a report of Nsight Compute by --ncu, or record with "
    "flame record --pc continuous"
)


NO_MEMORY_RECORDED = (
    "nothing here tells who allocated memory: record with profile(profile_memory=True), with "
    "nsys profile --cuda-memory-usage=true, or open a memory snapshot"
)

NO_SHAPES_RECORDED = (
    "no operator here has shapes that tell its FLOPs: record with profile(record_shapes=True) or "
    "torch.autograd.profiler.emit_nvtx(record_shapes=True)"
)

NO_PEAK_KNOWN = (
    "the peak of no GPU here is known: name it, in TFLOP/s and GB/s: --peak bf16=989,mem=3350"
)

NOT_OF_RANKS = (
    "only of a summary of the ranks of a run: flame ranks FILE… -o run.flamesum, then name that"
)

NOT_ALL_ROWS = (
    "only of traces that have ended: stacks do not say when a GPU was busy, and of a recording "
    "that goes on not all is kept"
)


def metric_of(key: str, metrics: Sequence[Metric] = METRICS) -> Metric:
    """Find the metric called ``key`` among ``metrics``; UsageError with the choices otherwise."""
    for metric in metrics:
        if metric.key == key:
            return metric
    choices = ", ".join(metric.key for metric in metrics)
    if key == STALLS.key:
        raise UsageError(NO_SAMPLES)
    if key in (EXPOSED.key, WAITING.key):
        raise UsageError(f"--metric {key}: {NOT_ALL_ROWS}")
    if key == WASTE.key and FLOPS in metrics:
        raise UsageError(f"--metric {key}: {NO_PEAK_KNOWN}")
    if any(key == metric.key for metric in WORK):
        raise UsageError(f"--metric {key}: {NO_SHAPES_RECORDED}")
    if any(key == metric.key for metric in MEMORY_METRICS):
        raise UsageError(f"--metric {key}: {NO_MEMORY_RECORDED}")
    meant = did_you_mean(key, (metric.key for metric in metrics))
    raise UsageError(f"unknown metric '{key}': choose from {choices}{meant}")
