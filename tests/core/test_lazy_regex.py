"""A lazy regular expression is compiled by its first use, and then is what it says."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from flame.core.lazy_regex import lazy_regex


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every expression that is compiled."""
    seen: list[str] = []
    compile_ = re.compile

    def compile_seen(pattern: str, flags: int = 0) -> re.Pattern[str]:
        seen.append(pattern)
        return compile_(pattern, flags)

    monkeypatch.setattr(re, "compile", compile_seen)
    return seen


def test_it_is_compiled_when_it_is_first_used_and_once_for_each_method(compiled: list[str]) -> None:
    pattern = lazy_regex(r"a+")
    assert compiled == []
    assert [bool(pattern.match(text)) for text in ("aa", "b", "a")] == [True, False, True]
    assert compiled == [r"a+"]


@pytest.mark.parametrize(
    "use",
    [
        lambda pattern: pattern.pattern,
        lambda pattern: pattern.flags,
        lambda pattern: pattern.groupindex,
        lambda pattern: pattern.sub("-", "xAbx"),
        lambda pattern: pattern.split("1aB2"),
        lambda pattern: [match.span() for match in pattern.finditer("ab AB")],
        lambda pattern: pattern.fullmatch("aB")["last"],
    ],
)
def test_it_does_what_the_compiled_one_does(use: Callable[[re.Pattern[str]], object]) -> None:
    arguments = (r"a(?P<last>b)", re.IGNORECASE)
    assert use(lazy_regex(*arguments)) == use(re.compile(*arguments))


def test_bytes_are_matched_as_well() -> None:
    assert lazy_regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]
