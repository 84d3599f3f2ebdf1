"""What ``flame info`` says of a profile: a dictionary for scripts, the same as text for people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.console.terminal import cells, cut, printable
from flame.core.analysis.profiler_steps import step_totals
from flame.core.analysis.wording import coverage_of
from flame.core.columns import sum_by
from flame.core.loading.inputs import Inputs
from flame.core.model.meta import Device, Process, Share, Source
from flame.core.model.metrics import Metric, metric_of
from flame.core.model.profile import Profile
from flame.core.projection.levels import LEVELS, recorded_levels
from flame.core.sampling.attach import count_samples
from flame.core.units import format_count, format_ns, format_percent, format_value

_ATTRIBUTION = {
    "launch": "known by launch",
    "kernel": "known by kernel: those of all its launches are one, shared out by time",
    "mixed": "known by launch of some kernels; of others all launches are one, shared out by time",
}
_MOST_LISTED = 10
_LABEL = 12
_LONGEST_LABEL = 40
_TITLE = 20
_NARROWEST = 40


def facts(profile: Profile, inputs: Inputs) -> dict[str, object]:
    """The contract of ``flame info --json``; times in ns, shares in percent of the GPU time.

    ``path`` is null where there are several ``sources``, of which the rest is the sum, and which
    ``devices`` and ``processes`` name by place; ``measures`` is what files of stacks have measured.
    ``pc_samples`` is null where there are none.
    """
    return {
        "path": str(inputs.paths[0]) if len(inputs.paths) == 1 else None,
        "sources": [_source(total) for total in _totals(profile)],
        "format": profile.meta.format,
        "producer": profile.meta.producer,
        "synthetic": profile.meta.synthetic,
        "schema_version": profile.meta.schema_version,
        "devices": [
            {"id": one.id, "name": one.name, "source": one.source} for one in profile.devices
        ],
        "processes": [
            {"pid": one.pid, "name": one.name, "source": one.source} for one in profile.processes
        ],
        "activities": profile.counts,
        "gpu_time_ns": _gpu_time(profile),
        "duration_ns": profile.duration,
        "coverage": {} if profile.resolved else _coverage_facts(profile),
        "pc_samples": _sample_facts(profile),
        "graph_nodes": {
            "activities": profile.graph_nodes.activities,
            "captured": profile.graph_nodes.captured,
        },
        "measures": [
            {"key": one.key, "title": one.title, "unit": one.unit, "total": total}
            for one, total in _measured(profile)
        ],
        "steps": [
            {"number": one.number, "duration_ns": one.duration, "gpu_time_ns": one.gpu_time}
            for one in step_totals(profile)
        ],
        "levels": list(levels_present(profile)),
        "warnings": list(profile.warnings),
    }


class _Total(NamedTuple):
    """What one of the files has."""

    source: Source
    activities: int
    gpu_time: int


def _totals(profile: Profile) -> list[_Total]:
    """The parts of the files in the whole."""
    if len(profile.sources) < 2:
        only = Source("", profile.meta)
        return [_Total(only, len(profile.activities), _gpu_time(profile))]
    table, size = profile.activities, len(profile.sources)
    of = np.array([process.source for process in profile.processes])[table.process]
    on_gpu = np.zeros_like(table.duration) if profile.resolved else table.duration
    counts, sums = np.bincount(of, minlength=size).tolist(), sum_by(of, on_gpu, size).tolist()
    return list(map(_Total, profile.sources, counts, sums))


def _source(total: _Total) -> dict[str, object]:
    label, meta = total.source.label, total.source.meta
    return {
        "label": label,
        "path": meta.path,
        "format": meta.format,
        "producer": meta.producer,
        "schema_version": meta.schema_version,
        "rank": meta.rank,
        "activities": total.activities,
        "gpu_time_ns": total.gpu_time,
    }


def _measured(profile: Profile) -> list[tuple[Metric, int]]:
    """What files of stacks have measured, and how much; nothing for traces."""
    table = profile.activities
    return [(one, int(one.values(table).sum())) for one in profile.own_metrics or ()]


def _gpu_time(profile: Profile) -> int:
    return 0 if profile.resolved else profile.gpu_time


def _coverage_facts(profile: Profile) -> dict[str, object]:
    return {key: _share(share) for key, share in profile.coverage.items()}


def _sample_facts(profile: Profile) -> dict[str, object] | None:
    found = count_samples(profile)
    return None if found is None else found._asdict()


def _share(share: Share) -> dict[str, object]:
    return {"ns": share.ns, "percent": round(share.percent, 3)}


def as_json(profile: Profile, inputs: Inputs) -> str:
    """`facts` as JSON in plain ASCII, so that no name can harm a pipe, a terminal or a locale."""
    return json.dumps(facts(profile, inputs), indent=2) + "\n"


def levels_present(profile: Profile) -> tuple[str, ...]:
    """The levels that hold any frame of this profile, in natural order."""
    found = recorded_levels(profile, metric_of(profile.default_metric, profile.metrics))
    return tuple(level for level in LEVELS if level in found)


def as_text(profile: Profile, inputs: Inputs, width: int = 100) -> str:
    """`facts` for people: in the order one asks, aligned, what is missing last.

    Sentences are wrapped at ``width`` cells.
    """
    sections = [
        [printable(str(inputs.paths[0]) if len(inputs.paths) == 1 else inputs.title)],
        list(_each(profile)),
        list(_capture(profile)),
        list(_activities(profile)),
        list(_coverage(profile)),
        list(_samples(profile)),
        list(_steps(profile)),
        notes(profile.warnings, max(width, _NARROWEST)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _capture(profile: Profile) -> Iterator[str]:
    meta = profile.meta
    yield _line("format", " ".join(filter(None, (meta.format, meta.schema_version))))
    yield _line("producer", meta.producer or "unknown")
    if meta.synthetic:
        yield _line("synthetic", "no GPU ran this")
    if meta.rank is not None and len(profile.sources) < 2:
        yield _line("rank", str(meta.rank))
    if profile.timed:
        yield _line("duration", format_ns(profile.duration))
    if not profile.resolved:
        yield from _list(
            "GPUs", [_numbered(profile, "GPU", one.id, one) for one in profile.devices]
        )
    known = [one for one in profile.processes if one.pid >= 0 or not profile.resolved]
    if known or not profile.resolved:
        yield from _list("processes", [_numbered(profile, "pid", one.pid, one) for one in known])
    yield _line("levels", ", ".join(levels_present(profile)) or "none")


def _each(profile: Profile) -> Iterator[str]:
    """What each of several files has, in columns."""
    totals = _totals(profile)
    if len(totals) < 2:
        return
    width = min(max(cells(printable(one.source.label)) for one in totals), _LONGEST_LABEL)
    for one in totals:
        label = printable(one.source.label)
        amount = f"{format_count(one.activities):>12}"
        if not profile.resolved:
            amount = f"{format_ns(one.gpu_time):>10}{amount}"
        padded = cut(label, width) + " " * max(width - cells(label), 0)
        yield f"{padded}{amount}  {printable(one.source.meta.path)}"


def _numbered(profile: Profile, word: str, number: int, one: Device | Process) -> str:
    name = one.name or "(no name recorded)"
    label = f"  {profile.sources[one.source].label}" if len(profile.sources) > 1 else ""
    return f"{word} {number if number >= 0 else '?'}  {name}{label}"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{printable(text)}".rstrip()


def _list(label: str, texts: Sequence[str]) -> Iterator[str]:
    yield _line(label, texts[0] if texts else "none")
    for text in texts[1:_MOST_LISTED]:
        yield _line("", text)
    if len(texts) > _MOST_LISTED:
        yield _line("", f"and {len(texts) - _MOST_LISTED} more")


def _activities(profile: Profile) -> Iterator[str]:
    if profile.resolved:
        # What a report of Nsight Compute measures stands with its PC samples.
        for metric, total in _measured(profile) if profile.sampling is None else ():
            yield f"{printable(metric.title):<{_TITLE}}  {format_value(total, metric.unit):>12}"
        noun = profile.metrics[0].noun
        yield f"{noun:<{_TITLE}}  {format_count(len(profile.activities)):>12}"
        return
    known = len(profile.activities)
    yield _line("GPU time", format_ns(profile.gpu_time) if known else "nothing ran on a GPU")
    for kind, count in profile.counts.items():
        if count:
            yield _line(f"  {kind}", f"{format_count(count):>12}")


def _coverage(profile: Profile) -> Iterator[str]:
    """Which part of the GPU time has a launch, ranges, frames."""
    if profile.resolved or not profile.gpu_time:
        return
    yield "coverage of GPU time"
    for title, share in coverage_of(profile).values():
        percent = format_percent(share.ns, profile.gpu_time)
        yield _line(f"  {title}", f"{percent:>12}{format_ns(share.ns):>12}")
    nodes = profile.graph_nodes
    if nodes.activities:
        found = f"{format_count(nodes.captured)} of {format_count(nodes.activities)}"
        yield f"CUDA graph kernels that show the ranges of their capture: {found}"


def _samples(profile: Profile) -> Iterator[str]:
    """How many PC samples there are, of what, and whose they are."""
    found = count_samples(profile)
    if found is None:
        return
    counts = found.instructions, found.kernels
    places = "instructions {}, kernels {}".format(*map(format_count, counts))
    yield _line("PC samples", f"{format_count(found.samples):>12}  {places}")
    yield _line("", _ATTRIBUTION[found.attribution])


def _steps(profile: Profile) -> Iterator[str]:
    """How long the first steps took, and what of the GPU time was launched in each."""
    steps = step_totals(profile)
    if steps:
        on_gpu = "GPU time" if len(profile.activities) else ""
        yield f"{'profiler step':<{_LABEL}}{'duration':>11}{on_gpu:>12}".rstrip()
    for step in steps[:_MOST_LISTED]:
        gpu_time = format_ns(step.gpu_time) if step.gpu_time else ""
        yield _line(f"  {step.number}", f"{format_ns(step.duration):>12}{gpu_time:>12}")
    if len(steps) > _MOST_LISTED:
        yield f"  and {len(steps) - _MOST_LISTED} more"


def notes(warnings: Sequence[str], width: int) -> list[str]:
    """Warnings as lines of at most ``width``, the following lines of each indented."""
    lines = []
    for warning in warnings:
        text = f"note: {printable(warning)}"
        lines += textwrap.wrap(text, width, subsequent_indent="      ", break_on_hyphens=False)
    return lines


def gpus(devices: Sequence[Device]) -> str:
    """GPUs in short: ``2 × NVIDIA H100 80GB HBM3``; ``GPU`` where there is no name."""
    names = [device.name or "GPU" for device in devices]
    counted = [(names.count(name), name) for name in dict.fromkeys(names)]
    return printable(" + ".join(f"{n} × {name}" if n > 1 else name for n, name in counted))
