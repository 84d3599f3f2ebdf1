"""What ``flame info`` says of a profile: a dictionary for scripts, the same as text for people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.frames import ACTIVITY_KINDS, Kind
from flame.core.profile import Device, Profile, Share
from flame.core.project import LEVELS
from flame.core.units import format_count, format_ns, format_percent
from flame.terminal import printable

_MOST_LISTED = 10
_LABEL = 12


def facts(profile: Profile, path: str) -> dict[str, object]:
    """The contract of ``flame info --json``; times in ns, shares in percent of the GPU time."""
    return {
        "path": path,
        "format": profile.meta.format,
        "producer": profile.meta.producer,
        "schema_version": profile.meta.schema_version,
        "devices": [{"id": one.id, "name": one.name} for one in profile.devices],
        "processes": [{"pid": one.pid, "name": one.name} for one in profile.processes],
        "activities": profile.counts,
        "gpu_time_ns": profile.gpu_time,
        "duration_ns": profile.duration,
        "coverage": {key: _share(share) for key, share in profile.coverage.items()},
        "graph_nodes": {
            "activities": profile.graph_nodes.activities,
            "captured": profile.graph_nodes.captured,
        },
        "levels": list(levels_present(profile)),
        "warnings": list(profile.warnings),
    }


def _share(share: Share) -> dict[str, object]:
    return {"ns": share.ns, "percent": round(share.percent, 3)}


def as_json(profile: Profile, path: str) -> str:
    """`facts` as JSON in plain ASCII, so that no name can harm a pipe, a terminal or a locale."""
    return json.dumps(facts(profile, path), indent=2) + "\n"


def levels_present(profile: Profile) -> tuple[str, ...]:
    """The levels that hold any frame of this profile, in natural order."""
    tree = profile.tree(levels=LEVELS)
    kinds = [Kind(kind) for kind in np.unique(profile.frames.kind[tree.frame[1:]])]
    found = {"kernel" if kind in ACTIVITY_KINDS else kind.title for kind in kinds}
    return tuple(level for level in LEVELS if level in found)


def as_text(profile: Profile, path: str) -> str:
    """`facts` for people: in the order one asks, aligned, what is missing last."""
    sections = [
        [printable(path)],
        list(_capture(profile)),
        list(_activities(profile)),
        list(_coverage(profile)),
        notes(profile.warnings, 100),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _capture(profile: Profile) -> Iterator[str]:
    meta = profile.meta
    yield _line("format", " ".join(filter(None, (meta.format, meta.schema_version))))
    yield _line("producer", meta.producer or "unknown")
    yield _line("duration", format_ns(profile.duration))
    yield from _list("GPUs", [_numbered(one.id, one.name) for one in profile.devices])
    yield from _list("processes", [_numbered(one.pid, one.name) for one in profile.processes])
    yield _line("levels", ", ".join(levels_present(profile)) or "none")


def _numbered(number: int, name: str) -> str:
    return f"{number}  {name or '(no name recorded)'}"


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{printable(text)}".rstrip()


def _list(label: str, texts: Sequence[str]) -> Iterator[str]:
    yield _line(label, texts[0] if texts else "none")
    for text in texts[1:_MOST_LISTED]:
        yield _line("", text)
    if len(texts) > _MOST_LISTED:
        yield _line("", f"and {len(texts) - _MOST_LISTED} more")


def _activities(profile: Profile) -> Iterator[str]:
    yield _line("GPU time", format_ns(profile.gpu_time))
    for kind, count in profile.counts.items():
        if count:
            yield _line(f"  {kind}", f"{format_count(count):>12}")


def _coverage(profile: Profile) -> Iterator[str]:
    """Which part of the GPU time has a launch, ranges, frames."""
    if not profile.gpu_time:
        return
    yield "coverage of GPU time"
    for level, share in profile.coverage.items():
        percent = format_percent(share.ns, profile.gpu_time)
        yield _line(f"  {level}", f"{percent:>12}{format_ns(share.ns):>12}")
    nodes = profile.graph_nodes
    if nodes.activities:
        found = f"{format_count(nodes.captured)} of {format_count(nodes.activities)}"
        yield f"CUDA graph kernels that show the ranges of their capture: {found}"


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
