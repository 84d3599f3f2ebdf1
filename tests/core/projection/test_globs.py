"""Globs of ranges and ranks against a matcher that tries everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flame.core.regex import compile_glob


def matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(matches(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and matches(pattern[1:], name[1:])


@given(st.text(alphabet="ab?*[\n", max_size=7), st.text(alphabet="ab?*[\n", max_size=9))
def test_star_and_question_mark_stand_for_text_and_a_character(pattern: str, name: str) -> None:
    assert bool(compile_glob(pattern).fullmatch(name)) == matches(pattern, name)


def test_a_glob_of_many_stars_comes_to_an_end() -> None:
    assert not compile_glob("*a" * 40 + "b").fullmatch("a" * 3000)
