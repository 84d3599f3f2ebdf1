"""Tell when each GPU ran nothing, for how long, and what its next work waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flame.core.analysis.utilization import DeviceGaps, IdleGap, Utilization
from flame.core.analysis.words.formats import short_place
from flame.core.columns import I8, distinct, sum_by
from flame.core.kept_results import kept
from flame.core.model.metrics import WAITING
from flame.core.projection.labels import Labels
from flame.core.report.host.os_time import host_code_parts
from flame.core.report.labels import labels_without_numbers, shown_as
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share
from flame.core.timeline.idle_host import idle_host
from flame.core.timeline.idle_parts import IdleCause, IdleParts, told_causes
from flame.core.timeline.thread_states.holdups import HOLDUPS
from flame.core.units import format_ns

NAME, TITLE = "idle", "When the GPUs ran nothing, and why"

EDGES = (10_000, 100_000, 1_000_000, 10_000_000)
"""Lengths of gaps, ns, that divide the distribution."""

MOST_GAPS = 20
"""Longest gaps that are listed."""

_DISTRIBUTION = (
    TableColumn("gpu", "GPU"),
    TableColumn("length", "gaps of"),
    TableColumn("gaps", "gaps", "count"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of window", "percent"),
)
_CAUSES = (
    TableColumn("gpu", "GPU"),
    TableColumn("cause", "cause"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of window", "percent"),
    TableColumn("parts", "times", "count"),
)
_HOST = (
    TableColumn("gpu", "GPU"),
    TableColumn("frame", "innermost function or range"),
    TableColumn("kind", "kind"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of window", "percent"),
    TableColumn("longest_ns", "longest", "ns"),
    TableColumn("at", "at"),
    TableColumn("longest_begin_ns", "", "moment"),
)
_HOST_CODE = (
    TableColumn("gpu", "GPU"),
    TableColumn("name", "call of the operating system"),
    TableColumn("ns", "time", "ns"),
    TableColumn("percent", "of host code", "percent"),
    TableColumn("parts", "times", "count"),
)
_LONGEST = (
    TableColumn("gpu", "GPU"),
    TableColumn("begin_ns", "at", "moment"),
    TableColumn("ns", "length", "ns"),
    TableColumn("cause", "most of it"),
    TableColumn("before", "before it"),
    TableColumn("after", "after it"),
)


def idle_section(scope: Scope) -> Section:
    """Tell the gaps between the activities of each GPU, over all its streams and processes."""
    if not scope.gpus:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    gaps = {gpu.device: DeviceGaps(scope.profile, gpu) for gpu in scope.gpus}
    longest = sorted(
        (gap for each in gaps.values() for gap in each.gaps(each.by_length[:MOST_GAPS])),
        key=lambda gap: -gap.length,
    )
    return Section(
        NAME,
        TITLE,
        facts={"devices": [_facts(scope, gpu, gaps[gpu.device]) for gpu in scope.gpus]},
        tables=(
            _cause_table(scope),
            _host_table(scope),
            *_host_code(scope),
            Table.of(
                "distribution",
                "by length",
                _DISTRIBUTION,
                _length_rows(scope, gaps),
                whole=True,
            ),
            Table.of(
                "longest",
                "the longest",
                _LONGEST,
                _longest_rows(scope, longest),
                [Place(window=(gap.begin, gap.end)) for gap in longest[:MOST_GAPS]],
            ),
        ),
    )


def _facts(scope: Scope, gpu: Utilization, gaps: DeviceGaps) -> dict[str, Any]:
    sums = scope.idle(gpu).sums(gpu.windows)
    number, time = _by_length(gaps)
    return {
        **scope.device(gpu),
        "idle_ns": gpu.idle,
        "gaps": len(gaps),
        "causes_ns": {each.title: int(sums[each]) for each in told_causes(scope.profile)},
        "edges_ns": list(EDGES),
        "histogram": number.tolist(),
        "histogram_ns": time.tolist(),
    }


def _by_length(gaps: DeviceGaps) -> tuple[I8, I8]:
    """(number, time in ns) of the gaps up to each of the edges, and above the last."""
    lengths = gaps.end - gaps.begin
    place = np.searchsorted(EDGES, lengths, "right")
    number = np.bincount(place, minlength=len(EDGES) + 1)
    return number, sum_by(place, lengths, len(EDGES) + 1)


def _cause_table(scope: Scope) -> Table:
    """The causes, which lead to the picture of what the host did then."""
    found = list(_cause_rows(scope))
    places = [_place(scope, gpu, WAITING.levels, [cause.title]) for gpu, cause, _ in found]
    return Table.of("causes", "by cause", _CAUSES, [row for _, _, row in found], places, whole=True)


def _place(scope: Scope, gpu: Utilization, levels: Sequence[str], frames: Sequence[str]) -> Place:
    """Where ``frames`` are in the picture of what GPUs waited for; of several below that GPU."""
    if len(scope.gpus) < 2 or gpu.device < 0:
        return Place(tuple(levels), tuple(frames), WAITING.key)
    device = scope.labels.text[int(scope.profile.grouping.device[gpu.device])]
    return Place(("device", *levels), (device, *frames), WAITING.key)


def _cause_rows(
    scope: Scope,
) -> Iterator[tuple[Utilization, IdleCause, tuple[Value, ...]]]:
    for gpu in scope.gpus:
        parts = scope.idle(gpu)
        inside = parts.within(gpu.windows)
        sums = sum_by(parts.cause, inside, len(IdleCause))
        number = np.bincount(parts.cause[inside > 0], minlength=len(IdleCause))
        for cause in sorted(IdleCause, key=lambda one: -int(sums[one])):
            if sums[cause]:
                ns, often = int(sums[cause]), int(number[cause])
                row = (gpu.label, cause.title, ns, share(ns, gpu.length), often)
                yield gpu, cause, row


class HostFrame(NamedTuple):
    """Say how long a GPU was idle while what is shown as ``frame`` was innermost on the host, ns.

    -1 is nothing, without a name. ``longest`` is when it was that longest at a stretch, ``path``
    the frames that it was in then, from the outermost to itself.
    """

    frame: int
    name: str
    ns: int
    longest: tuple[int, int]
    path: tuple[int, ...]


HOST_CAUSES = (IdleCause.HOST_CODE, IdleCause.OTHER_CALL, IdleCause.SYNC, *HOLDUPS)
"""Causes before the launch for which the host's code is to be looked at."""


