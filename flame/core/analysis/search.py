"""Search a stack tree: find the nodes that match, and how much of the total they hold."""

from __future__ import annotations

import re

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.tree import StackTree
from flame.core.projection.matching import matching_frames


@dataclass(frozen=True)
class Matches:
    """Hold the nodes whose name matches (bool[n]), and their value, nested matches counted once."""

    mask: Bool
    nodes: int
    total: int
    percent: float


def search(tree: StackTree, pattern: re.Pattern[str], exact: bool = False) -> Matches:
    """Search the names for ``pattern``, anywhere in them; every distinct name is tried once.

    Of kernels not only the names shown count (`matching_frames`), unless an ``exact`` one is meant.
    """
    fits, used = np.zeros(len(tree.text), bool), _used_frames(tree)
    fits[matching_frames(tree.frames, tree.text, used, pattern, exact)] = True
    mask = fits[tree.frame]
    total = int(tree.total[tree.outermost(mask)].sum())
    whole = int(tree.total[0])
    return Matches(mask, int(mask.sum()), total, 100.0 * total / whole if whole else 0.0)


def _used_frames(tree: StackTree) -> I8:
    """Frames that ``tree`` has, the root aside."""
    return np.flatnonzero(np.bincount(tree.frame[1:], minlength=len(tree.text)))
