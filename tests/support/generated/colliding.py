"""Make pairs of numbers whose hashes are one and the same in CPython, which has no secret there."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_FIRST, _SECOND, _START = 11400714785074694791, 14029467366897019727, 2870177450012600261
"""The primes of xxHash by which CPython hashes tuples (Objects/tupleobject.c)."""

_MODULUS = (1 << 61) - 1
"""Numbers below it, and not -1, are their own hashes."""


def colliding_rows(count: int) -> list[tuple[int, int]]:
    """Pairs of different numbers of 64 bits, whose tuples have one hash."""
    target = _step(_step(_START, 1), 2)
    rows: list[tuple[int, int]] = []
    first = 0
    while len(rows) < count:
        first += 1
        second = (_rotate(target * pow(_FIRST, -1, 1 << 64) & _MASK, 33) - _step(_START, first)) & (
            _MASK
        )
        number = second * pow(_SECOND, -1, 1 << 64) & _MASK
        number -= (number >> 63) << 64
        if abs(number) < _MODULUS and number != -1:
            rows.append((first, number))
    return rows


def _step(state: int, value: int) -> int:
    return _rotate(state + value * _SECOND & _MASK, 31) * _FIRST & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
