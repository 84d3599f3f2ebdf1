"""Write what the details say of the work of operators: rates, shares of the peak, shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.efficiency.columns import BOUND, COMPUTE, WorkColumns, format_rate
from flame.core.frame import Frame
from flame.core.names.tensors import tensors_text
from flame.core.units import format_bytes, format_count, format_flops, format_ns, format_percent
from flame.tui.details.labels import Label, fields, titled
from flame.tui.details.work_facts import RatedOn, WorkFacts
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, printable

_SHAPES = 4
_PEAKS = 2


def work_lines(facts: WorkFacts | None, width: int) -> list[list[Line]]:
    """Write the work and how near it is to the peak, then the shapes with the most time."""
    if facts is None:
        return []
    return [fields(_facts(facts), width), _shapes(facts, width)]


def work_words(facts: WorkFacts | None) -> Iterator[str]:
    """Write the same in short."""
    if facts is None:
        return
    counts = facts.counts
    yield f"{format_rate(float(counts.tflops[0]))} TFLOP/s"
    if facts.rated_on:
        yield f"{_cell(facts, BOUND)} of bound {_over(counts.rated_coverage[0])}"
    yield facts.verdict.title if facts.verdict.is_known else facts.verdict.why


def _facts(found: WorkFacts) -> Iterator[tuple[Label, str]]:
    counts = found.counts
    moved = int(counts.bytes[0])
    data = f", {format_bytes(moved)} at least" if moved else ""
    yield Label.WORK, f"{format_flops(int(counts.flops[0]))}{data}"
    rate = f"{format_rate(float(counts.tflops[0]))} TFLOP/s"
    if moved:
        rate += f", {format_bytes(1e9 * float(counts.gb_per_s[0]))}/s"
    yield Label.RATE, f"{rate} {_over(counts.coverage[0])}"
    if moved:
        yield Label.INTENSITY, f"{counts.intensity[0]:,.1f} FLOP/byte{_ridges(found)}"
    if not np.isnan(counts.compute_share[0]):
        yield Label.OF_PEAK, f"{', '.join(_shares(found))} {_over(counts.rated_coverage[0])}"
        yield Label.WASTE, format_ns(int(counts.waste[0])) if counts.memory_known else ""
    yield Label.VERDICT, found.verdict.words
    if counts.causal_ns[0]:
        part = format_percent(int(counts.causal_ns[0]), int(counts.rated_ns[0]))
        yield Label.CAUSAL, f"{part} of that time: the mask is left out of shares, not of FLOPs"
    yield from ((Label.GPU_PEAK, _peak(one)) for one in found.rated_on[:_PEAKS])


def _over(coverage: float) -> str:
    """Of how much of the time of kernels that is."""
    return f"over {_percent(coverage)} of kernel time"


def _percent(part: float) -> str:
    return format_percent(round(1e6 * float(part)), 10**6)


def _shares(found: WorkFacts) -> Iterator[str]:
    counts = found.counts
    yield f"{_cell(found, COMPUTE)} compute"
    if not np.isnan(counts.bandwidth_share[0]):
        yield f"at least {_percent(counts.bandwidth_share[0])} bandwidth"
        yield f"{_cell(found, BOUND)} of bound"


def _cell(found: WorkFacts, key: str) -> str:
    return WorkColumns(found.counts).cell(0, key)


def _ridges(found: WorkFacts) -> str:
    """From which intensity on compute is the bound; differs by GPU and type."""
    ridges = {f"{one.ridge:,.0f}" for one in found.rated_on if one.ridge is not None}
    return f", ridge {' or '.join(sorted(ridges))}" if ridges else ""


def _peak(one: RatedOn) -> str:
    memory = f", {format_bytes(one.bandwidth)}/s" if one.bandwidth else ""
    rate = f"{one.tflops:,.4g} TFLOP/s {one.precision.upper()}"
    return f"{rate}{memory}: {one.source}"


def _shapes(found: WorkFacts, width: int) -> list[Line]:
    """Each operator by its shapes: its part of the time, % of bound."""
    counts, frames = found.shapes.counts, found.shapes.frames
    columns, whole = WorkColumns(counts), int(counts.covered_ns.sum())
    title = f"{Label.BY_SHAPES}, of {format_count(len(frames))}: time, % of bound"
    lines = [titled(Label.BY_SHAPES, width, title)]
    for row, frame in enumerate(frames[:_SHAPES]):
        share = format_percent(int(counts.covered_ns[row]), whole).rjust(7)
        bound = columns.cell(row, BOUND).rjust(9)
        text = cut_start(_called(frame), max(width - len(share) - len(bound) - 2, 4))
        lines.append([Piece(share), Piece(bound, "dim"), Piece(f"  {text}")])
    return lines


def _called(frame: Frame) -> str:
    name = frame.name.removeprefix("aten::")
    shapes = frame.get("shapes")
    return printable(f"{name} {tensors_text(shapes)}" if shapes else name)
