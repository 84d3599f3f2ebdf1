"""Write what a trace holds (``flame info``): as JSON for scripts, as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flame.console.iterations import iteration_facts, iteration_lines, step_facts
from flame.console.memory_info import memory_facts, memory_lines
from flame.console.metric_info import metric_facts, metric_lines
from flame.console.recorder_words import unusual_counts
from flame.console.trace_words import notes
from flame.console.work_info import work_facts, work_lines
from flame.core.analysis.heaviest import Heaviest
from flame.core.analysis.trace_summary import Gap, SourceTotal, TraceSummary, summarize
from flame.core.analysis.utilization import Utilization
from flame.core.analysis.words.busy import busy_share
from flame.core.analysis.words.formats import Terms, level_word
from flame.core.loading.inputs import Inputs
from flame.core.model.meta import Device, DeviceFacts, Process, Share, file_labels
from flame.core.model.profile import Profile
from flame.core.shown_text import cells, cut, printable
from flame.core.units import (
    format_bytes,
    format_count,
    format_ns,
    format_percent,
    format_shares,
    format_value,
)

if TYPE_CHECKING:
    from flame.core.rank_summary.summary import RankSummary

_ATTRIBUTION = {
    "launch": "known by launch",
    "kernel": "known by kernel: those of all its launches are one, shared out by time",
    "mixed": "known by launch of some kernels; of others all launches are one, shared out by time",
}
CHUNKS = 60
"""Equal parts of a GPU's window, of which is told how busy it was."""

HEAVIEST = ("kernels", "copies", "communication", "ranges", "modules", "functions")

_MOST_LISTED, _MOST_SHORT = 10, 5
_LABEL, _LONGEST_LABEL = 12, 40
_TITLE = 20
_NARROWEST = 40


def facts(profile: Profile, inputs: Inputs) -> dict[str, object]:
    """Return the contract of ``flame info --json``: times in ns, shares in percent of the GPU time.

    ``path`` is null where there are several ``sources``, of which the rest is the sum, and which
    ``devices`` and ``processes`` name by place; ``measures`` is what files of stacks have measured.
    ``categories`` are shares of the GPU time of kernels alone. ``pc_samples`` and ``iterations``
    are null where there are none; ``steps`` are all iterations. ``ranks`` is null but of a summary
    of ranks, which has no processes. ``counters`` of a source are the recorder's, for diagnosis:
    their names may change.
    """
    summary, ranks = summarize(profile), _summary_of(profile)
    meta, samples = summary.meta, summary.pc_samples
    return {
        "path": _path(inputs),
        "sources": [_source(total) for total in summary.sources],
        "format": meta.format,
        "producer": meta.producer,
        "synthetic": meta.synthetic,
        "schema_version": meta.schema_version,
        "versions": dict(meta.versions),
        "devices": [
            {
                "id": device.id,
                "name": device.name,
                "source": device.source,
                "sources": list(device.sources),
                "uuid": device.uuid or None,
                "chip": device.facts.chip or None,
                "sms": device.facts.sms,
                "memory_bytes": device.facts.memory,
                "memory_bytes_per_s": device.facts.bandwidth,
                "capability": device.facts.capability or None,
            }
            for device in summary.devices
        ],
        "processes": [
            {"pid": process.pid, "name": process.name, "source": process.source}
            for process in (summary.processes if ranks is None else ())
        ],
        "activities": summary.counts,
        "gpu_time_ns": summary.gpu_time,
        "duration_ns": summary.duration,
        "utilization": [
            _utilization(summary, each, kernels)
            for each, kernels in zip(summary.utilizations, summary.kernels_busy, strict=True)
        ],
        "heaviest": _heaviest(summary.heaviest),
        "idle_gaps": [_gap(summary, gap) for gap in summary.gaps],
        "coverage": {key: _share(share) for key, share in summary.coverage.items()},
        "categories": {key: _share(share) for key, share in summary.categories.items()},
        "pc_samples": None if samples is None else samples._asdict(),
        "graph_nodes": {
            "activities": summary.graph_nodes.activities,
            "captured": summary.graph_nodes.captured,
        },
        "measures": [
            {"key": metric.key, "title": metric.title, "unit": metric.unit, "total": total}
            for metric, total in summary.measures
        ],
        "iterations": iteration_facts(summary.iterations),
        "steps": step_facts(profile, summary.iterations),
        "memory": memory_facts(profile),
        "efficiency": work_facts(profile),
        "gpu_metrics": metric_facts(summary),
        "levels": list(summary.levels),
        "ranks": None if ranks is None else _rank_facts(ranks),
        "warnings": list(summary.warnings),
    }


