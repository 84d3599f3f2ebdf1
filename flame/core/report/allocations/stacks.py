"""Find the GPUs whose memory is known, and the stacks that held it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from flame.core.analysis.words.formats import short_place
from flame.core.columns import I8
from flame.core.errors import NoMatchError
from flame.core.kept_results import kept
from flame.core.model.allocator.recorded import MemoryOfDevice
from flame.core.model.frames import Frame, Kind
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filters import Devices, Moment, Ranks
from flame.core.projection.project import project
from flame.core.projection.selection import with_moment
from flame.core.report.scope import Scope
from flame.core.report.table import source_of

LEVELS = ("device", "python")
"""Of each GPU what it held at its own peak: peaks are of different moments."""

_MOST = 1_000
"""Stacks that are told, the heaviest of thousands."""

_TOLD_FRAMES = 4


class HeldStack(NamedTuple):
    """Say how many bytes a stack held, and by how many allocations.

    ``gpu`` is what its GPU is called, ``at`` the line of its innermost frame, empty where that is
    not known; ``path`` are the names of its frames, from that of the GPU down, ``sources`` where
    each of these is in the sources.
    """

    gpu: str
    at: str
    path: tuple[str, ...]
    sources: tuple[str, ...]
    size: int
    allocations: int


class HeldStacks(NamedTuple):
    """Hold the heaviest stacks by a metric, how many there are, and what all of them held.

    ``by_gpu`` is that of each GPU, bytes.
    """

    stacks: tuple[HeldStack, ...]
    number: int
    by_gpu: dict[str, int]


def called(names: Sequence[str]) -> str:
    """Write the innermost of ``names``, which are given outermost first, and its callers behind.

    Those that follow each other with one name are written once.
    """
    different = [name for name, _ in groupby(reversed(names))]
    more = " ‹ …" if len(different) > _TOLD_FRAMES else ""
    return " ‹ ".join(different[:_TOLD_FRAMES]) + more


@kept
def devices_with_memory(scope: Scope) -> tuple[MemoryOfDevice, ...]:
    """List the GPUs whose memory is known, of those that filters choose; empty of other traces."""
    memory = scope.profile.memory
    known = () if memory is None else memory.devices
    return tuple(one for one in known if _chooses(scope, one.device))


def _chooses(scope: Scope, place: int) -> bool:
    device = scope.profile.devices[place]
    for one in scope.selection.where:
        if isinstance(one, Devices) and device.id not in one.ids:
            return False
        if isinstance(one, Ranks) and not one.fits(scope.profile.sources[device.source]):
            return False
    return True


def gpu_name(scope: Scope, place: int) -> str:
    """Call a GPU by its number, and by its file where there are several."""
    device, sources = scope.profile.devices[place], scope.profile.sources
    label = f" · {sources[device.source].label}" if len(sources) > 1 else ""
    return f"GPU{device.id}{label}"


def device_frame(scope: Scope, place: int) -> Frame:
    """Get the frame of a GPU in trees."""
    return scope.profile.frames[int(scope.profile.grouping.device[place])]


def held_stacks(scope: Scope, metric: str, moment: Moment | int | None = None) -> HeldStacks:
    """Find the stacks that ``metric`` measures, heaviest first, of each GPU by itself.

    That is at ``moment``, or where it is None at that of the metric.
    """
    selection = replace(scope.selection, levels=LEVELS, metric=metric, layout=TreeLayout())
    selection = with_moment(selection, moment)
    try:
        tree = project(scope.profile, selection)
    except NoMatchError:
        return HeldStacks((), 0, {})
    places = range(len(scope.profile.devices))
    gpus = {device_frame(scope, place): gpu_name(scope, place) for place in places}
    nodes = np.flatnonzero(tree.own)
    heaviest = nodes[np.argsort(-tree.own[nodes], kind="stable")][:_MOST]
    outermost = np.flatnonzero(tree.depth == 1).tolist()
    sums = [(gpus.get(tree.frames[int(tree.frame[node])]), node) for node in outermost]
    by_gpu = {gpu: int(tree.total[node]) for gpu, node in sums if gpu is not None}
    return HeldStacks(tuple(_stacks(tree, heaviest, gpus)), len(nodes), by_gpu)


def _stacks(tree: StackTree, nodes: I8, gpus: dict[Frame, str]) -> Iterator[HeldStack]:
    for node in nodes.tolist():
        path, above = list[int](), node
        while above > 0:
            path.append(int(tree.frame[above]))
            above = int(tree.parent[above])
        names = tuple(tree.text[frame] for frame in reversed(path))
        sources = tuple(source_of(tree.frames[frame]) for frame in reversed(path))
        innermost = tree.frames[path[0]] if path else Frame(Kind.ROOT, "")
        gpu = gpus.get(tree.frames[path[-1]], "") if path else ""
        size, number = int(tree.own[node]), int(tree.own_count[node])
        yield HeldStack(gpu, short_place(innermost), names, sources, size, number)


def stack_sources(scope: Scope, stack: int) -> tuple[str, ...]:
    """Say where each frame of a Python stack is in the sources, outermost first."""
    frames, labels = scope.profile.frames, scope.labels
    path = scope.profile.activities.stacks.path(stack)
    return tuple(source_of(frames[int(labels.shown[frame])]) for frame in path)


def stack_names(scope: Scope, stack: int) -> tuple[str, ...]:
    """Name the frames of a Python stack as they are shown, outermost first."""
    table, labels = scope.profile.activities, scope.labels
    path = table.stacks.path(stack)
    return tuple(labels.text[int(labels.shown[frame])] for frame in path)
