"""The numbers of many names at once are those of one name after the other."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names import number_columns
from flame.core.names.number_columns import MOST_NUMBERS, split_alike
from flame.core.names.numbers import split_numbers

parts = st.sampled_from(
    ["step ", "layers.", ".mlp", "fp16 ", "v", "é", "\ud800", "\0", "\n", "-", ", ", "0", "00", "7"]
) | st.integers(0, 12).map(str)
names = st.lists(st.lists(parts, max_size=6).map("".join), max_size=30)


def shape(name: str) -> str:
    """``name`` with one 0 for each run of digits, character by character."""
    found = ""
    for char in name:
        if char in "0123456789":
            found += "" if found.endswith("0") else "0"
        else:
            found += char
    return found


def check(listed: list[str], fewest: int) -> None:
    """Compare with the plain definition: which are split, what is equal in two of them."""
    shapes = Counter(map(shape, listed))
    expected = {
        at: split_numbers(name)
        for at, name in enumerate(listed)
        if shapes[shape(name)] >= fewest and 0 < len(split_numbers(name).numbers) <= MOST_NUMBERS
    }
    split = split_alike(listed, fewest)
    assert split.name.tolist() == list(expected)
    text, number = dict[str, int](), dict[str, int]()
    for name, text_id, numbers in zip(
        expected.values(), split.text.tolist(), split.numbers.tolist(), strict=True
    ):
        assert text.setdefault("0".join(name.texts), text_id) == text_id
        own = numbers[: len(name.numbers)]
        assert all(one == -1 for one in numbers[len(own) :])
        assert [number.setdefault(*pair) for pair in zip(name.numbers, own, strict=True)] == own
    assert len(set(text.values())) == len(text)
    assert len({-1, -2, *number.values()}) == len(number) + 2


@given(names, st.integers(1, 4))
def test_names_are_split_as_one_by_one(listed: list[str], fewest: int) -> None:
    check(listed, fewest)


@given(names)
def test_names_are_split_alike_in_batches_of_any_size(listed: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_columns, "_BATCH", 5)
        check(listed, 2)


def test_numbers_of_any_length_and_with_zeros_before_differ() -> None:
    digits = [
        "7",
        "07",
        "0",
        "00",
        "9" * 18,
        "1" + "0" * 18,
        "9" * 19,
        "0" * 19,
        "0" * 20,
        "9" * 70,
    ]
    check([f"step {one}" for one in digits + digits], 1)


def test_names_with_more_numbers_than_there_are_columns_are_left_out() -> None:
    counts = [MOST_NUMBERS - 1, MOST_NUMBERS, MOST_NUMBERS + 1, 40_000]
    names = ["a " + " ".join(map(str, range(count))) for count in counts]
    assert split_alike(names, 1).name.tolist() == [0, 1]
    check(names, 1)


def test_names_that_are_few_are_left_out() -> None:
    assert split_alike(["step 1", "step 2", "layer 3"], 2).name.tolist() == [0, 1]


def test_there_may_be_no_names() -> None:
    assert split_alike([], 1).numbers.shape == (0, 0)
