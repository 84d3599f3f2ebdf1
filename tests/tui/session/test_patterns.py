"""Patterns for whole names: they match that name only, and the name can be had back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.tui.session.patterns import exact, plain
from tests.tui.traces import HOSTILE

names = st.text(st.characters(codec=None)) | st.sampled_from(HOSTILE)


@given(names)
def test_a_name_is_found_by_its_pattern_and_comes_back_from_it(name: str) -> None:
    pattern = exact(name)
    assert re.search(pattern, name)
    assert plain(pattern) == name


@given(names, names)
def test_the_pattern_of_one_name_does_not_find_another(name: str, other: str) -> None:
    if other != name and other != f"{name}\n":
        assert not re.search(exact(name), other)


@given(names)
def test_patterns_are_printable(name: str) -> None:
    assert exact(name).isprintable()


def test_plain_names_stay_readable() -> None:
    assert exact("model.layers.18") == r"^model\.layers\.18$"
    assert exact("void f<int, 4>(float*)") == r"^void f<int, 4>\(float\*\)$"


@pytest.mark.parametrize("pattern", ["gemm", "", "^", "$", "^gemm", "^ge.mm$", "^a|b$", r"^\d$"])
def test_other_patterns_are_no_names(pattern: str) -> None:
    assert plain(pattern) is None