@kept
def host_frames(scope: Scope) -> dict[int, list[HostFrame]]:
    """Sum the idle time of each GPU that passed with the host by what that ran, longest first.

    By place of the GPU in `Profile.devices`.
    """
    labels = labels_without_numbers(scope)
    return {gpu.device: _host_frames(scope, gpu, labels) for gpu in scope.gpus}


def _host_frames(scope: Scope, gpu: Utilization, labels: Labels) -> list[HostFrame]:
    parts = scope.idle(gpu)
    chosen = np.isin(parts.cause, HOST_CAUSES)
    found = idle_host(scope.profile, parts, chosen)
    inside = gpu.windows.sums_until(found.high) - gpu.windows.sums_until(found.low)
    frames, place = distinct(shown_as(labels, found.frame))
    sums = sum_by(place, inside, len(frames))
    by_length = np.lexsort((-inside, place))
    longest = by_length[np.searchsorted(place[by_length], np.arange(len(frames)))]
    low = np.maximum(found.low[longest], gpu.window.low).tolist()
    high = np.minimum(found.high[longest], gpu.window.high).tolist()
    order = np.argsort(-sums, kind="stable").tolist()
    piece = found.piece[longest].tolist()
    return [
        HostFrame(
            frame := int(frames[at]),
            labels.text[frame] if frame >= 0 else "",
            int(sums[at]),
            (low[at], high[at]),
            found.path(piece[at]),
        )
        for at in order
        if sums[at]
    ]


