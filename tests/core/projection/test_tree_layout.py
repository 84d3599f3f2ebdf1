"""Filters on stacks, the least share and the layout of a tree, against plain rows of texts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8, sum_by
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import ORDERS, StackTree, TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.filters import passing_rows
from tests.conftest import EVERY_NSYS_TRACE, needs_traces
from tests.core.projection.launched_kernels import Launched, profile_of, project
from tests.core.projection.test_projection import (
    assert_preorder,
    filters,
    in_script_time,
    loaded,
    metrics,
    random_traces,
    some_levels,
)
from tests.support.generated.strategies import Script, scripts
from tests.support.oracles.naive import Row, naive
from tests.support.oracles.naive_tree import (
    Shape,
    Stack,
    passes,
    shaped,
    stack,
    tree_stack,
    tree_stacks,
    weighed,
    without_smaller,
)
from tests.support.profiles.project_tree import project_tree

pattern = st.sampled_from(["forward", "^layer$", "attn", "gemm", "Launch", "^$", "stream|GPU"])
none = st.just(())
one = st.tuples(pattern)
two = st.tuples(pattern, pattern)


def shapes_with(**filters: st.SearchStrategy[tuple[str, ...]]) -> st.SearchStrategy[Shape]:
    return st.builds(Shape, inverted=st.booleans(), collapsed=st.booleans(), **filters)


# Few filters at a time, or next to nothing would ever be left.
shapes = st.one_of(
    shapes_with(),
    shapes_with(show_stacks=one | two),
    shapes_with(hide_stacks=one, hide_frames=none | one),
    shapes_with(show_from=one | two),
    shapes_with(hide_frames=one | two),
    shapes_with(show_stacks=one, show_from=one, hide_frames=one),
)


def found(tree: StackTree | None) -> dict[Stack, tuple[int, int]]:
    return {} if tree is None else tree_stacks(tree)


launched = st.builds(
    Launched,
    python=st.text("ab", max_size=3),
    nvtx=st.text("abc", max_size=4),
    kernel=st.sampled_from("ac"),
    time=st.integers(0, 9),
)
activities = st.lists(launched, min_size=1, max_size=10)
letters = st.sampled_from(["a", "b", "c", "[ab]", "^$"])
one_letter, two_letters = st.tuples(letters), st.tuples(letters, letters)
letter_shapes = st.one_of(
    shapes_with(),
    shapes_with(show_stacks=one_letter | two_letters),
    shapes_with(hide_stacks=one_letter, hide_frames=none | one_letter),
    shapes_with(show_from=one_letter | two_letters),
    shapes_with(hide_frames=one_letter | two_letters),
    shapes_with(show_stacks=one_letter, show_from=one_letter, hide_frames=one_letter),
)
letter_levels = st.permutations(["python", "nvtx", "kernel"]).flatmap(
    lambda order: st.integers(1, 3).map(lambda size: tuple(order[:size]))
)


@given(activities, letter_levels, letter_shapes)
def test_stacks_are_filtered_and_arranged_one_by_one(
    activities: list[Launched], levels: tuple[str, ...], shape: Shape
) -> None:
    expected = shaped([(one.stack(levels), one.time) for one in activities], shape)
    profile = profile_of(activities)
    tree = project(profile, levels, "gpu", shape)
    assert found(tree) == expected
    if tree is not None:
        assert_whole(tree, profile)
        assert int(tree.total[0]) == sum(value for value, _ in expected.values())


def assert_whole(tree: StackTree, profile: Profile) -> None:
    assert_preorder(tree)
    pairs = list(zip(tree.parent.tolist(), tree.frame.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert_groups_end(tree, *profile.totals_by_group(tree.metric))


@given(activities, letter_levels, letter_shapes, st.sampled_from([0.0, 1.0, 10.0, 33.3, 100.0]))
def test_small_siblings_become_one_and_nothing_is_lost(
    activities: list[Launched], levels: tuple[str, ...], shape: Shape, percent: float
) -> None:
    stacks = [(one.stack(levels), one.time) for one in activities]
    profile = profile_of(activities)
    tree = project(profile, levels, "gpu", shape, min_percent=percent)
    assert found(tree) == without_smaller(shaped(stacks, shape), percent)
    if tree is not None:
        assert_whole(tree, profile)


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics, shape=shapes, chosen=filters)
def test_filters_on_activities_and_on_stacks_hold_together(
    script: Script,
    levels: tuple[str, ...],
    metric: str,
    shape: Shape,
    chosen: dict[str, Any],
    trace_file: Path,
) -> None:
    profile, rows = loaded(script, trace_file)
    chosen = in_script_time(chosen, script)
    kept = [row for row in rows if passes(row, chosen)]
    tree = project(profile, levels, metric, shape, **chosen)
    assert found(tree) == shaped(weighed(kept, levels, metric), shape)


@random_traces
@given(
    script=scripts(),
    levels=some_levels,
    metric=metrics,
    shape=shapes,
    chosen=filters,
    percent=st.sampled_from([None, 20.0]),
)
def test_every_activity_group_knows_its_node(
    script: Script,
    levels: tuple[str, ...],
    metric: str,
    shape: Shape,
    chosen: dict[str, Any],
    percent: float | None,
    trace_file: Path,
) -> None:
    profile, _ = loaded(script, trace_file)
    chosen = in_script_time(chosen, script)
    tree = project(profile, levels, metric, shape, **chosen, min_percent=percent)
    if tree is None:
        return
    assert_groups_end(tree, *weights_by_group(profile, metric, chosen))


def assert_groups_end(tree: StackTree, value: I8, count: I8) -> None:
    """Every group's `value` and `count` are those of the node where it ends."""
    assert tree.node_of_group.dtype == np.int32
    inside = tree.node_of_group >= 0
    node = tree.node_of_group[inside]
    assert np.array_equal(sum_by(node, value[inside], len(tree)), tree.own)
    assert np.array_equal(sum_by(node, count[inside], len(tree)), tree.own_count)
    assert set(np.flatnonzero(tree.own_count)) == set(node[count[inside] > 0])


