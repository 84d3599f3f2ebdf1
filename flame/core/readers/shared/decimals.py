"""Convert decimal numbers of a file to whole numbers of one unit, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from flame.core.columns import I8, Column
from flame.core.lazy_regex import lazy_regex

MAX_DECIMALS = 9
NUMBER = lazy_regex(rb"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
"""How a number that is not negative is written."""

_SHORT = 18  # digits that always fit 64 bits
_LIMIT = 1 << 62


class DecimalNumbers:
    """Collects numbers as text; the unit is the largest power of ten that divides all of them.

    ``rounded`` is how many had more than `MAX_DECIMALS` decimals.
    """

    def __init__(self) -> None:
        self._whole: list[I8] = [np.zeros(0, np.int64)]
        self._decimals: list[Column] = [np.zeros(0, np.int8)]
        self.rounded = 0

    def add(self, numbers: Sequence[bytes]) -> None:
        """Append numbers that `NUMBER` matches; OverflowError for one of 2**62 units or more."""
        if b"".join(numbers).isdigit() and max(map(len, numbers)) <= _SHORT:
            self.add_whole(np.fromiter(map(int, numbers), np.int64, len(numbers)))
        elif numbers:
            pairs = np.array(list(map(self._parse, numbers)), np.int64)
            self._whole.append(pairs[:, 0])
            self._decimals.append(pairs[:, 1].astype(np.int8))

    def add_whole(self, numbers: I8) -> None:
        """Append whole numbers of at most 18 digits."""
        self._whole.append(numbers)
        self._decimals.append(np.zeros(len(numbers), np.int8))

    def build(self) -> tuple[I8, int]:
        """Return the numbers times ten to a power, i8[n], and that power.

        OverflowError where they add up to 2**62 or more.
        """
        whole, decimals = np.concatenate(self._whole), np.concatenate(self._decimals)
        power = int(decimals.max(initial=0))
        scale = 10 ** (power - decimals.astype(np.int64))
        if float((whole * scale.astype(np.float64)).sum()) >= _LIMIT:
            raise OverflowError
        return whole * scale, power

    def _parse(self, number: bytes) -> tuple[int, int]:
        """Parse a number to (whole, decimals): as few decimals as it needs."""
        before, _, after = number.partition(b".")
        after = after.rstrip(b"0")
        digits = before + after
        if len(after) <= MAX_DECIMALS and len(digits) <= _SHORT and digits.isdigit():
            return int(digits), len(after)
        return self._parse_long(Decimal(number.decode()))

    def _parse_long(self, number: Decimal) -> tuple[int, int]:
        if number.adjusted() > _SHORT and number:
            raise OverflowError
        # Up to 19 + 9 digits: as many as decimals are counted with.
        near = round(number, MAX_DECIMALS)
        self.rounded += near != number
        whole, decimals = int(near.scaleb(MAX_DECIMALS)), MAX_DECIMALS
        while decimals and whole % 10 == 0:
            whole, decimals = whole // 10, decimals - 1
        if whole >= _LIMIT:
            raise OverflowError
        return whole, decimals


def decimal_unit(power: int) -> str:
    """Return the metric unit of numbers times ten to the ``power``."""
    return f"1e-{power}" if power else "count"
