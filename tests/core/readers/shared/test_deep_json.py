"""JSON without a limit to its depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.shared.deep_json import decode_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
DEPTH = 5_000


def unwrapped(value: object) -> object:
    for _ in range(DEPTH):
        assert isinstance(value, list)
        (value,) = value
    return value


@given(VALUES, st.sampled_from([None, 2]))
def test_deep_and_shallow_say_the_same(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=indent is None).encode()
    assert decode_json(text) == value
    assert unwrapped(decode_json(b"[" * DEPTH + text + b"]" * DEPTH)) == value


@pytest.mark.parametrize(
    "inner",
    [
        b"",
        b'"a',
        b'{"a"}',
        b"nul",
        b"]",
        b"}",
        b"[",
        b"{",
        b'"\xff"',
        b"\\",
        b"1 2",
        b"{[]:1}",
        b"{1:1}",
    ],
)
def test_damage_is_found_at_any_depth(inner: bytes) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+\Z"):
        decode_json(b"[" * 3 + inner)
    with pytest.raises(ValueError, match=r"^[^\n]+\Z"):
        decode_json(b"[" * DEPTH + inner)


def test_no_key_is_made_of_what_is_no_text() -> None:
    deep = b"[" * DEPTH + b"]" * DEPTH
    with pytest.raises(ValueError, match=r"a key that is no text|keys must be strings"):
        decode_json(b"[" + deep + b",{" + deep + b":1}]")


def test_what_is_deeper_than_any_stack_is_refused_before_it_is_read() -> None:
    levels = 99_998
    assert decode_json(b"[" * levels + b"]" * levels)
    with pytest.raises(ValueError, match="nested deeper than 100,000 levels"):
        decode_json(b"[" * 100_001)
