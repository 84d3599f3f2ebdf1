"""Find the medians of values that are drawn again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.compiled.library import address, checked, compiled, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


def drawn_places(times: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any] | None:
    """Find where in the ``order`` of each row, [k, size], half of what is drawn is reached.

    ``times`` are how often each value is drawn, u1 or u2[size, draws], ``size`` of all in each
    draw. Return as many before it, of the same type [k, draws]; None where numpy is to do it.
    """
    library, (rows, size) = compiled(), order.shape
    if library is None or times.shape[0] != size or times.dtype not in (np.uint8, np.uint16):
        return None
    (times,), (order,) = whole([times]), whole([order], [np.int64])
    place = np.empty((rows, times.shape[1]), times.dtype)
    done = library.flamecore_drawn_places(
        *(address(times), times.itemsize, address(order), rows, size),
        *(times.shape[1], address(place)),
    )
    return None if checked(done) is None else place
