"""Filters on stacks, the least share and the layout of a tree, against plain rows of texts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8, sum_by
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.model.tree import ORDERS, StackTree, TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.filters import MinShare, passing_rows
from tests.conftest import EVERY_NSYS_TRACE, needs_traces
from tests.core.projection.test_projection import (
    assert_preorder,
    filters,
    in_script_time,
    loaded,
    metrics,
    random_traces,
    some_levels,
)
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
from tests.support.project_tree import project_tree
from tests.support.recorded import Recorded, leaves
from tests.support.strategies import Script, scripts

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


def project(
    profile: Profile,
    levels: tuple[str, ...] | None,
    metric: str,
    shape: Shape,
    **more: Any,
) -> StackTree | None:
    """The tree under `shape` and `more` filters; None where nothing is left."""
    layout = TreeLayout(shape.inverted, shape.collapsed)
    try:
        return project_tree(profile, levels, where(**shape.filters, **more), metric, layout=layout)
    except NoMatchError:
        return None


def found(tree: StackTree | None) -> dict[Stack, tuple[int, int]]:
    return {} if tree is None else tree_stacks(tree)


class Launched(NamedTuple):
    """One kernel: names from the outermost in, each of one letter."""

    python: str
    nvtx: str
    kernel: str
    time: int

    def stack(self, levels: Iterable[str]) -> Stack:
        """Its frames from the root down."""
        return tuple((level, name) for level in levels for name in getattr(self, level))


def profile_of(activities: Iterable[Launched]) -> Profile:
    """A trace of these, each launched within ranges of its own."""
    trace = Recorded()
    for number, one in enumerate(activities, 1):
        begin = 100 * number
        for depth, name in enumerate(one.nvtx):
            trace.range(name, begin + depth, begin + 50 - depth)
        trace.call("launch", begin + 20, begin + 21, corr=number, python=one.python)
        trace.kernel(one.kernel, 10_000 + begin, 10_000 + begin + one.time, corr=number)
    return trace.profile()


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


def recorded(kernels: dict[str, int]) -> Profile:
    """A trace of kernels of these durations, one after the other."""
    trace, start = Recorded(), 0
    for name, duration in kernels.items():
        trace.kernel(name, start, start + duration)
        start += 1_000
    return trace.profile()


def natural(name: str) -> list[str | int]:
    """Texts and numbers by turns."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


STACKS = {
    "abcb": 1,
    "aabbc": 2,
    "ba": 4,
    "c": 8,
}
"""Names of ranges from the outermost in, and the time of the one kernel below them."""


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape(), {"abcb": 1, "aabbc": 2, "ba": 4, "c": 8}),
        (Shape(show_stacks=("a",)), {"abcb": 1, "aabbc": 2, "ba": 4}),
        (Shape(show_stacks=("a", "c")), {"abcb": 1, "aabbc": 2}),
        (Shape(hide_stacks=("a",)), {"c": 8}),
        (Shape(hide_stacks=("b", "x")), {"c": 8}),
        (Shape(show_from=("b",)), {"bcb": 1, "bbc": 2, "ba": 4}),
        (Shape(show_from=("b", "c")), {"cb": 1, "c": 2}),
        (Shape(show_from=("c", "b")), {"cb": 1, "c": 2}),
        (Shape(show_from=("a", "b")), {"bcb": 1, "bbc": 2, "a": 4}),
        (Shape(hide_frames=("a",)), {"bcb": 1, "bbc": 2, "b": 4, "c": 8}),
        (Shape(hide_frames=("a", "b")), {"c": 11, "": 4}),
        (Shape(hide_frames=("c",), show_stacks=("c",)), {"abb": 1, "aabb": 2, "": 8}),
        (Shape(hide_frames=("b",), show_from=("b",)), {"c": 3, "a": 4}),
        (Shape(collapsed=True), {"abcb": 1, "abc": 2, "ba": 4, "c": 8}),
        (Shape(collapsed=True, hide_frames=("c",)), {"ab": 3, "ba": 4, "": 8}),
        (Shape(inverted=True), {"bcba": 1, "cbbaa": 2, "ab": 4, "c": 8}),
        (Shape(inverted=True, show_from=("b",)), {"bcb": 1, "cbb": 2, "ab": 4}),
    ],
)
def test_what_each_filter_leaves_of_a_few_stacks(shape: Shape, expected: dict[str, int]) -> None:
    profile = profile_of(Launched("", names, "k", time) for names, time in STACKS.items())
    tree = project(profile, ("nvtx",), "gpu", shape)
    assert tree is not None
    assert leaves(tree) == {tuple(names): time for names, time in expected.items()}


def test_a_lone_small_sibling_stays_itself_and_several_are_one() -> None:
    profile = recorded({"wide": 90, "one": 5, "other": 4, "least": 1})
    assert leaves(project_tree(profile, "kernel", where(min_percent=2))) == {
        ("wide",): 90,
        ("one",): 5,
        ("other",): 4,
        ("least",): 1,
    }
    tree = project_tree(profile, "kernel", where(min_percent=5))
    assert leaves(tree) == {("wide",): 90, ("one",): 5, ("[smaller frames]",): 5}
    rest = tree.find(("[smaller frames]",))
    assert (tree.kind(rest), int(tree.count[rest])) == (Kind.REST, 2)


def test_of_several_shares_the_largest_counts() -> None:
    profile = recorded({"wide": 90, "one": 5, "other": 4, "least": 1})
    both = (MinShare(1.0), MinShare(6.0), MinShare(2.0))
    assert leaves(project_tree(profile, "kernel", both)) == {
        ("wide",): 90,
        ("[smaller frames]",): 10,
    }


def test_a_tree_without_any_value_has_no_small_frames() -> None:
    profile = recorded({"one": 0, "other": 0})
    tree = project_tree(profile, "kernel", where(min_percent=50))
    assert [tree.name(node) for node in tree.children(0)] == ["one", "other"]


def test_numbers_in_names_are_sorted_by_value() -> None:
    names = ["layer.10", "layer.9", "layer.09b", "layer", "Layer.11", "layer." + "9" * 5000]
    profile = recorded(dict.fromkeys(names, 1))
    tree = project_tree(profile, "kernel", layout=TreeLayout(order="name"))
    ordered = ["Layer.11", "layer", "layer.9", "layer.09b", "layer.10", "layer." + "9" * 5000]
    assert [tree.name(node) for node in tree.children(0)] == ordered


def test_the_first_start_is_that_of_what_passes() -> None:
    trace = Recorded()
    for name, start in (("both", 0), ("late", 10), ("both", 20)):
        trace.kernel(name, start, start + 5)
    orders = {}
    for window in (None, "5ns/"):
        tree = project_tree(
            trace.profile(), "kernel", where(time=window), layout=TreeLayout(order="start")
        )
        orders[window] = [tree.name(node) for node in tree.children(0)]
    assert orders == {None: ["both", "late"], "5ns/": ["late", "both"]}


@pytest.mark.parametrize("pattern", ["(", "[a", "a{3,2}"])
@pytest.mark.parametrize("option", ["show_stacks", "hide_stacks", "show_from", "hide_frames"])
def test_a_wrong_expression_names_its_option(option: str, pattern: str) -> None:
    wrong: dict[str, Any] = {option: pattern}
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')}: '.*' is not a regular"):
        where(**wrong)


def test_an_unknown_order_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown order 'size': choose from weight, name, start"):
        TreeLayout(order="size")  # type: ignore[arg-type]


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
