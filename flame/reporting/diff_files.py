"""Write both sides of a comparison for other tools."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from flame.core.compare.changes import base_as_new
from flame.core.compare.comparison import Comparison
from flame.exporters import folded, speedscope


def write_folded(comparison: Comparison, file: BinaryIO, *, widths: str = "new") -> None:
    """Write stacks with both values, the base's scaled to the new side's basis, ``widths`` last."""
    own = comparison.own_changes
    columns = base_as_new(own), own.new.total
    first, second = columns if widths == "new" else columns[::-1]
    folded.write_two(comparison.union.tree, first, second, file)


def write_speedscope(comparison: Comparison, file: BinaryIO, name: str) -> list[str]:
    """Write profiles of both sides, and of what grew and shrank: the format knows no negatives.

    Returns warnings as `flame.exporters.speedscope.write` does.
    """
    own, tree = comparison.own_changes, comparison.union.tree
    base, new = base_as_new(own), own.new.total
    values = {
        "new": new,
        "base": base,
        "grew": np.maximum(new - base, 0),
        "shrank": np.maximum(base - new, 0),
    }
    trees = {title: replace(tree, own=column) for title, column in values.items()}
    return speedscope.write_trees(trees, file, name)
