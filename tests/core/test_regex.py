"""What users type as regular expressions."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.core import regex as module
from flame.core.errors import UsageError
from flame.core.expression_syntax import longest_within
from flame.core.names.framework import USUAL
from flame.core.regex import Limit, compile_expression, find_matching, fits, substitute
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("text", ["(", "*", "[a", "a{99999999999}", "(?P<n>)(?P<n>)"])
def test_a_wrong_one_is_told_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"\Anot a regular expression: [^\n]+\Z"):
        compile_expression(text)


@pytest.mark.parametrize("text", ["[[a]", "[a||b]", "[a&&b]"])
def test_what_python_only_warns_of_is_taken_as_it_is(text: str) -> None:
    # Warnings are errors in these tests.
    assert compile_expression(text).search("a")


def test_flags_are_those_asked_for() -> None:
    assert compile_expression("gemm", re.IGNORECASE).search("GEMM")
    assert not compile_expression("gemm").search("GEMM")


# Those that may take years

ENDLESS = ("(a+)+$", "(x*)*y", "(a|a)*b", "((a|b)*c*)*d", "(?:(?:a?)*b?)*c$", r"(\w+\s?)*z$")
LONG = "ax" * 20 + "a" * 5000 + "!"
HARD = r"^(([a-z!])+.)+[A-Z]([a-z!])+$"
"""Takes years with the name `LONG`, whichever module searches for it."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_SEARCH", 0.05)


def complaint(text: str) -> str:
    return f"^{re.escape(repr(text))} takes too long: try a simpler expression$"


@pytest.mark.parametrize("text", ENDLESS)
def test_what_can_be_told_soon_is_found(impatient: None, text: str) -> None:
    names, pattern = (LONG, "abcdyz", "no"), compile_expression(text)
    expected = [bool(pattern.search("abcdyz")), bool(pattern.search("no"))]
    try:
        found = find_matching(names, np.arange(3), pattern)
    except UsageError as error:
        assert str(error).endswith("takes too long: try a simpler expression")
    else:
        assert [at in found for at in (1, 2)] == expected


def test_a_search_without_an_end_is_given_up(impatient: None) -> None:
    with pytest.raises(UsageError, match=complaint(HARD)):
        find_matching(("short", LONG), np.arange(2), compile_expression(HARD))
    with pytest.raises(UsageError, match=complaint(HARD)):
        fits(compile_expression(HARD), LONG, Limit())
    with pytest.raises(UsageError, match=complaint(HARD)):
        substitute(compile_expression(HARD), "", LONG, Limit())


def test_names_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each name takes 1 s; of the first three the third is one too many.
    clock = iter(range(100))
    monkeypatch.setattr(module, "monotonic", lambda: next(clock))
    limit, pattern = Limit(), compile_expression("a")
    assert fits(pattern, "a", limit)
    with pytest.raises(UsageError, match="too long"):
        for _ in range(3):
            fits(pattern, "a", limit)


def test_other_threads_run_meanwhile(impatient: None) -> None:
    monkey = threading.Event()
    done = threading.Event()

    def search() -> None:
        monkey.set()
        with pytest.raises(UsageError):
            fits(compile_expression(HARD), LONG, Limit())
        done.set()

    threading.Thread(target=search).start()
    assert monkey.wait(PATIENCE)
    turns = 0
    while not done.is_set():
        turns += 1
    assert turns > 1000


# How long `re` may take


@pytest.mark.parametrize(
    "text",
    ["(a+)+", "(a|b)*", "(a?){9}", "((a)|b)+", "(?x) a # (", "(?x:a#[\n)", "(a*)++", "(a*){,3}"],
)
def test_what_may_take_any_time_is_for_no_name(text: str) -> None:
    assert longest_within(10**9, re.compile(text)) == 0


@pytest.mark.parametrize(
    ("simple", "hard"),
    [
        ("gemm", ".*gemm"),
        (".*gemm", ".*gemm.*"),
        ("a|b.*", "(a|b.*).*"),
        ("[a*+]+", "a*b+"),
        (r"\(a*\)", r"(a*)\1"),
        ("(?:ab)*", "(?:ab)*c*"),
        ("(?P<n>a*)", "(?P<n>a*)(?P=n)"),
        ("[]*]", "[a]*]"),
    ],
)
def test_more_ways_to_match_are_for_shorter_names(simple: str, hard: str) -> None:
    assert longest_within(10**9, re.compile(simple)) > longest_within(10**9, re.compile(hard)) > 100


