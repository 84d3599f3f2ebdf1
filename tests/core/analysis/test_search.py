"""Search counts nested matches once."""

from __future__ import annotations

import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.search import Matches, search
from flame.core.regex import find_matching
from tests.support.profiles.recorded import Path, stack_tree

NAMES = ("a", "b", "ab")
PATHS = [path for depth in range(1, 5) for path in itertools.product(NAMES, repeat=depth)]
values = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 1_000), max_size=8)

TREE = {("step", "layer.0"): 30, ("step", "layer.1", "layer.1.attn"): 50, ("other",): 20}


def found(pattern: str, own: dict[Path, int]) -> Matches:
    return search(stack_tree(own), re.compile(pattern))


def test_a_match_anywhere_in_a_name_counts() -> None:
    matches = found("lay", TREE)
    assert (matches.nodes, matches.total, matches.percent) == (3, 80, 80.0)


def test_matching_nodes_are_marked() -> None:
    tree = stack_tree(TREE)
    mask = search(tree, re.compile(r"attn|other")).mask
    assert {tree.name(node) for node in np.flatnonzero(mask).tolist()} == {"layer.1.attn", "other"}


def test_the_root_never_matches() -> None:
    matches = found("all", TREE)
    assert (matches.nodes, matches.total, matches.percent) == (0, 0, 0.0)


def test_an_empty_tree_has_no_share_to_give() -> None:
    assert found(".", {}).percent == 0.0


@given(values)
def test_the_total_is_that_of_all_stacks_with_a_match(own: dict[Path, int]) -> None:
    expected = sum(value for path, value in own.items() if any("b" in name for name in path))
    assert found("b", own).total == expected


NASTY = ("gemm_k", "GEMM_K", "gemm_\u212a", "\u017fum", "sum", "\u0130", "i", "", "k k")


@given(
    st.lists(st.sampled_from(NASTY), min_size=1),
    st.text(alphabet="gemkGEMKsi_ .*\u0130", max_size=4),
    st.sampled_from([0, re.IGNORECASE]),
)
def test_plain_expressions_find_exactly_what_the_expression_does(
    names: list[str], wanted: str, flags: int
) -> None:
    try:
        pattern = re.compile(wanted, flags)
    except re.error:
        return
    expected = [place for place, name in enumerate(names) if pattern.search(name)]
    assert find_matching(tuple(names), np.arange(len(names)), pattern) == expected
