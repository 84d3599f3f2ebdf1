"""Add lanes of what held threads up, and of what was sampled of GPUs, to a timeline.

They are added to one that is there already, for finding what they show may take its time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

import numpy as np

from flame.core.columns import I8, Column, order_by, pack
from flame.core.gpu_metrics.names import NAMES, short_name
from flame.core.gpu_metrics.samples import SampledMetric, sampled_metrics
from flame.core.model.activities import NONE
from flame.core.model.calls import StateKind
from flame.core.model.profile import Profile
from flame.core.model.threads.states import StateSpans
from flame.core.timeline.devices import device_label, source_label
from flame.core.timeline.intervals import Timeline, nested_levels, reach_before
from flame.core.timeline.lanes import OF_GPUS, STATES, Lane, LaneColumns, Track, bounds

_TRACK_OF = np.zeros(max(StateKind) + 1, np.uint8)
for _track, _kinds in STATES.items():
    _TRACK_OF[list(_kinds)] = _track


def with_states(timeline: Timeline, states: StateSpans | None) -> Timeline:
    """Add lanes of ``states`` to ``timeline``, below the others of the same thread.

    Those of nobody that has others stand above the GPUs. What lies outside of the trace is left
    out; what lies within another of its lane has a lane of its own, as activities have.
    """
    found = _columns(timeline, states) if states is not None else None
    if found is None or not found.lanes:
        return timeline
    lanes = list(_in_order(timeline.lanes, found.lanes))
    lengths = _picked(lanes, np.diff(timeline.before), found.high - found.low)
    return replace(
        timeline,
        lanes=_placed(lanes),
        track=np.repeat(np.array([lane.track for lane in lanes], np.uint8), _sizes(lanes)),
        source=_picked(lanes, timeline.source, found.source),
        frame=_picked(lanes, timeline.frame, found.frame),
        kind=_picked(lanes, timeline.kind, found.kind),
        low=_picked(lanes, timeline.low, found.low),
        before=np.concatenate([[0], np.cumsum(lengths)]),
        states=states,
    )


def _columns(timeline: Timeline, states: StateSpans) -> LaneColumns:
    """Lay out ``states`` by owner, track and level; their places follow those of ``timeline``."""
    first, last = timeline.origin, timeline.origin + timeline.whole.high
    start, end = (np.clip(times, first, last) - first for times in (states.start, states.end))
    rows = np.flatnonzero(end > start)
    keys = np.array([_key(place, who.thread) for place, who in enumerate(states.owners)], np.int64)
    track, owner = _TRACK_OF[states.kind[rows]], keys[states.owner[rows]]
    order = order_by([-end[rows], start[rows], track, owner])
    rows, track, owner = rows[order], track[order], owner[order]
    level = nested_levels(pack([owner, track]), start[rows], end[rows])
    order = order_by([level, track, owner])
    rows, level = rows[order], level[order]
    start, end, track, owner = start[rows], end[rows], track[order], owner[order]
    low = np.maximum(start, reach_before([owner, track, level], end))
    frame = np.full(len(rows), NONE, np.int32)
    labels = {int(key): who.label for key, who in zip(keys, states.owners, strict=True)}
    lanes = list(_lanes(labels, track, owner, level, len(timeline)))
    return LaneColumns(
        rows.astype(np.int32), frame, states.kind[rows], low, np.maximum(end, low), lanes
    )


def _key(place: int, thread: int) -> int:
    """What stands for an owner in lanes: a thread, or less than any for who is none."""
    return thread if thread >= 0 else NONE - 1 - place


def _lanes(
    labels: Mapping[int, str], track: Column, owner: Column, level: I8, offset: int
) -> Iterator[Lane]:
    for first, last in bounds([owner, track, level]):
        key, shows = int(owner[first]), Track(int(track[first]))
        yield Lane(labels[key], int(level[first]), first + offset, last + offset, shows, key)


def _in_order(lanes: Sequence[Lane], added: Sequence[Lane]) -> Iterator[Lane]:
    """Put lanes of the same owner below each other, those of GPUs last."""
    own = defaultdict(list)
    for lane in added:
        own[lane.owner].append(lane)
    host = (lane for lane in lanes if lane.track not in OF_GPUS)
    for owner, others in groupby(host, lambda lane: lane.owner):
        yield from others
        yield from own.pop(owner, ())
    for owner in sorted(own, reverse=True):
        yield from own[owner]
    yield from (lane for lane in lanes if lane.track in OF_GPUS)


def _picked(lanes: Sequence[Lane], column: Column, added: Column) -> Column:
    """What of both columns ``lanes`` have, one after the other."""
    both = np.concatenate([column, added])
    return np.concatenate([both[lane.first : lane.last] for lane in lanes])


def _sizes(lanes: Sequence[Lane]) -> list[int]:
    return [lane.last - lane.first for lane in lanes]


def _placed(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The same lanes, each where the one before ends."""
    sizes = _sizes(lanes)
    firsts = accumulate(sizes[:-1], initial=0)
    return tuple(
        lane._replace(first=first, last=first + size)
        for lane, first, size in zip(lanes, firsts, sizes, strict=True)
    )


def find_metrics(profile: Profile) -> tuple[tuple[str, SampledMetric], ...]:
    """Find what was sampled of GPUs, with a label each, GPU by GPU; may read the file.

    What is told of frames stands first. GPUs on which nothing ran are there, too.
    """
    table = profile.gpu_metrics
    if table is None:
        return ()
    told = {name: place for place, name in enumerate(NAMES.values())}
    found = sorted(
        sampled_metrics(table).metrics,
        key=lambda one: (one.source, one.gpu, told.get(one.name, len(told)), one.name),
    )
    return tuple((f"{_gpu_label(profile, one)} {short_name(one.name)}", one) for one in found)


def _gpu_label(profile: Profile, metric: SampledMetric) -> str:
    if metric.device >= 0:
        return device_label(profile, metric.device)
    return f"{source_label(profile, metric.source)}GPU{metric.gpu}"


def with_metrics(timeline: Timeline, sampled: Sequence[tuple[str, SampledMetric]]) -> Timeline:
    """Add a lane for each metric to ``timeline``, below all others: it has no intervals."""
    if not sampled:
        return timeline
    end = len(timeline)
    lanes = (Lane(label, 0, end, end, Track.METRIC, at) for at, (label, _) in enumerate(sampled))
    metrics = tuple(metric for _, metric in sampled)
    return replace(timeline, lanes=(*timeline.lanes, *lanes), metrics=metrics)