PIECES = (
    *"abi{}[]()|*+?.^$-:=<>&~#\\,1 I",
    *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", r"\Z", r"\A", r"\1", r"\.", r"\["),
    *(
        "(?:",
        "(a|b)",
        "(?=",
        "(?!",
        "(?<=a)",
        "(?i)",
        "(?>",
        "(?P<n>",
        "(?P=n)",
        "(?(1)a|b)",
        "(?i:",
    ),
    *("[[:alpha:]]", "{e<=1}", "{1,2}", "{,2}", "[a-z]", "[^b]", r"[\w.]", r"[\S]", "a*", "(a+)+"),
    *(
        "[a||b]",
        "[a&&b]",
        "[b~~c]",
        "++",
        "*?",
        r"\x61",
        r"\N{DIGIT ONE}",
        "é",
        "K",
        "(?s:.",
    ),
)
NAMES = ("", "a", "ab", "aab{e<=1}", "[:alpha:]]", "b-a b", "A:B::i", "1 2\n", "a||b&&~~", "x\x1cy")
UNUSUAL = ("é", "e\u0301b", "a²", "\u212a", "ſ s", "\x1c a", "١ 1", "日本 a", "\u0130b", "\x1f")


def spans(pattern: Any, name: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(name)]


def assert_alike(text: str, flags: int, names: Iterable[str]) -> None:
    try:
        pattern = compile_expression(text, flags)
    except UsageError:
        return
    for name in filter(None, names):
        stoppable = module._stoppable(pattern, name)
        assert bool(stoppable.search(name)) == bool(pattern.search(name)), (text, name)
        assert spans(stoppable, name) == spans(pattern, name), (text, name)
        assert stoppable.sub(r"<\g<0>>", name) == pattern.sub(r"<\g<0>>", name), (text, name)


texts = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
names_of_any_kind = st.lists(
    st.one_of(
        st.text(alphabet="aAbBiI1{}[]:|&~-. \n", max_size=9),
        st.text(max_size=5),
        st.sampled_from(NAMES + UNUSUAL),
    ),
    max_size=4,
)


@pytest.mark.deep
@given(texts, st.sampled_from([0, re.IGNORECASE]), names_of_any_kind)
@settings(max_examples=150)
def test_both_modules_find_the_same(text: str, flags: int, names: list[str]) -> None:
    assert_alike(text, flags, [name for name in names if "ı" not in name and "\u0130" not in name])


@pytest.mark.deep
@given(texts, st.sampled_from([0, re.IGNORECASE]), names_of_any_kind)
@settings(max_examples=2000)
def test_both_modules_find_the_same_often(text: str, flags: int, names: list[str]) -> None:
    assert_alike(text, flags, [name for name in names if "ı" not in name and "\u0130" not in name])


@pytest.mark.parametrize(
    "text",
    [
        *("(?:foo){e<=1}", "[[:alpha:]]", "a{,}", "a{,2}b", "x{lambda}", "{lambda()#1}", "[a||b]"),
        *("a{", "a{1", "a{1,", "a{}", "[]a]", "[^]a]", "[[a]]", "$", r"(?<!\w)b", r"[^\W\d]"),
        *(r"[\s,]", "(?x)a b # [", "[+--]", r"\bgemm\b", r"at::\S+<.*>", "^(?!nn.Module)"),
        *("(?i)NCCL", r"\d+$", USUAL, r"(?a:\w)", r"[\]\[]"),
    ],
)
def test_expressions_of_users_mean_the_same(text: str) -> None:
    assert_alike(text, 0, NAMES + UNUSUAL)
    assert_alike(text, re.IGNORECASE, NAMES + UNUSUAL)


def test_the_package_is_imported_only_for_what_may_take_long() -> None:
    code = """
import sys, re, numpy as np
from flame.core.regex import find_matching
find_matching(("gemm", "x" * 300), np.arange(2), re.compile("^.*gemm$|[abc]{3}", re.I))
assert "regex" not in sys.modules
find_matching(("gemm",), np.arange(1), re.compile("(a|b+)+"))
assert "regex" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