def weights_by_group(profile: Profile, metric: str, chosen: dict[str, Any]) -> tuple[I8, I8]:
    """(value, count) per group, of the rows in the time window."""
    measure = metric_of(metric)
    window = where(time=chosen.get("time"))
    rows = passing_rows(profile, profile.table(measure), window)
    return profile.totals_by_group(measure, None if rows is None else np.flatnonzero(rows))


@random_traces
@given(script=scripts(), shape=shapes, seed=st.randoms())
def test_the_order_of_filters_does_not_matter(
    script: Script, shape: Shape, seed: random.Random, trace_file: Path
) -> None:
    profile, _ = loaded(script, trace_file)
    chosen = list(where(**shape.filters, min_percent=20.0, time="-1s/"))
    shuffled = seed.sample(chosen, len(chosen))
    trees = []
    for one in (chosen, shuffled):
        try:
            trees.append(tree_stacks(project_tree(profile, "nvtx,kernel", tuple(one))))
        except NoMatchError:
            trees.append({})
    assert trees[0] == trees[1]


@random_traces
@given(script=scripts(), levels=some_levels, metric=metrics, order=st.sampled_from(ORDERS))
def test_siblings_stand_in_order(
    script: Script, levels: tuple[str, ...], metric: str, order: Any, trace_file: Path
) -> None:
    profile, rows = loaded(script, trace_file)
    tree = project_tree(profile, levels, metric=metric, layout=TreeLayout(order=order))
    assert found(tree) == shaped(weighed(rows, levels, metric), Shape())
    assert_preorder(tree)
    key = sort_key(tree, order, rows, levels)
    for node in range(len(tree)):
        for one, other in pairwise(tree.children(node)):
            assert key(one) <= key(other)


def sort_key(
    tree: StackTree, order: str, rows: list[Row], levels: tuple[str, ...]
) -> Callable[[int], Any]:
    if order == "weight":
        return lambda node: -int(tree.total[node])
    if order == "name":
        return lambda node: natural(tree.name(node))
    start: dict[Stack, int] = {}
    for row in rows:
        path = Shape().apply(stack(row, levels)) or ()
        for depth in range(len(path) + 1):
            start[path[:depth]] = min(row.start, start.get(path[:depth], row.start))
    return lambda node: start[tree_stack(tree, node)]


def natural(name: str) -> list[str | int]:
    """Texts and numbers by turns."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


@needs_traces
@pytest.mark.parametrize("trace", EVERY_NSYS_TRACE)
def test_real_traces_agree_with_plain_rows(trace: str, nsys_trace: Callable[[str], Path]) -> None:
    path = nsys_trace(trace)
    profile, rows = load(path, LoadOptions("raw")), naive(path)
    if not rows:
        return
    levels = ("python", "native", "launch", "nvtx", "kernel")
    for shape in (
        Shape(hide_frames=("^cuda|^cu[A-Z]",), inverted=True),
        Shape(show_stacks=("gemm|conv|mm",), collapsed=True),
        Shape(hide_stacks=("elementwise",), show_from=("[Ff]orward|step|main",)),
    ):
        expected = shaped(weighed(rows, levels, "gpu"), shape)
        assert found(project(profile, levels, "gpu", shape)) == expected
        small = project(profile, levels, "gpu", shape, min_percent=1.0)
        assert found(small) == without_smaller(expected, 1.0)
