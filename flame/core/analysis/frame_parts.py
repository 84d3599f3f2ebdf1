"""Sum up what each frame of a tree weighs on every device, or in every file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.analysis.frame_totals import outermost_by_frame
from flame.core.columns import I4, I8, sum_by
from flame.core.model.meta import file_labels
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, subtree_sums
from flame.core.projection.filters import Filter
from flame.core.projection.weights import weigh_groups


class FrameParts(NamedTuple):
    """Hold the parts that frames fall into: ``total`` is i8[parts, frames], recursion once.

    ``names`` are those of the parts. What belongs to none of them is in no part.
    """

    names: tuple[str, ...]
    total: I8


def parts_by_device(
    profile: Profile, tree: StackTree, where: tuple[Filter, ...], frames: I4
) -> FrameParts | None:
    """Sum up ``frames`` (ascending) per device; None with fewer than two.

    ``tree`` is a projection of ``profile`` under the filters ``where``. None also where PC samples
    split activities: whose parts they are is not known.
    """
    many = len(profile.sources) > 1
    names = tuple(
        f"{file_labels(device, profile.sources)} GPU {device.id}" if many else f"GPU {device.id}"
        for device in profile.devices
    )
    return _parts(profile, tree, where, frames, profile.table(tree.metric).groups.device, names)


def parts_by_file(
    profile: Profile, tree: StackTree, where: tuple[Filter, ...], frames: I4
) -> FrameParts | None:
    """Sum up ``frames`` per file of several, as `parts_by_device` does per device."""
    source = np.array([*(process.source for process in profile.processes), -1], np.int32)
    file = source[profile.table(tree.metric).groups.process]
    names = tuple(source.label for source in profile.sources)
    return _parts(profile, tree, where, frames, file, names)


def _parts(
    profile: Profile,
    tree: StackTree,
    where: tuple[Filter, ...],
    frames: I4,
    part: I4,
    names: tuple[str, ...],
) -> FrameParts | None:
    if len(names) < 2 or tree.parts is not None:
        return None
    value = weigh_groups(profile, tree.metric, where).value
    node, frame = outermost_by_frame(tree)
    total = np.zeros((len(names), len(frames)), np.int64)
    for place in range(len(names)):
        here = (part == place) & (tree.node_of_group >= 0)
        own = sum_by(tree.node_of_group[here], value[here], len(tree))
        below = subtree_sums(own, tree.end)
        total[place] = sum_by(frame, below[node], len(tree.text))[frames]
    return FrameParts(names, total)


def spread_of(total: I8) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Tell how many times the least of the parts the largest is, f8[frames]; inf of nothing."""
    most, least = total.max(axis=0), total.min(axis=0)
    return np.where(least > 0, most / np.maximum(least, 1), np.where(most > 0, np.inf, 1.0))
