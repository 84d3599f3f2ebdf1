"""Search in a stack tree: which nodes match, how often, and how much of the total they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from flame.core.columns import Bool
from flame.core.tree import StackTree


@dataclass(frozen=True)
class Matches:
    """Nodes whose name matches (bool[n]), and their value with nested matches counted once."""

    mask: Bool
    nodes: int
    total: int
    percent: float


def search(tree: StackTree, pattern: re.Pattern[str]) -> Matches:
    """Match ``pattern`` anywhere in the names; every distinct name is tried once."""
    used = np.unique(tree.frame[1:]).tolist()
    fits = np.zeros(len(tree.text), bool)
    fits[[frame for frame in used if pattern.search(tree.text[frame])]] = True
    mask = fits[tree.frame]
    total = int(tree.total[tree.outermost(mask)].sum())
    whole = int(tree.total[0])
    return Matches(mask, int(mask.sum()), total, 100.0 * total / whole if whole else 0.0)
