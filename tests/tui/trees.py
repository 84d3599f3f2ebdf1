"""Stack trees spelled out by hand, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

import numpy as np
from hypothesis import strategies as st

from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import StackTree
from flame.core.projection.tree_builder import BreadthFirst, lay_out_preorder

Path = tuple[str | Frame, ...]


def stack_tree(weights: Mapping[Path, int], metric: str = "gpu", counts: int = 1) -> StackTree:
    """The tree of ``weights`` (own value by path below the root); names are kernels' names.

    Every path with a value counts as ``counts`` activities.
    """
    frames = FrameBuilder()
    for letter in ascii_lowercase:  # so that one letter is one frame in all trees
        frames.add(Frame(Kind.KERNEL, letter))
    nodes: dict[Path, int] = {(): 0}
    rows = [(-1, 0, 0)]
    for depth in range(1, max(map(len, weights), default=0) + 1):
        for path in weights:
            step = path[:depth]
            if len(step) == depth and step not in nodes:
                nodes[step] = len(rows)
                rows.append((nodes[step[:-1]], frames.add(_frame(step[-1])), depth))
    parent, frame, levels = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    own, own_count = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for path, value in weights.items():
        own[nodes[path]] += value
        own_count[nodes[path]] += counts
    table = frames.build()
    columns = BreadthFirst(parent, frame, levels, own, own_count)
    text = tuple(one.name for one in table.frames)
    return lay_out_preorder(columns, table, text, metric_of(metric), ("kernel",))


def _frame(step: str | Frame) -> Frame:
    return step if isinstance(step, Frame) else Frame(Kind.KERNEL, step)


def node(tree: StackTree, *names: str) -> int:
    """The node at the end of ``names``."""
    found = tree.find(names)
    assert tree.depth[found] == len(names), names
    return found


_names = st.sampled_from("abcdefgh")
_paths: st.SearchStrategy[Path] = st.lists(_names, max_size=5).map(tuple)
_values = st.one_of(st.integers(0, 5), st.integers(0, 10_000), st.integers(0, 10**12))
weights = st.dictionaries(_paths, _values, min_size=1, max_size=60)
random_trees = weights.map(lambda chosen: stack_tree(chosen | {("a",): 1}))


def python(name: str) -> Frame:
    """A Python frame called ``name``."""
    return Frame(Kind.PYTHON, name)


_mixed: st.SearchStrategy[str | Frame] = st.sampled_from(
    [*map(python, "abcd"), *(Frame(Kind.NVTX, one) for one in "rs"), "k"]
)
_deep: st.SearchStrategy[Path] = st.lists(_mixed, max_size=9).map(tuple)
_share = st.sampled_from([0, 1, 5, 98, 99, 100, 990, 9_900, 10_000])
chained_trees = st.dictionaries(_deep, _share, min_size=1, max_size=12).map(
    lambda chosen: stack_tree(chosen | {("k",): 1})
)
"""Trees with chains of Python frames and of ranges, some of which lose a little on the way."""
