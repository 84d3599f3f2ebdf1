"""Write the averages of GPU metrics, for ``flame info``: as JSON, and for people."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.frame_totals import frame_totals, heaviest_rows
from flame.core.analysis.node_activities import NodeActivities
from flame.core.analysis.trace_summary import TraceSummary
from flame.core.analysis.utilization import Utilization
from flame.core.columns import F8
from flame.core.efficiency.measured_frames import (
    MOVED,
    MeasuredFrames,
    are_measured,
    measure_frames,
)
from flame.core.errors import InputError
from flame.core.gpu_metrics.averages import MetricAverage, left_out_note
from flame.core.gpu_metrics.kernels import DRAM, EXPOSURE
from flame.core.gpu_metrics.names import NAMES, MetricKey
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter
from flame.core.shown_text import cut, printable
from flame.core.units import format_bytes, format_counted, format_ns

_WORDS = {
    MetricKey.SM: "SM active",
    MetricKey.TENSOR: "tensor active",
    MetricKey.READ: "DRAM read",
    MetricKey.WRITE: "DRAM written",
}

_MOST = 15
_BESIDE = "*"


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


def tree_metric_lines(
    profile: Profile, tree: StackTree, filters: tuple[Filter, ...], width: int
) -> list[str]:
    """Tell in lines what metrics say while the heaviest frames ran; none where nothing is known.

    ``tree`` is what `project` made with ``filters``.
    """
    if not are_measured(profile, tree.metric):
        return []
    sums = frame_totals(tree)
    heaviest = sums.frame[heaviest_rows(sums, _MOST)]
    frames = np.sort(heaviest)
    try:
        members = NodeActivities.from_tree(profile, tree, filters)
        found = measure_frames(profile, members, frames)
    except InputError as error:
        return [cut(printable(left_out_note(error)), width)]
    if found is None:
        return []
    columns = found.columns
    places = np.searchsorted(frames, heaviest).tolist()
    known = [at for at in places if not np.isnan(columns[EXPOSURE][at])]
    if not known:
        return []
    head = f"{'SM':>8} {'tensor':>8} {'DRAM':>8} {'sampled':>9} {'× bytes':>8}  while it ran"
    lines = (f"{_cells(found, columns, at)}  {tree.text[frames[at]]}" for at in known)
    return [head, *(cut(printable(line), width) for line in lines)]


def _cells(found: MeasuredFrames, columns: dict[str, F8], at: int) -> str:
    keys = (MetricKey.SM, MetricKey.TENSOR, DRAM)
    shares = (_share(float(columns[key][at])) for key in keys)
    mark = _BESIDE if found.metrics.shared[at] else " "
    ratio = float(columns[MOVED][at]) if MOVED in columns else np.nan
    times = "" if np.isnan(ratio) else f"{ratio:.1f}×"
    sampled = format_ns(int(found.metrics.exposure[at]))
    return f"{' '.join(f'{each:>8}' for each in shares)} {sampled:>8}{mark} {times:>8}"


def _share(percent: float) -> str:
    return "" if np.isnan(percent) else f"{percent:.1f} %"
