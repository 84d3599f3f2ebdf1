"""Draw what was sampled of a GPU over time: a line per metric, as high as its mean in each cell."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from rich.segment import Segment
from rich.style import Style

from flame.core.columns import F8, I8
from flame.core.gpu_metrics.samples import SampledMetric
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.raster import Grid
from flame.core.units import BLOCKS, format_count, format_ns
from flame.tui.timeline.blocks import TINTED
from flame.tui.timeline.time_view import TimeView
from flame.tui.toolkit.lines import ThemeStyles
from flame.tui.toolkit.text import cut, fill, printable, width_of

UNKNOWN = "·"
"""What stands in cells of which no sample tells."""

_FULL = len(BLOCKS) - 1
_PERCENT = 100
_SHOWN, _UNKNOWN = 0, 1


@dataclass(frozen=True, eq=False)
class MetricDrawing:
    """Hold what the cells of a lane of a metric show: ``means`` f8[cells], NaN where not known.

    ``most`` is the value of a full cell, ``mean`` that of all the window; both in its unit.
    """

    means: F8
    most: float
    mean: float


def draw_metric(view: TimeView, number: int) -> MetricDrawing:
    """Work out what lane ``number`` shows in the cells of ``view``."""
    timeline, grid = view.timeline, view.viewport.grid
    metric = timeline.metric_of(timeline.lanes[number])
    return MetricDrawing(
        means_of_cells(metric, grid, timeline.origin),
        _most(metric),
        mean_within(metric, grid.window, timeline.origin),
    )


def means_of_cells(metric: SampledMetric, grid: Grid, origin: int) -> F8:
    """Average ``metric`` over each cell of ``grid``, weighted by time; NaN where not known."""
    return _means(metric, origin + np.floor(grid.edges).astype(np.int64))


def mean_within(metric: SampledMetric, window: TimeWindow, origin: int) -> float:
    """Average ``metric`` over ``window``, weighted by time; NaN where nothing is known of it."""
    return float(_means(metric, np.array([origin + window.low, origin + window.high]))[0])


def _means(metric: SampledMetric, edges: I8) -> F8:
    marks = metric.marks(edges)
    known, found = np.diff(marks.known), np.full(len(edges) - 1, np.nan)
    np.divide(np.diff(marks.weighted), known, out=found, where=known > 0)
    return found * metric.scale.factor


def _most(metric: SampledMetric) -> float:
    """What a full cell stands for: all that there can be, else the most that there was."""
    if metric.scale.unit == "%":
        return float(_PERCENT)
    return max(float(metric.value[metric.known].max(initial=0)) * metric.scale.factor, 1e-9)


def metric_label(drawing: MetricDrawing, name: str, width: int) -> str:
    """Write what stands left of a line: its name, and the mean of the window at the right."""
    mean = f" {written(drawing.mean)} "
    room = max(width - width_of(mean), 0)
    return fill(fill(cut(name, room), room) + mean, width)


def written(value: float, unit: str = "") -> str:
    """Write a mean in few cells; an unknown one is no number."""
    if np.isnan(value):
        return "–"
    text = format_count(value) if value >= _PERCENT else f"{value:.1f}"
    return f"{text} {unit}".rstrip()


def metric_segments(
    drawing: MetricDrawing, look: ThemeStyles, brushed: tuple[int, int]
) -> list[Segment]:
    """Draw the cells of a lane: the mean of each as a part of the most, zero as the least block."""
    known = ~np.isnan(drawing.means)
    share = np.where(known, drawing.means, 0) / drawing.most
    eighths = np.clip(np.ceil(share * _FULL), known, _FULL).astype(np.int64).tolist()
    chars = "".join(
        BLOCKS[high] if there else UNKNOWN
        for high, there in zip(eighths, known.tolist(), strict=True)
    )
    looks = np.where(known, _SHOWN, _UNKNOWN)
    looks[slice(*brushed)] += TINTED
    edges = [0, *(np.flatnonzero(np.diff(looks)) + 1).tolist(), len(chars)]
    return [
        Segment(chars[left:right], _style(look, int(looks[left])))
        for left, right in pairwise(edges)
    ]


def _style(look: ThemeStyles, kind: int) -> Style:
    base, palette = look.base, look.palette
    if kind >= TINTED:
        base, kind = base + palette.tint, kind - TINTED
    return base + (palette.quiet if kind == _UNKNOWN else palette.ink(Kind.KERNEL))


def metric_hint(view: TimeView) -> str:
    """Say what the selected row shows: its mean over the window, and what its cells stand for."""
    lane = view.lanes.selected
    assert lane is not None
    metric, window = view.timeline.metric_of(lane), view.viewport.window
    mean = mean_within(metric, window, view.timeline.origin)
    known = "not sampled in this window"
    if not np.isnan(mean):
        known = f"mean {written(mean, metric.scale.unit)}"
    facts = [printable(metric.name), known]
    if metric.period:
        facts.append(f"cells are means, of samples every {format_ns(metric.period)}")
    if metric.device < 0:
        facts.append("nothing ran on this GPU, or it is not known which it is")
    return " · ".join(facts)
