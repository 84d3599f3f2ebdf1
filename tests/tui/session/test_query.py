from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.model.frames import Frame, Kind
from flame.tui.session.query import Query, exact_name, exact_pattern, find
from tests.tui.traces import HOSTILE
from tests.tui.trees import node, stack_tree

TREE = stack_tree(
    {
        ("forward", "Attention", "flash"): 40,
        ("forward", "Attention", "Attention", "flash"): 10,
        ("forward", "mlp"): 30,
        ("forward", "zero"): 0,
        ("zero",): 0,
        (Frame(Kind.NVTX, "Attention"),): 20,
    }
)


def names(query: Query) -> list[str]:
    return [TREE.name(found) for found in find(TREE, query).order.tolist()]


def test_case_is_ignored_until_a_capital_is_typed() -> None:
    assert names(Query("attention")) == ["Attention", "Attention", "Attention"]
    assert names(Query("Attention")) == ["Attention", "Attention", "Attention"]
    assert names(Query("FLASH")) == []


def test_a_capital_in_an_escape_does_not_count() -> None:
    assert names(Query(r"^\S+ttention$")) == ["Attention"] * 3
    assert names(Query(r"\bFORWARD")) == []


def test_an_exact_query_takes_the_name_literally_and_whole() -> None:
    assert names(Query("flash", exact=True)) == ["flash", "flash"]
    assert names(Query("flas.", exact=True)) == []
    assert names(Query("las", exact=True)) == []


def test_nested_matches_count_once() -> None:
    found = find(TREE, Query("attention"))
    assert (found.matches.nodes, found.matches.total, found.matches.percent) == (3, 70, 70.0)


def test_matches_without_width_are_counted_but_not_visited() -> None:
    found = find(TREE, Query("zero"))
    assert found.matches.nodes == 2
    assert found.order.tolist() == []


def test_the_root_never_matches() -> None:
    assert 0 not in find(TREE, Query("")).order
    assert node(TREE, "forward") in find(TREE, Query("")).order


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}", "(?P<x", "\\"])
def test_a_wrong_expression_is_explained(pattern: str) -> None:
    with pytest.raises(UsageError, match="not a regular expression: "):
        find(TREE, Query(pattern))


any_name = st.text(st.characters(codec=None)) | st.sampled_from(HOSTILE)


@given(any_name)
def test_a_name_is_found_by_its_pattern_and_comes_back_from_it(name: str) -> None:
    pattern = exact_pattern(name)
    assert re.search(pattern, name)
    assert exact_name(pattern) == name


@given(any_name, any_name)
def test_the_pattern_of_one_name_does_not_find_another(name: str, other: str) -> None:
    if other != name and other != f"{name}\n":
        assert not re.search(exact_pattern(name), other)


@given(any_name)
def test_patterns_are_printable(name: str) -> None:
    assert exact_pattern(name).isprintable()


def test_plain_names_stay_readable() -> None:
    assert exact_pattern("model.layers.18") == r"^model\.layers\.18$"
    assert exact_pattern("void f<int, 4>(float*)") == r"^void f<int, 4>\(float\*\)$"


@pytest.mark.parametrize("pattern", ["gemm", "", "^", "$", "^gemm", "^ge.mm$", "^a|b$", r"^\d$"])
def test_other_patterns_are_no_names(pattern: str) -> None:
    assert exact_name(pattern) is None
