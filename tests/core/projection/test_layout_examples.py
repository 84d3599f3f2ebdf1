"""Filters on stacks, the least share and the order of siblings in a few trees, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from flame.core.errors import UsageError
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import TreeLayout
from flame.core.projection.filter_options import where
from flame.core.projection.filters import MinShare
from tests.core.projection.launched_kernels import Launched, profile_of, project
from tests.support.oracles.naive_tree import Shape
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


def recorded(kernels: dict[str, int]) -> Profile:
    """A trace of kernels of these durations, one after the other."""
    trace, start = Recorded(), 0
    for name, duration in kernels.items():
        trace.kernel(name, start, start + duration)
        start += 1_000
    return trace.profile()


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
