"""Write how near the GPUs were to their peaks, for ``flame info`` and the printed view."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flame.core.analysis.node_activities import chosen_rows
from flame.core.efficiency.by_operator import OperatorRows, by_operator
from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.efficiency.verdict import BoundVerdict, judge
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filters import Filter
from flame.core.shown_text import cut, printable
from flame.core.units import format_counted, format_flops, format_ns, format_percent

if TYPE_CHECKING:
    from flame.core.efficiency.summary import WorkSummary

_UNKNOWN = "–"
_MOST_OPERATORS = 8


def work_facts(profile: Profile) -> dict[str, object] | None:
    """Return ``efficiency`` of ``flame info --json``; null where nothing tells of any work.

    Shares are in percent of the time of kernels that are rated, null where they are not known.
    """
    from flame.core.efficiency.summary import summarize_work

    summary = summarize_work(profile)
    if summary is None:
        return None
    work, steps = summary.work, summary.steps
    return {
        "peaks": list(_peak_facts(profile, summary)),
        **_row_facts(summary.counts, 0),
        "bare_operators": work.bare,
        "bare_flops": work.bare_flops,
        "steps": None
        if steps is None
        else {
            "count": steps.steps,
            "wall_ns": steps.wall_ns,
            "hfu_percent": _percent(steps.hardware),
            "mfu_percent": None if steps.model is None else _percent(steps.model),
        },
        "operators": [
            {"name": frame.name, **_row_facts(summary.operators.counts, row)}
            for row, frame in enumerate(summary.operators.frames)
        ],
    }


def _peak_facts(profile: Profile, summary: WorkSummary) -> Iterator[dict[str, object]]:
    for device, peak in zip(profile.devices, summary.peaks, strict=True):
        yield {
            "device": device.id,
            "source_file": device.source,
            "name": device.name,
            "tflops": None if peak is None else dict(sorted(peak.tflops.items())),
            "memory_bytes_per_s": None if peak is None else peak.bandwidth or None,
            "source": None if peak is None else peak.source or None,
            "memory_source": None if peak is None else peak.bandwidth_source or None,
        }


def _row_facts(table: WorkCounts, at: int) -> dict[str, object]:
    counts = table.map(lambda column: column[at : at + 1])
    verdict = BoundVerdict(int(judge(counts)[0]))
    return {
        "kernel_ns": int(counts.kernel_ns[0]),
        "kernels": int(counts.covered[0]),
        "covered_ns": int(counts.covered_ns[0]),
        "covered_percent": _percent(counts.coverage[0]),
        "flops": int(counts.flops[0]),
        "bytes": int(counts.bytes[0]) or None,
        "tflops": _rounded(counts.tflops[0]),
        "gb_per_s": _rounded(counts.gb_per_s[0]),
        "rated_ns": int(counts.rated_ns[0]),
        "rated_percent": _percent(counts.rated_coverage[0]),
        "compute_share": _percent(counts.compute_share[0]),
        "compute_share_tf32": _percent(counts.fast_compute_share[0]),
        "bandwidth_share": _percent(counts.bandwidth_share[0]),
        "bound_share": _percent(counts.bound_share[0]),
        "waste_ns": int(counts.waste[0]) if counts.rated[0] else None,
        "causal_ns": int(counts.causal_ns[0]),
        "verdict": verdict.key,
        "why_not": verdict.why or None,
    }


def _percent(share: float) -> float | None:
    return _rounded(100 * share)


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def work_lines(profile: Profile, width: int) -> list[str]:
    """Tell it in lines of ``width`` cells: the whole, its peaks, the operators; none without work.

    What names say is made printable.
    """
    from flame.core.efficiency.summary import summarize_work

    summary = summarize_work(profile)
    if summary is None:
        return []
    told = [*_whole(summary.counts), *_steps(summary), *_bare(summary), *_lacks(profile, summary)]
    if summary.counts.covered[0]:
        told += _sources(profile, summary)
    return _laid_out(told, summary.operators, width)


def tree_work_lines(
    profile: Profile, tree: StackTree, filters: tuple[Filter, ...], width: int
) -> list[str]:
    """Tell in lines of what ``tree`` shows, which `project` made with ``filters``."""
    if tree.metric.table != "gpu" or not profile.sized_operators:
        return []
    rows = chosen_rows(profile, tree, filters)
    operators = count_operators(profile, rows)
    if operators is None:
        return []
    told = _whole(whole_of(profile, operators, rows))
    return _laid_out([*told], by_operator(profile, operators), width)


def _laid_out(told: Sequence[str], operators: OperatorRows, width: int) -> list[str]:
    lines = [line for text in told for line in textwrap.wrap(printable(text), width)]
    return [*lines, *(cut(printable(line), width) for line in _table(operators))]


def _whole(counts: WorkCounts) -> Iterator[str]:
    verdict = BoundVerdict(int(judge(counts)[0]))
    if not counts.covered[0]:
        return
    yield (
        f"operators with a formula, {_share(counts.coverage[0])} of kernel time: "
        f"{format_flops(int(counts.flops[0]))}, {_rate(counts.tflops[0])} TFLOP/s"
    )
    if not np.isnan(counts.compute_share[0]):
        shares = [f"{_share(counts.compute_share[0])} of compute peak"]
        if not np.isnan(counts.bandwidth_share[0]):
            shares.append(f"at least {_share(counts.bandwidth_share[0])} of bandwidth")
            shares.append(f"{_share(counts.bound_share[0])} of the bound")
        waste = format_ns(int(counts.waste[0]))
        of = f"over {_share(counts.rated_coverage[0])} of kernel time"
        yield f"{', '.join(shares)}, {of}; {waste} above the bound"
    yield f"verdict: {verdict.words}" if verdict.is_known else verdict.words


def _steps(summary: WorkSummary) -> Iterator[str]:
    if (steps := summary.steps) is not None:
        model = "" if steps.model is None else f", MFU {_share(steps.model)}"
        number = format_counted(steps.steps, "step", "steps")
        yield f"of the wall time of {number}: HFU {_share(steps.hardware)}{model}"


def _bare(summary: WorkSummary) -> Iterator[str]:
    work = summary.work
    if work.bare:
        number = format_counted(work.bare, "operator", "operators")
        yield f"{number} with a formula had no kernel: {format_flops(work.bare_flops)}"


def _lacks(profile: Profile, summary: WorkSummary) -> Iterator[str]:
    """What was not recorded of the operators, and what is made of that."""
    frames = [profile.frames[frame] for frame in summary.work.costs]
    if any(frame.get("types") and not frame.get("strides") for frame in frames):
        yield "strides were not recorded: tensors are taken for dense"
    if not profile.work_options.dtype and not all(frame.get("types") for frame in frames):
        yield "types were not recorded: --dtype bf16 says what tensors are"


def _sources(profile: Profile, summary: WorkSummary) -> Iterator[str]:
    told = dict[str, None]()
    for device, peak in zip(profile.devices, summary.peaks, strict=True):
        if peak is None:
            told[f"{device.name or 'a GPU without a name'}: no peak known: --peak"] = None
            continue
        peaks = ", ".join(f"{name} {value:g}" for name, value in peak.tflops.items())
        memory = f"{peak.bandwidth / 1e9:,.0f} GB/s" if peak.bandwidth else "bandwidth not known"
        told[f"peak of {device.name} (TFLOP/s): {peaks}; {memory}; from {peak.source}"] = None
    yield from told


_COLUMNS = ("GPU time", "TFLOP/s", "% peak", "% bandwidth", "% bound")


def _table(rows: OperatorRows) -> Iterator[str]:
    counts = rows.counts
    if not rows.frames:
        return
    head = f"{_COLUMNS[0]:>9} {_COLUMNS[1]:>8} {_COLUMNS[2]:>7} {_COLUMNS[3]:>11} {_COLUMNS[4]:>8}"
    yield f"{head}  {'verdict':<15} operator"
    verdicts = judge(counts)
    for row, frame in enumerate(rows.frames[:_MOST_OPERATORS]):
        shares: Sequence[float] = (
            counts.compute_share[row],
            counts.bandwidth_share[row],
            counts.bound_share[row],
        )
        compute, memory, bound = (_cell(100 * share) for share in shares)
        left = f"{format_ns(int(counts.covered_ns[row])):>9} {_rate(counts.tflops[row]):>8}"
        yield (
            f"{left} {compute:>7} {memory:>11} {bound:>8}  "
            f"{BoundVerdict(int(verdicts[row])).title:<15} {frame.name}"
        )


def _cell(value: float) -> str:
    return "" if np.isnan(value) else format_percent(value, 100).removesuffix(" %")


def _share(value: float) -> str:
    return _UNKNOWN if np.isnan(value) else format_percent(value, 1)


def _rate(value: float) -> str:
    return _UNKNOWN if np.isnan(value) else f"{value:.3g}"
