"""Stacks of many rows at once: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.shared.stack_rows import build_row_stacks, build_tree_stacks

PATHS = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=30)


def nothing() -> None:
    """No one waits."""


@given(PATHS)
def test_each_row_spells_its_stack(paths: list[list[int]]) -> None:
    frames = np.array([frame for path in paths for frame in path], np.int32)
    lengths = np.array([len(path) for path in paths], np.int64)
    builder, ids = build_row_stacks(frames, lengths, nothing)
    table = builder.build()
    assert [table.path(int(stack)) for stack in ids] == paths
    prefixes = {tuple(path[:size]) for path in paths for size in range(len(path) + 1)} | {()}
    assert len(table) == len(prefixes)


@given(PATHS)
def test_each_node_of_a_tree_has_its_stack(paths: list[list[int]]) -> None:
    nodes = sorted({tuple(path[:size]) for path in [*paths, []] for size in range(len(path) + 1)})
    parent = np.array([nodes.index(node[:-1]) for node in nodes])
    frame = np.array([node[-1] if node else -1 for node in nodes])
    builder, ids = build_tree_stacks(
        parent, frame, np.array([len(node) for node in nodes]), nothing
    )
    table = builder.build()
    assert [tuple(table.path(int(stack))) for stack in ids] == nodes
    assert len(table) == len(nodes)


def test_more_can_be_added_to_the_stacks() -> None:
    builder, ids = build_row_stacks(np.array([1, 2, 1, 3], np.int32), np.array([2, 2]), nothing)
    more = builder.extend(np.array([0, ids[0]]), np.array([1, 9]))
    table = builder.build()
    assert [table.path(int(stack)) for stack in more] == [[1], [1, 2, 9]]


def test_work_can_be_stopped() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_row_stacks(np.array([1], np.int32), np.array([1]), stop)
    with pytest.raises(KeyboardInterrupt):
        build_tree_stacks(np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), stop)