def _host_table(scope: Scope) -> Table:
    """What was innermost on the host, which leads to where it was longest at a stretch."""
    found = [(gpu, one) for gpu in scope.gpus for one in host_frames(scope)[gpu.device]]
    rows = [_host_row(scope, gpu, one) for gpu, one in found]
    places = [_host_place(scope, gpu, one) for gpu, one in found]
    causes = [cause.title for cause in HOST_CAUSES if cause in told_causes(scope.profile)]
    title = f"by what the host ran: {', '.join(causes)}"
    return Table.of("by_host_frame", title, _HOST, rows, places)


def _host_place(scope: Scope, gpu: Utilization, one: HostFrame) -> Place:
    """The frame in the picture of what GPUs waited for, below what it was in; else the window."""
    if one.frame < 0:
        return Place(window=one.longest)
    level = scope.profile.frames[one.frame].kind.title
    return _place(scope, gpu, (level, "cause"), [scope.labels.text[frame] for frame in one.path])


def _host_row(scope: Scope, gpu: Utilization, one: HostFrame) -> tuple[Value, ...]:
    frame = scope.profile.frames[one.frame] if one.frame >= 0 else None
    kind, at = (frame.kind.title, short_place(frame)) if frame else (None, "")
    low, high = one.longest
    told = one.name or "[none]", kind, one.ns, share(one.ns, gpu.length)
    return gpu.label, *told, high - low, at or None, low


def _host_code(scope: Scope) -> Iterator[Table]:
    """Host code by the call of the operating system, where these were recorded."""
    found = [(gpu, parts) for gpu in scope.gpus if (parts := host_code_parts(scope, gpu))]
    rows: list[tuple[Value, ...]] = []
    for gpu, parts in found:
        whole = sum(one.ns for one in parts)
        rows += [(gpu.label, one.name, one.ns, share(one.ns, whole), one.parts) for one in parts]
    if rows:
        yield Table.of("host_code", "host code, by what it called", _HOST_CODE, rows)


def _length_rows(scope: Scope, gaps: dict[int, DeviceGaps]) -> Iterator[tuple[Value, ...]]:
    first, *_, last = edges = [
        format_ns(edge).replace(".00", "").replace(".0", "") for edge in EDGES
    ]
    spans = [f"{low} to {high}" for low, high in pairwise(edges)]
    names = [f"below {first}", *spans, f"{last} and more"]
    for gpu in scope.gpus:
        rows = zip(
            names, *(column.tolist() for column in _by_length(gaps[gpu.device])), strict=True
        )
        for name, number, ns in rows:
            if number:
                yield gpu.label, name, number, ns, share(ns, gpu.length)


def _longest_rows(scope: Scope, gaps: list[IdleGap]) -> Iterator[tuple[Value, ...]]:
    labels = {gpu.device: gpu for gpu in scope.gpus}
    for gap in gaps[:MOST_GAPS]:
        gpu = labels[gap.device]
        cause = _main_cause(scope.idle(gpu), gap)
        names = [_name(scope, row) for row in (gap.before, gap.after)]
        yield gpu.label, gap.begin, gap.length, cause, *names


def _main_cause(parts: IdleParts, gap: IdleGap) -> str:
    """The cause of most of a gap."""
    first, last = np.searchsorted(parts.low, [gap.begin, gap.end]).tolist()
    low = np.maximum(parts.low[first:last], gap.begin)
    sums = sum_by(
        parts.cause[first:last], np.minimum(parts.high[first:last], gap.end) - low, len(IdleCause)
    )
    return IdleCause(int(np.argmax(sums))).title


def _name(scope: Scope, row: int) -> str | None:
    profile = scope.profile
    return profile.frames[int(profile.activities.frame[row])].name if row >= 0 else None
