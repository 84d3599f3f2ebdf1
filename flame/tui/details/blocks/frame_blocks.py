"""Write the blocks of the details pane on what was worked out: distributions, launches, places."""

from __future__ import annotations

import textwrap

import numpy as np

from flame.core.analysis.distribution import Distribution, Histogram
from flame.core.columns import I8
from flame.core.model.launches import Dim, LaunchConfig
from flame.core.units import (
    BLOCKS,
    format_bytes,
    format_count,
    format_counted,
    format_ns,
    format_percent,
)
from flame.tui.details.facts import BINS, Facts, Moved, UsedConfigs
from flame.tui.details.labels import Label, explained, fields, listed, titled
from flame.tui.details.parts import HeaviestParts
from flame.tui.toolkit.fields import LABEL
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import ELLIPSIS, cut, cut_start, width_of, wrap

_NUMBERS = (Label.P50, Label.P95, Label.P99, Label.MAX)
_EIGHTHS = len(BLOCKS) - 1
_ROOMY = 8
"""Cells from which on a number and its unit have a space between them."""


def note_lines(facts: Facts | None, width: int) -> list[Line]:
    """Say what is missing from the trace that matters here."""
    texts = facts.notes if facts else ()
    lines = (line for text in texts for line in textwrap.wrap(text, width, break_on_hyphens=False))
    return [[Piece(line, "warning")] for line in lines]


def distribution_lines(title: str, facts: Facts | None, width: int) -> list[Line]:
    """Write percentiles and a histogram; while they are worked out the same lines, empty."""
    cell = width // len(_NUMBERS)
    header: Line = [Piece("".join(name.rjust(cell) for name in _NUMBERS), "dim")]
    if facts is None:
        numbers = [Piece(ELLIPSIS.rjust(cell))]
        return [titled(Label.EACH, width, title), header, numbers, [], [], []]
    percentiles = facts.spread
    if percentiles is None or percentiles.count < 2:
        return []
    tail = f"  {Label.TAIL} {format_ratio(percentiles.tail)}" if percentiles.tail else ""
    first = titled(Label.EACH, width - len(tail), title)
    first += [explained(Piece(tail), Label.TAIL)]
    ends = (format_ns(percentiles.minimum), format_ns(percentiles.maximum))
    numbers = [Piece(_numbers(percentiles, cell))]
    return [first, header, numbers, *_drawn(facts.histogram, ends, width)]


def _numbers(found: Distribution, cell: int) -> str:
    about = "≈" if found.estimated else ""
    values = [about + format_ns(value) for value in (found.p50, found.p95, found.p99)]
    values.append(format_ns(found.maximum))
    if cell < _ROOMY:
        values = [value.replace(" ", "") for value in values]
    return "".join(value.rjust(cell) for value in values)


def format_ratio(value: float) -> str:
    """Write how many times one value another is."""
    return f"{value:,.0f}×" if value >= 10 else f"{value:.1f}×"


def _drawn(histogram: Histogram | None, ends: tuple[str, str], width: int) -> list[Line]:
    if histogram is None:
        return [titled(Label.SAME, width)]
    cells = max(cells for cells in range(1, max(width, 1) + 1) if BINS % cells == 0)
    upper, lower = bars(histogram.counts.reshape(cells, -1).sum(axis=1))
    scale = Label.LOG_SCALE if histogram.log else ""
    middle = scale.center(max(cells - len(ends[0]) - len(ends[1]), 0))
    return [[Piece(upper)], [Piece(lower)], [Piece(f"{ends[0]}{middle}{ends[1]}", "dim")]]


def bars(counts: I8) -> tuple[str, str]:
    """Draw bars two cells high, of which every count above zero shows at least an eighth."""
    height = np.ceil(counts * (2.0 * _EIGHTHS) / max(int(counts.max()), 1)).astype(int)
    upper = "".join(BLOCKS[max(eighths - _EIGHTHS, 0)] for eighths in height.tolist())
    lower = "".join(BLOCKS[min(eighths, _EIGHTHS)] for eighths in height.tolist())
    return upper.rstrip(), lower.rstrip()


def launch_lines(facts: Facts | None, width: int) -> list[Line]:
    """Say how a kernel was launched, or what a copy moved."""
    if facts is None or not facts.complete:
        return fields([(Label.LAUNCH, ELLIPSIS)], width)
    if facts.unread:
        reason = wrap(f"launch unknown: {facts.unread}", width, 6)
        return [[Piece(part, "warning")] for part in reason]
    if facts.moved:
        return fields(_moved(facts.moved), width)
    return _launched(facts.launched, width) if facts.launched else []


def _moved(moved: Moved) -> list[tuple[Label, str]]:
    sizes, ns = moved
    rate = f" at {format_bytes(sizes.total * 1e9 / ns)}/s" if ns else ""
    each = f"{Label.P50} {format_bytes(sizes.p50)}, {Label.MAX} {format_bytes(sizes.maximum)}"
    return [
        (Label.MOVED, f"{format_bytes(sizes.total)}{rate}"),
        (Label.EACH, each if sizes.count > 1 else ""),
    ]


