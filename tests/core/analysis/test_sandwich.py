"""Callers and callees of a frame weigh what the frame weighs, place by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.sandwich import callees_of, callers_of, merge_places
from flame.core.model.tree import StackTree, TreeLayout
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Path, Recorded, stack_tree

own_values = st.dictionaries(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(tuple),
    st.integers(0, 10**12),
    min_size=1,
    max_size=40,
)


def frame_of(tree: StackTree, name: str) -> int:
    return tree.text.index(name)


class Halves(NamedTuple):
    callers: StackTree
    callees: StackTree


def halves_of(tree: StackTree, frame: int) -> Halves:
    return Halves(callers_of(tree, frame), callees_of(tree, frame))


def named(own: Mapping[Path, int], name: str) -> Halves:
    tree = stack_tree(own)
    return halves_of(tree, frame_of(tree, name))


def sums(tree: StackTree) -> dict[Path, tuple[int, int]]:
    """(value, activities) that end at each path, where any do."""
    return {
        tree.names(node): (int(tree.own[node]), int(tree.own_count[node]))
        for node in range(len(tree))
        if tree.own_count[node]
    }


def naive(own: Mapping[Path, int], name: str) -> tuple[dict[Path, int], dict[Path, int]]:
    """What stands above and below the outermost ``name`` of every stack."""
    callers, callees = Counter[Path](), Counter[Path]()
    for path, value in own.items():
        if name in path and value:
            at = path.index(name)
            callers[path[:at][::-1]] += value
            callees[path[at + 1 :]] += value
    return dict(callers), dict(callees)


def test_the_places_of_a_name_are_merged() -> None:
    halves = named(
        {("a", "f", "g"): 1, ("a", "f"): 2, ("b", "f", "g"): 4, ("b", "f", "h"): 8, ("x",): 99}, "f"
    )
    assert sums(halves.callers) == {("b",): (12, 2), ("a",): (3, 2)}
    assert sums(halves.callees) == {(): (2, 1), ("g",): (5, 2), ("h",): (8, 1)}
    for tree in (halves.callers, halves.callees):
        assert (tree.name(0), int(tree.total[0]), int(tree.count[0])) == ("f", 15, 4)


def test_recursion_is_counted_once_at_the_outermost_place() -> None:
    halves = named({("a", "f", "g", "f", "h"): 5, ("f",): 2}, "f")
    assert sums(halves.callers) == {("a",): (5, 1), (): (2, 1)}
    assert sums(halves.callees) == {("g", "f", "h"): (5, 1), (): (2, 1)}


def test_the_callers_end_below_the_root() -> None:
    assert len(named({("f", "g"): 5}, "f").callers) == 1


def test_the_root_has_no_callers_and_the_whole_tree_below() -> None:
    tree = stack_tree({("a", "b"): 5, ("a",): 1})
    halves = halves_of(tree, 0)
    assert len(halves.callers) == 1
    assert sums(halves.callees) == sums(tree)


def test_children_stand_widest_first() -> None:
    halves = named({("a", "f", "p"): 1, ("b", "f", "q"): 2, ("b", "f", "p"): 3}, "f")
    for tree, names in ((halves.callers, "ba"), (halves.callees, "pq")):
        assert [tree.name(child) for child in tree.children(0)] == list(names)


@given(own_values, st.sampled_from("abcd"))
def test_every_stack_is_found_above_and_below(own: dict[Path, int], name: str) -> None:
    tree = stack_tree(own)
    if name not in tree.text:
        return
    halves = halves_of(tree, frame_of(tree, name))
    above, below = naive(own, name)
    assert {path: value for path, (value, _) in sums(halves.callers).items()} == above
    assert {path: value for path, (value, _) in sums(halves.callees).items()} == below


@given(own_values, st.sampled_from("abcd"))
def test_both_halves_weigh_the_frame_everywhere(own: dict[Path, int], name: str) -> None:
    tree = stack_tree(own)
    if name not in tree.text:
        return
    halves = halves_of(tree, frame_of(tree, name))
    held = [value for path, value in own.items() if name in path]
    for half in (halves.callers, halves.callees):
        assert int(half.total[0]) == sum(held)
        assert int(half.count[0]) == sum(value > 0 for value in held)


@given(own_values, st.sampled_from("abcd"))
def test_halves_are_trees_in_preorder(own: dict[Path, int], name: str) -> None:
    tree = stack_tree(own)
    if name not in tree.text:
        return
    halves = halves_of(tree, frame_of(tree, name))
    for half in (halves.callers, halves.callees):
        assert half.parent[0] == -1
        for node in range(1, len(half)):
            parent = int(half.parent[node])
            assert half.depth[node] == half.depth[parent] + 1
            assert parent < node < half.end[node] <= half.end[parent]
            below = [int(half.frame[child]) for child in half.children(parent)]
            assert len(below) == len(set(below))


@pytest.mark.parametrize("inverted", [False, True])
def test_callers_are_callers_in_an_inverted_tree_too(inverted: bool) -> None:
    trace = Recorded()
    trace.range("step", 0, 10)
    trace.call("cudaLaunchKernel", 5, 6, corr=1)
    trace.kernel("gemm", 20, 25, corr=1)
    profile = trace.profile()
    tree = project_tree(profile, levels=("nvtx", "launch", "kernel"))
    if inverted:
        own: dict[Path, int] = {("gemm", "cudaLaunchKernel", "step"): 5}
        tree = replace(stack_tree(own), layout=TreeLayout(inverted=True))
    halves = halves_of(tree, frame_of(tree, "cudaLaunchKernel"))
    assert [halves.callers.name(node) for node in (0, 1)] == ["cudaLaunchKernel", "step"]
    assert [halves.callees.name(node) for node in (0, 1)] == ["cudaLaunchKernel", "gemm"]


@given(own_values, st.sampled_from("abcd"))
def test_all_places_of_a_frame_are_one_with_their_children(
    own: Mapping[Path, int], name: str
) -> None:
    tree = stack_tree(own)
    if name not in tree.text:
        return
    merged = merge_places(tree, np.flatnonzero(tree.frame == frame_of(tree, name)))
    whole = callees_of(tree, frame_of(tree, name))
    assert merged.name(0) == name
    assert (merged.total[0], merged.own[0], merged.count[0]) == (
        whole.total[0],
        whole.own[0],
        whole.count[0],
    )
    assert {merged.name(node): int(merged.total[node]) for node in merged.children(0)} == {
        whole.name(node): int(whole.total[node]) for node in whole.children(0)
    }
    assert int(merged.depth.max()) <= 1
