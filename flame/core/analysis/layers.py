"""Find layers of a model that a tree shows apart and that could be folded."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.core.names.rename import fold_indices, fold_module

_MANY = 8
_AT_ONCE = 10_000
"""Frames up to which their names are folded in a few milliseconds."""


class Layers(NamedTuple):
    """Name layers as they would be folded (``nn.Module: Block_*``), and count those apart."""

    name: str
    number: int


def find_layers(tree: StackTree) -> Layers | None:
    """Find the heaviest layers, if there are many; None also where ``tree`` is too large."""
    weight = np.bincount(tree.frame[1:], tree.total[1:])
    used = np.flatnonzero(weight).tolist()
    if len(used) > _AT_ONCE:
        return None
    folded: defaultdict[str, list[int]] = defaultdict(list)
    for frame in used:
        fold = {Kind.NVTX: fold_indices, Kind.PYTHON: fold_module}.get(tree.frames[frame].kind)
        if fold and (name := fold(tree.text[frame])) != tree.text[frame]:
            folded[name].append(frame)
    many = {name: frames for name, frames in folded.items() if len(frames) >= _MANY}
    if not many:
        return None
    heaviest = max(many, key=lambda name: float(weight[many[name]].sum()))
    return Layers(heaviest, len(many[heaviest]))
