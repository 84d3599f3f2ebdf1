"""Hold a number that a condition names."""

from __future__ import annotations

from typing import NamedTuple


class Quantity(NamedTuple):
    """Hold a measured value in its ``unit``; ``whole`` is what shares of it are of, if of any."""

    value: float
    unit: str
    whole: float | None = None