def _summary_of(profile: Profile) -> RankSummary | None:
    """The summary of ranks that this is, for which alone all that tells of ranks is imported."""
    if profile.ranks is None:
        return None
    from flame.core.rank_summary.opened import summary_of

    return summary_of(profile)


def _rank_facts(ranks: RankSummary) -> dict[str, object]:
    from flame.console.rank_info import rank_facts

    return rank_facts(ranks)


def _source(total: SourceTotal) -> dict[str, object]:
    label, meta = total.source.label, total.source.meta
    return {
        "label": label,
        "path": meta.path,
        "format": meta.format,
        "producer": meta.producer,
        "schema_version": meta.schema_version,
        "rank": meta.rank,
        "versions": dict(meta.versions),
        "counters": dict(meta.counters),
        "activities": total.activities,
        "gpu_time_ns": total.gpu_time,
    }


def _gpu(summary: TraceSummary, device: int) -> dict[str, object]:
    """The GPU at this place: its number and its file, null where they are not known."""
    if device < 0:
        return {"device": None, "source": None}
    return {"device": summary.devices[device].id, "source": summary.devices[device].source}


def _utilization(summary: TraceSummary, each: Utilization, kernels: int) -> dict[str, object]:
    busy, _ = each.in_cells(each.window, CHUNKS)
    return {
        **_gpu(summary, each.device),
        "begin_ns": each.window.low,
        "window_ns": each.length,
        "busy_ns": each.busy,
        "idle_ns": each.idle,
        "busy_percent": round(100 * each.busy / each.length, 3) if each.length else None,
        "kernels_busy_ns": kernels,
        "copies_alone_ns": each.busy - kernels,
        "chunks": busy.tolist(),
    }


def _heaviest(heaviest: Heaviest | None) -> dict[str, object]:
    return {
        kind: [
            {
                "name": each.name,
                "place": each.place,
                "captured": each.captured,
                "ns": each.value,
                "count": each.activities,
            }
            for each in (getattr(heaviest, kind).heaviest if heaviest else ())
        ]
        for kind in HEAVIEST
    }


def _gap(summary: TraceSummary, gap: Gap) -> dict[str, object]:
    times = {"begin_ns": gap.begin, "ns": gap.length}
    return {**_gpu(summary, gap.device), **times, "before": gap.before, "after": gap.after}


def _share(share: Share) -> dict[str, object]:
    return {"ns": share.ns, "percent": round(share.percent, 3)}


def _path(inputs: Inputs) -> str | None:
    return inputs.respell(str(inputs.paths[0])) if len(inputs.paths) == 1 else None


def as_json(profile: Profile, inputs: Inputs) -> str:
    """Write `facts` as JSON in plain ASCII, which no pipe, terminal or locale can damage."""
    return json.dumps(facts(profile, inputs), indent=2) + "\n"


