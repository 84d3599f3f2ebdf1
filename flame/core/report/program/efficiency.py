"""Tell how near the GPUs were to their peaks, in all and by operator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.efficiency.by_operator import work_by_operator
from flame.core.efficiency.moved_bytes import TWICE, MovedBytes, moved_by_operator
from flame.core.efficiency.precisions import precisions_of
from flame.core.efficiency.summary import WorkSummary, headline, summarize_work
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.memory import MemoryShortError
from flame.core.names.tensors import tensors_text, types_text
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share
from flame.core.units import format_counted

NAME, TITLE = "efficiency", "How near the GPUs were to their peaks"

WHY = "no operator with shapes was recorded"
HOW = "torch.profiler.profile(record_shapes=True)"

_COLUMNS = (
    TableColumn("operator", "operator"),
    TableColumn("ns", "GPU time", "ns"),
    TableColumn("percent", "of kernel time", "percent"),
    TableColumn("bound_percent", "of bound", "percent"),
    TableColumn("waste_ns", "above bound", "ns"),
    TableColumn("verdict", "verdict"),
    TableColumn("compute_percent", "of compute", "percent"),
    TableColumn("compute_tf32_percent", "if TF32", "percent"),
    TableColumn("bandwidth_percent", "of bandwidth", "percent"),
    TableColumn("rated_percent", "rated", "percent"),
    TableColumn("tflops", "TFLOP/s", "number"),
    TableColumn("gb_per_s", "rate", "GB/s"),
    TableColumn("flops", "FLOPs", "FLOP"),
    TableColumn("bytes", "bytes, least", "bytes"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("why_not", ""),
)
_OF_MEMORY = (
    TableColumn("moved_bytes", "moved", "bytes"),
    TableColumn("moved_ratio", "× bytes", "ratio"),
)
"""What memory moved, where GPU metrics tell."""

_OF_SHAPES = (
    _COLUMNS[0],
    TableColumn("shapes", "shapes"),
    TableColumn("types", "types"),
    *_COLUMNS[1:],
    TableColumn("least_bytes", "bytes, each", "bytes"),
)
_PEAKS = (
    TableColumn("gpu", "GPU"),
    TableColumn("name", "model"),
    TableColumn("precision", "type"),
    TableColumn("tflops", "peak, TFLOP/s", "number"),
    TableColumn("gb_per_s", "memory", "GB/s"),
    TableColumn("flops_per_byte", "ridge, FLOP/byte", "number"),
    TableColumn("source", "peak by"),
)


def efficiency_section(scope: Scope) -> Section:
    """Tell the operators with a formula, most GPU time first, and what all of them come to.

    Shares are of the time of the kernels that are rated alone, which stands beside them.
    """
    profile = scope.profile
    found = summarize_work(profile, rows=scope.rows) if profile.sized_operators else None
    if found is None:
        return Section(NAME, TITLE, why=WHY, how=HOW)
    moved = _moved(scope, found)
    tables = (
        Table.of("rows", "", (*_COLUMNS, *_OF_MEMORY), _rows(found, moved)),
        Table.of("peaks", "by these peaks", _PEAKS, _peaks(scope, found)),
        Table.of("shapes", "by shapes", _OF_SHAPES, _shapes(scope, found)),
    )
    return Section(NAME, TITLE, _facts(found), tables, tuple(_notes(scope, found, moved)))


def _moved(scope: Scope, found: WorkSummary) -> MovedBytes | None:
    """What memory moved of each operator; the section of the metrics says why if not read."""
    try:
        return moved_by_operator(scope.profile, scope.rows, found.operators)
    except MemoryShortError:
        return None


def _facts(found: WorkSummary) -> dict[str, object]:
    counts = found.counts
    names = [column.key for column in _COLUMNS[1:]]
    facts: dict[str, object] = dict(zip(names, *_cells(counts, counts), strict=True))
    steps = found.steps
    return {
        "kernel_ns": int(counts.kernel_ns[0]),
        **facts,
        "causal_ns": int(counts.causal_ns[0]),
        "hfu_percent": None if steps is None else _percent(steps.hardware),
        "mfu_percent": None if steps is None or steps.model is None else _percent(steps.model),
    }


def _rows(found: WorkSummary, moved: MovedBytes | None) -> Iterator[tuple[Value, ...]]:
    rows = found.operators
    cells = _cells(rows.counts, found.counts)
    for row, (frame, told) in enumerate(zip(rows.frames, cells, strict=True)):
        ratio = np.nan if moved is None else moved.ratio[row]
        known = moved is not None and not np.isnan(ratio)
        measured = round(float(moved.measured[row])) if moved is not None and known else None
        yield (frame.name, *told, measured, _number(ratio))


def _shapes(scope: Scope, found: WorkSummary) -> Iterator[tuple[Value, ...]]:
    """The operators by the shapes and types that they were given, most GPU time first."""
    rows = work_by_operator(scope.profile, scope.rows, shapes=True)
    assert rows is not None
    costs = {scope.profile.frames[at]: cost for at, cost in found.work.costs.items()}
    for frame, told in zip(rows.frames, _cells(rows.counts, found.counts), strict=True):
        yield (
            *(frame.name, tensors_text(frame.get("shapes"))),
            types_text(frame.get("types")) or scope.dtype or None,
            *told,
            costs[frame].bytes,
        )


def _cells(counts: WorkCounts, whole: WorkCounts) -> Iterator[tuple[Value, ...]]:
    """The cells of each row of ``counts``, below the first column."""
    slow, fast, verdicts = counts.compute_share, counts.fast_compute_share, judge(counts)
    bound, memory, coverage = counts.bound_share, counts.bandwidth_share, counts.rated_coverage
    tflops, gb_per_s = counts.tflops, counts.gb_per_s
    for row, verdict in enumerate(map(BoundVerdict, verdicts.tolist())):
        is_rated, is_covered = counts.rated[row], counts.covered[row]
        yield (
            int(counts.covered_ns[row]),
            share(int(counts.covered_ns[row]), int(whole.kernel_ns[0])),
            _percent(bound[row]),
            int(counts.waste[row]) if is_rated and counts.memory_known else None,
            verdict.key if is_covered else None,
            _percent(slow[row]),
            _percent(fast[row]) if slow[row] != fast[row] else None,
            _percent(memory[row]),
            _percent(coverage[row]) if is_rated else None,
            _number(tflops[row]),
            _number(gb_per_s[row]),
            int(counts.flops[row]),
            int(counts.bytes[row]) or None,
            int(is_covered),
            (verdict.why or None) if is_covered else None,
        )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _percent(part: float) -> float | None:
    return _number(100 * part)


def _peaks(scope: Scope, found: WorkSummary) -> Iterator[tuple[Value, ...]]:
    """The peaks of the GPUs of the trace for the types that were multiplied."""
    profile = scope.profile
    for gpu in scope.gpus:
        peak = profile.peaks[gpu.device] if gpu.device >= 0 else None
        for precision in precisions_of(profile, found.work) if peak else ():
            assert peak is not None
            ridge = peak.ridge(precision)
            yield (
                gpu.label,
                profile.devices[gpu.device].name,
                precision,
                peak.tflops.get(precision),
                _number(peak.bandwidth / 1e9) if peak.bandwidth else None,
                None if ridge is None else _number(ridge),
                peak.source,
            )


def _notes(scope: Scope, found: WorkSummary, moved: MovedBytes | None) -> Iterator[str]:
    counts, work = found.counts, found.work
    if not counts.covered[0]:
        yield "nothing that passes is of an operator with a formula"
        return
    if said := headline(found):
        yield f"in all {said}"
    part = share(int(counts.covered_ns[0]), int(counts.kernel_ns[0]))
    yield f"operators with a formula have {part or 0:.1f} % of the time of kernels"
    yield f"in all: {found.verdict.words}"
    if not any(scope.profile.peaks):
        yield "no peak of these GPUs is known: --peak bf16=989,mem=3350 says it"
    if counts.causal_ns[0]:
        yield "shares count what a causal mask leaves, FLOPs all"
    frames = scope.profile.frames
    if not all(frames[at].get("types") for at in work.costs):
        told = f"taken for {scope.dtype}" if scope.dtype else "--dtype bf16 says what they are"
        yield f"types of some inputs were not recorded: {told}"
    if moved is not None and (moved.ratio > TWICE).any():
        yield "memory moved more than twice the bytes that were counted: in two passes, or more"
    if work.bare:
        yield f"{format_counted(work.bare, 'operator', 'operators')} without a kernel: in no row"
