"""What users type as regular expressions."""

from __future__ import annotations

import re

import pytest

from flame.core.errors import UsageError
from flame.core.regex import compile_expression


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
