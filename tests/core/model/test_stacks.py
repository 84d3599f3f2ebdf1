"""Stacks as rows of a prefix trie, against plain tuples of frames."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.stacks import EMPTY, StackBuilder, StackTable
from tests.support.profiles.recorded import i8

FRAMES = 4
paths = st.lists(st.integers(0, FRAMES - 1), max_size=5)
some_paths = st.lists(paths, max_size=12)


def built(spelled: list[list[int]]) -> tuple[StackTable, list[int]]:
    """A table of these stacks, and their ids."""
    builder = StackBuilder()
    ids = [builder.add_path(path) for path in spelled]
    return builder.build(), ids


@given(some_paths)
def test_a_stack_spells_its_path(spelled: list[list[int]]) -> None:
    table, ids = built(spelled)
    assert [table.path(stack) for stack in ids] == spelled


@given(some_paths)
def test_equal_paths_are_one_stack(spelled: list[list[int]]) -> None:
    _, ids = built(spelled)
    assert len(set(ids)) == len({tuple(path) for path in spelled})


@given(some_paths)
def test_the_table_holds_every_prefix_once_and_parents_come_first(spelled: list[list[int]]) -> None:
    table, _ = built(spelled)
    prefixes = {tuple(path[:length]) for path in spelled for length in range(len(path) + 1)}
    assert {tuple(table.path(stack)) for stack in range(len(table))} == prefixes | {()}
    assert len(table) == len(prefixes | {()})
    assert all(table.parent[1:] < np.arange(1, len(table)))


@given(some_paths)
def test_depth_is_the_length_of_the_path(spelled: list[list[int]]) -> None:
    table, _ = built(spelled)
    assert table.depth.tolist() == [len(table.path(stack)) for stack in range(len(table))]


@given(some_paths)
def test_extending_columns_at_once_gives_the_ids_of_one_by_one(spelled: list[list[int]]) -> None:
    builder = StackBuilder()
    current = np.zeros(len(spelled), np.int32)
    for step in range(max(map(len, spelled), default=0)):
        rows = [row for row, path in enumerate(spelled) if len(path) > step]
        frames = i8(*(spelled[row][step] for row in rows))
        current[rows] = builder.extend(current[rows], frames)
    assert current.tolist() == [builder.add_path(path) for path in spelled]


def test_extending_again_adds_nothing() -> None:
    builder = StackBuilder()
    first = builder.extend(i8(EMPTY, EMPTY, EMPTY), i8(3, 1, 3))
    again = builder.extend(i8(EMPTY, EMPTY, EMPTY), i8(3, 1, 3))
    assert first.tolist() == again.tolist()
    assert len(builder.build()) == 3


def test_a_path_may_go_on_from_another() -> None:
    builder = StackBuilder()
    outer = builder.add_path([1, 2])
    assert builder.add_path([3], outer) == builder.add_path([1, 2, 3])


@given(some_paths)
def test_many_paths_are_one_table_padded_with_minus_one(spelled: list[list[int]]) -> None:
    table, ids = built(spelled)
    deepest = max(map(len, spelled), default=0)
    padded = [path + [-1] * (deepest - len(path)) for path in spelled]
    assert table.paths(i8(*ids)).tolist() == padded


@given(some_paths, st.sets(st.integers(0, FRAMES - 1)))
def test_containing_marks_stacks_with_a_marked_frame(
    spelled: list[list[int]], marked: set[int]
) -> None:
    table, ids = built(spelled)
    mask = np.isin(np.arange(FRAMES), list(marked))
    expected = [not marked.isdisjoint(path) for path in spelled]
    assert table.contain_any(mask)[ids].tolist() == expected


@given(some_paths, st.lists(st.integers(-1, 9), min_size=FRAMES, max_size=FRAMES))
def test_innermost_is_the_value_of_the_last_frame_that_has_one(
    spelled: list[list[int]], values: list[int]
) -> None:
    table, ids = built(spelled)
    having = [[values[frame] for frame in path if values[frame] >= 0] for path in spelled]
    expected = [known[-1] if known else -1 for known in having]
    assert table.innermost(np.array(values, np.int32))[ids].tolist() == expected


def test_deep_recursion_is_no_obstacle() -> None:
    builder = StackBuilder()
    stack = builder.add_path([0] * 3_000)
    assert builder.build().depth[stack] == 3_000