def _launched(launched: UsedConfigs, width: int) -> list[Line]:
    if launched.number == 1:
        return fields(_config(launched.used[0].config), width)
    title = f"launched in {format_count(launched.number)} {Label.WAYS}"
    lines = [titled(Label.WAYS, width, title)]
    before: list[str] = []
    for config, times, ns in launched.used:
        share = format_percent(ns, launched.ns).rjust(8)
        often = f"{format_count(times)}×".rjust(9)
        shape = cut_start(_shape(config), width - len(share) - len(often) - 2)
        lines.append([Piece(share), Piece(often, "dim"), Piece(f"  {shape}")])
        besides = _besides(config)
        if besides != before:
            lines += [[Piece(f"{'':10}{part}", "dim")] for part in _joined(besides, width - 10)]
        before = besides
    return lines


def _joined(parts: list[str], width: int) -> list[str]:
    """``parts`` on as few lines as they fit, none of them torn."""
    lines: list[str] = []
    for part in parts:
        if lines and width_of(lines[-1]) + 2 + width_of(part) <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(cut_start(part, width))
    return lines


def _config(config: LaunchConfig) -> list[tuple[Label, str]]:
    """One configuration, field by field."""
    blocks = "" if config.blocks is None else format_counted(config.blocks, "block", "blocks")
    threads = "" if config.threads is None else format_counted(config.threads, "thread", "threads")
    return [
        (Label.GRID, _with_sum(config.grid, blocks)),
        (Label.BLOCK, _with_sum(config.block, threads)),
        (Label.CLUSTER, _dim(config.cluster)),
        (Label.REGISTERS, "" if config.registers is None else f"{config.registers} per thread"),
        (Label.SHARED, ", ".join(_shared(config))),
        (Label.LOCAL, f"{_memory(config.local)} per thread" if config.local else ""),
    ]


def _with_sum(dim: Dim | None, product: str) -> str:
    text = _dim(dim)
    return f"{text} = {product}" if "×" in text else product


def _dim(dim: Dim | None) -> str:
    """``128 × 4``: trailing ones say nothing."""
    if dim is None:
        return ""
    used = max((place for place in range(3) if dim[place] != 1), default=0)
    return " × ".join(f"{size:,}" for size in dim[: used + 1])


def _shape(config: LaunchConfig) -> str:
    """Blocks of threads."""
    blocks = _dim(config.grid).replace(" ", "")
    threads = _dim(config.block).replace(" ", "")
    if not threads:
        return f"{blocks} blocks" if blocks else ""
    return f"{blocks} of {threads} threads" if blocks else f"{threads} threads"


def _besides(config: LaunchConfig) -> list[str]:
    registers = [] if config.registers is None else [f"{config.registers} {Label.REGISTERS}"]
    shared = (config.static_shared or 0) + (config.dynamic_shared or 0) or config.shared
    return [*registers, *([f"{_memory(shared)} {Label.SHARED}"] if shared else [])]


def _shared(config: LaunchConfig) -> list[str]:
    sizes = {"static": config.static_shared, "dynamic": config.dynamic_shared}
    parts = [f"{_memory(size)} {name}" for name, size in sizes.items() if size]
    return parts or ([f"{_memory(config.shared)} static + dynamic"] if config.shared else [])


def _memory(size: int) -> str:
    """On-chip memory comes in powers of two."""
    return f"{size / 1024:.4g} KiB" if size >= 1024 else f"{size} B"


def window_lines(facts: Facts | None, width: int) -> list[Line]:
    """Say in which part of their time the GPUs ran it; of several the least and the most."""
    shares = facts.windows if facts else ()
    if not shares:
        return []
    texts = [format_percent(one.ns, one.window) for one in shares]
    if len(texts) > 1:
        order = sorted(range(len(shares)), key=lambda at: shares[at].ns / shares[at].window)
        texts = [f"{texts[at]} {shares[at].label}" for at in (order[-1], order[0])]
    return listed(Label.OF_WINDOW, _joined(texts, width - LABEL))


def queue_lines(facts: Facts | None, width: int) -> list[Line]:
    """Say how long the work waited."""
    if facts is None or facts.queue is None:
        return []
    p50, p99 = format_ns(facts.queue.p50), format_ns(facts.queue.p99)
    texts = [f"{Label.P50} {p50}", f"{Label.P99} {p99}"]
    return listed(Label.QUEUED, _joined(texts, width - LABEL))


def place_lines(facts: Facts | None, width: int) -> list[Line]:
    """List the GPUs, streams, … it ran on, where there are several."""
    lines: list[Line] = []
    for title, parts in (facts.on if facts else {}).items():
        lines += listed(title, _joined(_shares(parts, width - LABEL), width - LABEL))
    return lines


def _shares(parts: HeaviestParts, width: int) -> list[str]:
    """Name and share of each part, of which only the name is ever cut."""
    named = []
    for part in parts.heaviest:
        share = format_percent(part.value, parts.whole)
        named.append(f"{cut(part.name, max(width - len(share) - 1, 1))} {share}")
    more = parts.number - len(named)
    return [*named, *([f"{format_count(more)} more"] if more else [])]
