"""Split whole numbers in proportion to weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.compiled.library import address, checked, compiled, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


def apportion_values(
    values: NDArray[np.int64], weights: NDArray[np.int64], unit: NDArray[Any]
) -> NDArray[np.int64] | None:
    """Split ``values`` in proportion to the ``weights`` of their parts, exact in sum, i8[parts].

    ``unit`` (i4 or i8) says which of the values each part is of. Each is its quota rounded down, or
    up for the largest remainders, of equal ones the first; where all parts of a value weigh
    nothing, the first has all. None where numpy is to do it.
    """
    library = compiled()
    if library is None or unit.dtype not in (np.int32, np.int64):
        return None
    (values,), (unit, weights) = whole([values], [np.int64]), whole([unit, weights])
    if weights.dtype != np.int64:
        return None
    shares = np.empty(len(weights), np.int64)
    done = library.flamecore_apportion(
        *(address(values), len(values), address(unit), unit.itemsize),
        *(address(weights), len(weights), address(shares)),
    )
    return None if checked(done) is None else shares
