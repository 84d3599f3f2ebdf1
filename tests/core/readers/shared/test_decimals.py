"""Numbers of a file as wholes of one unit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.readers.shared.decimals import NUMBER, DecimalNumbers, decimal_unit


def built(*numbers: bytes) -> tuple[list[int], int]:
    decimals = DecimalNumbers()
    decimals.add(numbers)
    values, power = decimals.build()
    return values.tolist(), power


@given(st.lists(st.decimals(0, 10**6, places=9) | st.integers(0, 10**6), max_size=20))
def test_exact(numbers: list[Decimal | int]) -> None:
    values, power = built(*(str(number).encode() for number in numbers))
    assert [Decimal(value).scaleb(-power) for value in values] == numbers
    assert power == 0 or any(value % 10 for value in values)


@given(st.floats(0, 1e9))
def test_floats_as_python_writes_them(number: float) -> None:
    text = repr(number).encode()
    assert NUMBER.fullmatch(text)
    (value,), power = built(text)
    assert abs(Decimal(value).scaleb(-power) - Decimal(repr(number))) <= Decimal("5e-10")


def test_pieces_share_a_unit() -> None:
    decimals = DecimalNumbers()
    decimals.add([b"1", b"2"])
    decimals.add([])
    decimals.add([b"0.5"])
    values, power = decimals.build()
    assert (values.tolist(), power, decimal_unit(power)) == ([10, 20, 5], 1, "1e-1")
    assert decimal_unit(0) == "count"


def test_what_is_rounded_is_counted() -> None:
    decimals = DecimalNumbers()
    decimals.add([b"0.0000000004", b"1.5", b"2e-12"])
    assert decimals.build()[0].tolist() == [0, 15, 0]
    assert decimals.rounded == 2


@pytest.mark.parametrize(
    "numbers",
    [
        [b"4611686018427387904"],
        [b"4e18", b"4e18"],
        [b"1e19"],
        [b"1e9999"],
        [b"9999999999", b"0.000000001"],
        [b"9" * 100_000],
    ],
)
def test_too_large(numbers: list[bytes]) -> None:
    with pytest.raises(OverflowError):
        built(*numbers)


@pytest.mark.parametrize("text", [b"-1", b"+1", b"", b".", b"1_000", b"0x1", b"nan", b"inf", b"1e"])
def test_what_is_no_number(text: bytes) -> None:
    assert not NUMBER.fullmatch(text)
