"""Write what the details say of GPU metrics: over the time in which the kernels of a frame ran."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import F8
from flame.core.efficiency.moved_bytes import TWICE, MovedBytes
from flame.core.gpu_metrics.kernels import KernelMetrics
from flame.core.gpu_metrics.names import MetricKey
from flame.core.units import format_bytes, format_counted, format_ns
from flame.tui.details.labels import Label, fields
from flame.tui.toolkit.lines import Line


def metric_lines(
    metrics: KernelMetrics | None, traffic: MovedBytes | None, width: int
) -> list[Line]:
    """Write the means that are known, and of how much time; ``metrics`` is of one frame.

    ``traffic`` is what its memory moved beside what it has to move, where that is known.
    """
    if metrics is None or not metrics.ran[0]:
        return []
    return fields([*_facts(metrics), (Label.TRAFFIC, _traffic(traffic))], width)


def metric_words(metrics: KernelMetrics | None) -> Iterator[str]:
    """Write the same in short: what is known, of a frame whose kernels ran."""
    if metrics is None or not metrics.ran[0]:
        return
    for label, value in _facts(metrics):
        if value:
            yield f"{label} {value}"


def _facts(found: KernelMetrics) -> Iterator[tuple[Label, str]]:
    yield Label.SM, _percent(found.means[MetricKey.SM])
    yield Label.TENSOR, _percent(found.means[MetricKey.TENSOR])
    read, write = (_percent(found.means[key]) for key in (MetricKey.READ, MetricKey.WRITE))
    both = ", ".join([f"{read} read"] * bool(read) + [f"{write} written"] * bool(write))
    rate = float(found.rate[0])
    yield Label.DRAM, both if np.isnan(rate) else f"{both}, {format_bytes(rate)}/s"
    yield Label.SAMPLED, _sampled(found)


def _traffic(found: MovedBytes | None) -> str:
    """What memory moved, and how many times what was counted; empty where that is not known."""
    ratio = np.nan if found is None else float(found.ratio[0])
    if found is None or np.isnan(ratio):
        return ""
    twice = ": bytes are moved twice" if ratio > TWICE else ""
    return f"{format_bytes(float(found.measured[0]))} moved, {ratio:.1f}× counted{twice}"


def _percent(means: F8) -> str:
    return "" if np.isnan(means[0]) else f"{float(means[0]):.1f} %"


def _sampled(found: KernelMetrics) -> str:
    """Of how much time, and by how many samples; or why that is too little."""
    exposure, samples = int(found.exposure[0]), int(found.samples[0])
    if not samples:
        return "not while it ran"
    text = f"{format_ns(exposure)}, {format_counted(samples, 'sample', 'samples')}"
    if all(np.isnan(means[0]) for means in found.means.values()):
        return f"{text}: too short to sample"
    return f"{text}, beside other kernels" if found.shared[0] else text
