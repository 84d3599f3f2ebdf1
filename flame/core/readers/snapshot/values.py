"""Tell numbers of a snapshot that make sense, and make columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from flame.core.columns import I8
from flame.core.model.allocator.history import NO_TIME

Values: TypeAlias = "tuple[int, ...]"

MOST = (1 << 63) - 1
_NS_PER_US = 1_000
_LAST_US = MOST // _NS_PER_US


def is_amount(value: object) -> TypeGuard[int]:
    """Tell whether ``value`` is a whole number that 63 bits hold."""
    return type(value) is int and 0 <= value <= MOST


def time_in_ns(value: object) -> int:
    """The time ``value``, in µs, in ns; `NO_TIME` where that makes no sense."""
    return value * _NS_PER_US if is_amount(value) and value <= _LAST_US else NO_TIME


def columns(rows: Sequence[Values], width: int) -> I8:
    """The columns of ``rows``, i8[width, rows]."""
    return np.array(rows, np.int64).reshape(len(rows), width).T


def amounts(values: Sequence[Any]) -> I8 | None:
    """All of ``values`` as a column, i8[values]; None where `is_amount` does not hold of one."""
    if set(map(type, values)) - {int}:
        return None
    try:
        found = np.array(values, np.int64)
    except OverflowError:
        return None
    return None if found.min(initial=0) < 0 else found


def times_in_ns(values: Sequence[Any]) -> I8 | None:
    """All of ``values``, in µs, as `time_in_ns` has them; None where one makes no sense."""
    found = amounts(values)
    return None if found is None or found.max(initial=0) > _LAST_US else found * _NS_PER_US
