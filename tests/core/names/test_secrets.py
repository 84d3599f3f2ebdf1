"""Secrets in command lines, masked by Python; tests/inject/process is about the library."""

from __future__ import annotations

import pytest

from flame.core.names.secrets import mask_line, mask_secrets
from tests.support.secrets import CASES


@pytest.mark.parametrize(("words", "masked"), CASES)
def test_words(words: list[str], masked: list[str]) -> None:
    assert list(mask_secrets(words)) == masked


@pytest.mark.parametrize(("words", "masked"), CASES)
def test_what_is_masked_stays_so(words: list[str], masked: list[str]) -> None:
    assert list(mask_secrets(masked)) == masked


def test_a_line() -> None:
    line = "python  train.py --token abc  --lr 3 HF_TOKEN=x"
    assert mask_line(line) == "python  train.py --token ***  --lr 3 HF_TOKEN=***"
    assert mask_line("") == ""
