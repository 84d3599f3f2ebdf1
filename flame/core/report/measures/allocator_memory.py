"""Measure how much of each GPU's memory a framework's allocator had given out, and when most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.report.scope import Scope


class GivenOut(NamedTuple):
    """Say how many bytes of a GPU's memory were in use in its window.

    ``most`` was reached at ``at``, ns on the trace's clock, and held to ``until``. ``first`` was in
    use at the first instant, ``last`` after the last one; ``number`` counts instants.
    """

    device: int
    label: str
    number: int
    first: int
    most: int
    at: int
    until: int
    last: int


def given_out(scope: Scope) -> list[GivenOut]:
    """Measure each GPU of ``scope``; those of which nothing is told are left out."""
    return list(_given_out(scope))


def _given_out(scope: Scope) -> Iterator[GivenOut]:
    told = scope.profile.allocator
    if told is None:
        return
    for gpu in scope.gpus:
        chosen = (told.device == gpu.device) & (gpu.device >= 0)
        if scope.selection.where:
            chosen &= (told.time >= gpu.window.low) & (told.time < gpu.window.high)
        rows = np.flatnonzero(chosen)
        if len(rows):
            size, time = told.bytes[rows], told.time[rows]
            most = int(np.argmax(size))
            until = int(time[most + 1]) if most + 1 < len(rows) else scope.profile.end
            sizes = int(size[0]), int(size[most]), int(time[most]), until, int(size[-1])
            yield GivenOut(gpu.device, gpu.label, len(rows), *sizes)
