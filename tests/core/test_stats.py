"""Totals per name count recursion once."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.frames import Kind
from flame.core.stats import NameTotal, outermost_of_name, top
from tests.core.recorded import Path, Recorded, stack_tree

PATHS = [path for depth in range(1, 5) for path in itertools.product("abc", repeat=depth)]
values = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 1_000), max_size=8)


def test_recursion_is_counted_once() -> None:
    tree = stack_tree({("f",): 1, ("f", "g", "f"): 10, ("f", "g"): 100})
    assert top(tree) == [
        NameTotal("f", Kind.NVTX, 111, 11, 3),
        NameTotal("g", Kind.NVTX, 110, 100, 2),
    ]


@given(values)
def test_a_name_holds_the_values_of_all_stacks_with_it(own: dict[Path, int]) -> None:
    rows = {row.name: row for row in top(stack_tree(own))}
    assert set(rows) == {name for path in own for name in path}
    for name, row in rows.items():
        holding = [value for path, value in own.items() if name in path]
        assert row.total == sum(holding)
        assert row.count == sum(value > 0 for value in holding)
        assert row.own == sum(value for path, value in own.items() if path[-1] == name)


@given(values)
def test_outermost_nodes_have_no_ancestor_of_their_name(own: dict[Path, int]) -> None:
    tree = stack_tree(own)
    expected = [node for node in range(len(tree)) if tree.name(node) not in tree.names(node)[:-1]]
    assert np.flatnonzero(outermost_of_name(tree)).tolist() == expected


@given(values)
def test_the_largest_comes_first_and_equal_ones_by_name(own: dict[Path, int]) -> None:
    keys = [(-row.total, row.name) for row in top(stack_tree(own))]
    assert keys == sorted(keys)


def test_only_the_kinds_asked_for_are_listed() -> None:
    trace = Recorded()
    trace.range("step", 0, 10)
    trace.call("cudaLaunchKernel", 5, 6, corr=1)
    trace.kernel("gemm", 20, 25, corr=1)
    tree = trace.profile().tree()
    assert [row.name for row in top(tree, (Kind.KERNEL, Kind.NVTX))] == ["gemm", "step"]


def test_an_empty_tree_has_no_names() -> None:
    assert top(stack_tree({})) == []