def as_text(profile: Profile, inputs: Inputs, width: int = 100) -> str:
    """Write `facts` for people: in the order one asks, aligned, what is missing last.

    Sentences are wrapped at ``width`` cells.
    """
    summary, ranks = summarize(profile), _summary_of(profile)
    sections = [
        [_path(inputs) or inputs.title],
        list(_sources(summary)),
        list(_capture(summary, ranks)),
        list(_activities(summary)),
        list(memory_lines(profile)),
        list(_busy(summary)),
        list(metric_lines(summary)),
        list(_kernels(summary, width)),
        list(_gaps(summary, width)),
        list(_coverage(summary)),
        list(_categories(summary)),
        list(_samples(summary)),
        work_lines(profile, max(width, _NARROWEST)),
        list(iteration_lines(profile, summary.iterations)),
        notes(summary.warnings, max(width, _NARROWEST)),
    ]
    return "\n\n".join("\n".join(map(printable, lines)) for lines in sections if lines) + "\n"


def _capture(summary: TraceSummary, ranks: RankSummary | None) -> Iterator[str]:
    meta = summary.meta
    yield _line("format", " ".join(filter(None, (meta.format, meta.schema_version))))
    yield _line("producer", meta.producer or "unknown")
    if meta.versions:
        yield _line("ran on", ", ".join(f"{name} {text}" for name, text in meta.versions.items()))
    if meta.synthetic:
        yield _line("synthetic", "no GPU ran this")
    if unusual := list(unusual_counts(total.source.meta.counters for total in summary.sources)):
        yield from _list("recorder", unusual)
    if meta.rank is not None and not summary.is_merged:
        yield _line("rank", str(meta.rank))
    if summary.timed:
        yield _line("duration", format_ns(summary.duration))
    if not summary.resolved:
        devices = [
            "  ".join(filter(None, (_numbered(summary, "GPU", each.id, each), _can(each.facts))))
            for each in summary.devices
        ]
        yield from _list("GPUs", devices or list(summary.device_names))
    known = [process for process in summary.processes if process.pid >= 0 or not summary.resolved]
    if ranks is not None:
        from flame.console.rank_info import rank_lines

        for label, texts in rank_lines(ranks):
            yield from _list(label, texts)
    elif known or not summary.resolved:
        processes = [_numbered(summary, "pid", process.pid, process) for process in known]
        yield from _list("processes", processes)
    yield _line(
        "levels", ", ".join(_level(level, summary.terms) for level in summary.levels) or "none"
    )


def _level(level: str, terms: Terms) -> str:
    """A level as options spell it, and what the screens call it."""
    word = level_word(level, terms)
    return level if word == level else f"{level} ({terms.all})"


def _sources(summary: TraceSummary) -> Iterator[str]:
    """What each of several files has, in columns."""
    if not summary.is_merged:
        return
    labels = [printable(total.source.label) for total in summary.sources]
    width = min(max(map(cells, labels)), _LONGEST_LABEL)
    for total, label in zip(summary.sources, labels, strict=True):
        amount = f"{format_count(total.activities):>12}"
        if not summary.resolved:
            amount = f"{format_ns(total.gpu_time):>10}{amount}"
        padded = cut(label, width) + " " * max(width - cells(label), 0)
        yield f"{padded}{amount}  {printable(total.source.meta.path)}"


def _numbered(summary: TraceSummary, word: str, number: int, item: Device | Process) -> str:
    name = item.name or "(no name recorded)"
    sources = [total.source for total in summary.sources]
    label = f"  {file_labels(item, sources)}" if summary.is_merged else ""
    return f"{word} {number if number >= 0 else '?'}  {name}{label}"


def _can(facts: DeviceFacts) -> str:
    """What a GPU can do, in a few words."""
    sms = f"{facts.sms} SMs" if facts.sms else ""
    memory = format_bytes(facts.memory) if facts.memory else ""
    rate = f"{format_bytes(facts.bandwidth)}/s" if facts.bandwidth else ""
    return ", ".join(filter(None, (sms, " at ".join(filter(None, (memory, rate))))))


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{printable(text)}".rstrip()


def _list(label: str, texts: Sequence[str]) -> Iterator[str]:
    yield _line(label, texts[0] if texts else "none")
    for text in texts[1:_MOST_LISTED]:
        yield _line("", text)
    if len(texts) > _MOST_LISTED:
        yield _line("", f"and {len(texts) - _MOST_LISTED} more")


