"""Write the averages of GPU metrics, for ``flame info``: as JSON, and for people."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.analysis.trace_summary import TraceSummary
from flame.core.analysis.utilization import Utilization
from flame.core.gpu_metrics.averages import MetricAverage
from flame.core.gpu_metrics.names import NAMES, MetricKey
from flame.core.units import format_bytes, format_counted, format_ns

_WORDS = {
    MetricKey.SM: "SM active",
    MetricKey.TENSOR: "tensor active",
    MetricKey.READ: "DRAM read",
    MetricKey.WRITE: "DRAM written",
}


def metric_facts(summary: TraceSummary) -> list[dict[str, object]]:
    """Return the part of ``flame info --json`` on GPU metrics, over the window of each GPU.

    ``mean`` is null of too few samples, in ``unit`` otherwise: percent of what can be, MHz, or as
    the ``metric``'s name says where it is null.
    """
    return [
        {
            "device": summary.devices[gpu.device].id,
            "source": summary.devices[gpu.device].source,
            "metric": one.metric.name,
            "unit": one.metric.scale.unit or None,
            "mean": None if one.mean is None else round(one.mean, 3),
            "exposure_ns": one.exposure,
            "samples": one.samples,
        }
        for gpu, averages in summary.gpu_metrics
        for one in averages
    ]


def metric_lines(summary: TraceSummary) -> Iterator[str]:
    """Write for each GPU what is told of frames too, over all of its window."""
    for gpu, averages in summary.gpu_metrics:
        words = list(_words(summary, gpu, {one.metric.name: one for one in averages}))
        if words:
            yield f"GPU metrics of {gpu.label}, from its first activity to its last"
            yield f"  {', '.join(words)}"
    yield from summary.gpu_metric_notes


def _words(
    summary: TraceSummary, gpu: Utilization, found: dict[str, MetricAverage]
) -> Iterator[str]:
    known = {key: found[name] for key, name in NAMES.items() if name in found}
    for key, one in known.items():
        if one.mean is not None:
            yield f"{_WORDS[key]} {one.mean:.1f} %"
    if not known:
        return
    means = [known[key].mean for key in (MetricKey.READ, MetricKey.WRITE) if key in known]
    bandwidth = summary.devices[gpu.device].facts.bandwidth
    if bandwidth and len(means) == 2 and None not in means:
        yield f"{format_bytes(bandwidth * sum(one or 0 for one in means) / 100)}/s"
    one = max(known.values(), key=lambda one: one.exposure)
    text = f"{format_ns(one.exposure)} sampled, {format_counted(one.samples, 'sample', 'samples')}"
    yield text if any(each.mean is not None for each in known.values()) else f"{text}: too few"
