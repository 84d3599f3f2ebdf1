"""Text of traces is safe to print, and is cut to a width in cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.shown_text import cells, cut, printable


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("void gemm<λ>()", "void gemm<λ>()"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\tc\x85d", r"a\nb\tc\x85d"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\udcff", r"\udcff"),
        ("a\u00a0b\u3000c", "a b c"),
        ("层 🔥", "层 🔥"),
    ],
)
def test_printable(text: str, safe: str) -> None:
    assert printable(text) == safe


@given(st.text())
def test_printable_is_always_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("short", 5, "short"),
        ("abcdefghij", 7, "abcd…ij"),
        ("abcdefghij", 1, "…"),
        ("模块模块模块", 7, "模块…块"),
        ("e\u0301" * 4, 4, "e\u0301" * 4),
    ],
)
def test_cut(text: str, width: int, short: str) -> None:
    assert cut(text, width) == short


@given(st.text(), st.integers(1, 30))
def test_cut_fits(text: str, width: int) -> None:
    text = printable(text)
    assert cells(cut(text, width)) <= width