def _activities(summary: TraceSummary) -> Iterator[str]:
    if summary.resolved:
        # What a report of Nsight Compute measures stands with its PC samples.
        for metric, total in summary.measures if summary.pc_samples is None else ():
            yield f"{printable(metric.title):<{_TITLE}}  {format_value(total, metric.unit):>12}"
        yield f"{summary.noun:<{_TITLE}}  {format_count(summary.activities):>12}"
        return
    time = format_ns(summary.gpu_time) if summary.activities else "nothing ran on a GPU"
    yield _line("GPU time", time)
    for kind, count in summary.counts.items():
        if count:
            yield _line(f"  {kind}", f"{format_count(count):>12}")


def _busy(summary: TraceSummary) -> Iterator[str]:
    """How busy each GPU was in its window, and when."""
    for each, kernels in zip(summary.utilizations, summary.kernels_busy, strict=True):
        name = summary.device_names[each.device] if each.device >= 0 else "GPU"
        numbers = [f"window {format_ns(each.length)}", f"busy {busy_share(each) or 'n/a'}"]
        if each.busy > kernels:
            numbers.append(f"copies alone {format_percent(each.busy - kernels, each.length)}")
        yield "  ".join([printable(name), *numbers, f"idle {format_ns(each.idle)}"])
        if each.length:
            busy, length = each.in_cells(each.window, CHUNKS)
            yield f"  {format_shares(busy / np.maximum(length, 1))}"


def _kernels(summary: TraceSummary, width: int) -> Iterator[str]:
    found = summary.heaviest
    if found is None or not found.kernels.number:
        return
    yield "heaviest kernels"
    for each in found.kernels.heaviest[:_MOST_SHORT]:
        share, number = format_percent(each.value, found.whole), format_count(each.activities)
        numbers = f"{share:>9}{format_ns(each.value):>10}{number:>10}×"
        yield cut(f"{numbers}  {printable(each.name)}", width)


def _gaps(summary: TraceSummary, width: int) -> Iterator[str]:
    if not summary.gaps:
        return
    yield "longest idle gaps"
    several = len(summary.utilizations) > 1
    labels = {each.device: f"{each.label} " if several else "" for each in summary.utilizations}
    for gap in summary.gaps[:_MOST_SHORT]:
        when = f"{labels[gap.device]}at {gap.begin / 1e9:.6f} s"
        around = f"{printable(gap.before)} → {printable(gap.after)}"
        yield cut(f"{format_ns(gap.length):>9}  {when}  {around}", width)


def _coverage(summary: TraceSummary) -> Iterator[str]:
    """Which part of the GPU time has a launch, ranges, frames."""
    if not summary.gpu_time:
        return
    yield "coverage of GPU time"
    for title, share in summary.titled_coverage.values():
        percent = format_percent(share.ns, summary.gpu_time)
        yield _line(f"  {title}", f"{percent:>12}{format_ns(share.ns):>12}")
    nodes = summary.graph_nodes
    if nodes.activities:
        number = f"{format_count(nodes.captured)} of {format_count(nodes.activities)}"
        yield f"CUDA graph kernels that show the {summary.terms.all} of their capture: {number}"


def _categories(summary: TraceSummary) -> Iterator[str]:
    """What the kernels compute, by their share of the GPU time of all kernels."""
    if summary.categories:
        yield "GPU time of kernels by category"
    for category, share in summary.categories.items():
        percent = format_percent(share.ns, sum(one.ns for one in summary.categories.values()))
        yield f"  {category:<28}{percent:>10}{format_ns(share.ns):>12}"


def _samples(summary: TraceSummary) -> Iterator[str]:
    """How many PC samples there are, of what, and whose they are."""
    samples = summary.pc_samples
    if samples is None:
        return
    counts = samples.instructions, samples.kernels
    places = "instructions {}, kernels {}".format(*map(format_count, counts))
    yield _line("PC samples", f"{format_count(samples.samples):>12}  {places}")
    yield _line("", _ATTRIBUTION[samples.attribution])
