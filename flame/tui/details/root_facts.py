"""Work out what the pane says of the root: how busy the GPUs were, and with what."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flame.core.analysis.heaviest import HeavyFrame, HeavyFrames, find_heaviest
from flame.core.analysis.iterations import measure_iterations
from flame.core.analysis.utilization import (
    IdleGap,
    Utilization,
    idle_gaps,
    kernels_busy,
    utilizations,
)
from flame.core.analysis.words.formats import coverage_of
from flame.core.analysis.words.iterations import length_words
from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.rename import NN_MODULE
from flame.core.projection.weights import Weights, weigh_groups
from flame.core.units import format_count
from flame.tui.details.parts import HeaviestParts, Part
from flame.tui.session.session import Projection
from flame.tui.session.wording import CAPTURED

_MOST = 5


class Busy(NamedTuple):
    """How busy a GPU was, and how long its kernels alone, ns."""

    found: Utilization
    kernels: int


class GapFacts(NamedTuple):
    """A stretch in which the GPU ``label`` ran nothing, and what ran around it, if anything."""

    label: str
    gap: IdleGap
    around: tuple[Part | None, Part | None]


@dataclass(frozen=True, eq=False)
class RootFacts:
    """What is known of all that is shown; lists are empty where the trace has none of it.

    ``moved`` are the bytes that each of the heaviest ``copies`` moved, empty until the file has
    been read for them; ``coverage`` is in per cent of the GPU time.
    """

    busy: tuple[Busy, ...]
    kernels: HeaviestParts
    copies: HeaviestParts
    communication: HeaviestParts
    ranges: HeaviestParts
    modules: HeaviestParts
    functions: HeaviestParts
    gaps: tuple[GapFacts, ...]
    coverage: tuple[tuple[str, float], ...]
    copied: tuple[HeavyFrame, ...] = ()
    moved: tuple[int, ...] = ()
    steps: str = ""


def has_root_facts(tree: StackTree) -> bool:
    """Tell whether there are such facts: not of what the host did, nor of a file of stacks."""
    return tree.metric.table == "gpu" and tree.metric.noun == "activities"


def root_facts(shown: Projection) -> RootFacts:
    """Work out the facts of ``shown``, all but the bytes."""
    profile, tree, where = shown.profile, shown.view.tree, shown.selection.where
    found = utilizations(profile, where)
    labels = {each.device: each.label if len(found) > 1 else "" for each in found}
    heaviest = find_heaviest(profile, _weights(shown), shown.selection.naming, _MOST)
    return RootFacts(
        busy=tuple(Busy(each, kernels_busy(profile, each)) for each in found),
        kernels=_parts(tree, heaviest.kernels),
        copies=_parts(tree, heaviest.copies),
        communication=_parts(tree, heaviest.communication),
        ranges=_parts(tree, heaviest.ranges),
        modules=_parts(tree, heaviest.modules),
        functions=_parts(tree, heaviest.functions),
        gaps=tuple(
            GapFacts(labels[gap.device], gap, (_part(shown, gap.before), _part(shown, gap.after)))
            for gap in idle_gaps(profile, _MOST, where)
        ),
        coverage=tuple((title, share.percent) for title, share in coverage_of(profile).values()),
        copied=heaviest.copies.heaviest,
        steps=_steps(profile),
    )


def _steps(profile: Profile) -> str:
    table = measure_iterations(profile)
    return f"{format_count(len(table))}, {length_words(table)}" if len(table) else ""


def _weights(shown: Projection) -> Weights:
    """The metric by group, of what is in the tree."""
    tree = shown.view.tree
    weights = weigh_groups(shown.profile, tree.metric, shown.selection.where)
    return Weights(*(np.where(tree.node_of_group >= 0, part, 0) for part in weights))


def _parts(tree: StackTree, found: HeavyFrames) -> HeaviestParts:
    parts = [
        Part(
            f"{CAPTURED * each.captured}{each.name.removeprefix(NN_MODULE)} {each.place}".rstrip(),
            each.value,
            _node(tree, each.frames),
        )
        for each in found.heaviest
    ]
    return HeaviestParts(parts, found.number, int(tree.total[0]))


def _node(tree: StackTree, frames: I8) -> int:
    """The heaviest place of any of ``frames``; -1 where the tree does not show them."""
    marked = np.zeros(len(tree.text), bool)
    marked[frames] = True
    nodes = np.flatnonzero(marked[tree.frame])
    return int(nodes[np.argmax(tree.total[nodes])]) if len(nodes) else -1


def _part(shown: Projection, row: int) -> Part | None:
    """The activity ``row``, where the tree shows it."""
    if row < 0:
        return None
    profile, tree = shown.profile, shown.view.tree
    table = profile.activities
    text = shown.labels.text[int(table.frame[row])]
    return Part(text, int(table.duration[row]), int(tree.node_of_group[table.groups.of_row[row]]))


def read_bytes(facts: RootFacts, profile: Profile, rows: I8) -> RootFacts:
    """Add the bytes that the heaviest copies among ``rows`` moved, where the file says them."""
    try:
        launches = profile.launches if facts.copied else None
    except InputError:
        return facts
    if launches is None:
        return facts
    rows = rows[launches.bytes[rows] >= 0]
    frame, size = profile.activities.frame[rows], launches.bytes[rows]
    moved = tuple(int(size[np.isin(frame, each.frames)].sum()) for each in facts.copied)
    return replace(facts, moved=moved)
