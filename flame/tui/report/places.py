"""Find where a row of a report leads: in the tree that is shown, or in that of its own levels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flame.core.columns import I8
from flame.core.frame import ACTIVITY_KINDS
from flame.core.model.tree import StackTree
from flame.core.projection.levels import MADE_LEVELS
from flame.core.projection.selection import Selection, moment_of, with_moment
from flame.core.report.table import Place, source_of
from flame.tui.session.session import Projection

_MOST_PLACES = 500
"""Places of a name whose ways from the root are looked at, the widest."""


def node_at(shown: Projection, place: Place) -> int:
    """Find the widest node that ``place`` may mean in the tree on screen; -1 without any.

    That is a frame of the last name below frames of the others, whatever stands between.
    """
    tree, names = shown.view.tree, place.frames
    if not names or tree.metric.key != place.metric:
        return -1
    if tree.metric.table == "memory" and moment_of(shown.selection) != place.moment:
        return -1
    if place.sources and (node := _along(tree, place)) >= 0:
        return node
    if tree.levels == place.levels:
        node = tree.find(names)
        return node if int(tree.depth[node]) == len(names) else -1
    nodes = _called(tree, names[-1], _level_of(place))
    nodes = nodes[np.argsort(-tree.total[nodes], kind="stable")][:_MOST_PLACES]
    return next((node for node in nodes.tolist() if _is_below(tree, node, names[:-1])), -1)


def _along(tree: StackTree, place: Place) -> int:
    """The node at the end of exactly this path, by names and places in the sources; -1 without."""
    node = 0
    for name, source in zip(place.frames, place.sources, strict=True):
        below = (child for child in tree.children(node) if tree.name(child) == name)
        found = (each for each in below if source_of(tree.frames[int(tree.frame[each])]) == source)
        node = next(found, -1)
        if node < 0:
            return -1
    return node


def _level_of(place: Place) -> str:
    """The level that the last frame is of, where each level has one frame."""
    at = len(place.frames) - 1
    return place.levels[at] if at < len(place.levels) else ""


def _called(tree: StackTree, name: str, level: str) -> I8:
    """The nodes called ``name``, of the kind of ``level``."""
    frames = [frame for frame, text in enumerate(tree.text) if text == name]
    frames = [frame for frame in frames if _is_of(tree, frame, level)]
    return np.flatnonzero(np.isin(tree.frame, frames)).astype(np.int64)


def _is_of(tree: StackTree, frame: int, level: str) -> bool:
    kind = tree.frames[frame].kind
    if level == "kernel":
        return kind in ACTIVITY_KINDS
    return level in ("", *MADE_LEVELS) or kind.title == level


def _is_below(tree: StackTree, node: int, names: tuple[str, ...]) -> bool:
    """Whether frames of these names stand above ``node``, in this order."""
    above = iter(tree.names(node)[:-1])
    return all(name in above for name in names)


def selection_at(selection: Selection, place: Place) -> Selection:
    """Show the levels and the metric of ``place`` instead."""
    metric = None if place.metric == "gpu" else place.metric
    shown = replace(selection, levels=place.levels or selection.levels, metric=metric)
    return with_moment(shown, place.moment)
