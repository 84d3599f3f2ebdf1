"""Load the compiled library, where it is there and wanted."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

LIBRARY = Path(__file__).parents[2] / "libflamecore.so"
_ABI = 10  # FLAMECORE_ABI of csrc/flamecore.h
_NO_MEMORY = -2

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "flamecore_texts_new": (c_void_p, [c_uint64, c_char_p]),
    "flamecore_texts_free": (None, [c_void_p]),
    "flamecore_texts_count": (c_int64, [c_void_p]),
    "flamecore_texts_get": (c_int64, [c_void_p, c_int64, POINTER(c_void_p)]),
    "flamecore_texts_number": (c_int32, [c_void_p, c_char_p, c_int64]),
    "flamecore_decode": (c_int64, [c_void_p, c_void_p, c_int32, c_void_p, c_int64, c_int64]),
    "flamecore_rows_new": (c_void_p, [c_int32, c_uint64]),
    "flamecore_rows_free": (None, [c_void_p]),
    "flamecore_rows_count": (c_int64, [c_void_p]),
    "flamecore_rows_values": (c_void_p, [c_void_p]),
    "flamecore_rows_truncate": (c_int64, [c_void_p, c_int64]),
    "flamecore_rows_number": (
        c_int64,
        [c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p],
    ),
    "flamecore_join": (
        c_int64,
        [c_void_p, c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_void_p],
    ),
    "flamecore_order": (c_int64, [c_void_p, c_void_p, c_int32, c_int64, c_void_p]),
    "flamecore_number_runs": (
        c_int64,
        [c_void_p, c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p],
    ),
    "flamecore_lane_times": (c_int64, [c_void_p, c_int32, c_void_p]),
    "flamecore_times_beside": (c_int64, [c_void_p, c_int32, c_void_p]),
    "flamecore_apportion": (
        c_int64,
        [c_void_p, c_int64, c_void_p, c_int32, c_void_p, c_int64, c_void_p],
    ),
    "flamecore_order_groups": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p, c_void_p],
    ),
    "flamecore_sum_groups": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p],
    ),
    "flamecore_first_of_groups": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_void_p, c_int64, c_int64, c_int32, c_void_p],
    ),
    "flamecore_drawn_places": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int64, c_int64, c_int64, c_void_p],
    ),
    "flamecore_sum_above": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p],
    ),
    "flamecore_summarize_groups": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p, c_int32, c_void_p],
    ),
    "flamecore_search": (c_int64, [c_void_p, c_void_p, c_int32, c_int32, c_void_p]),
    "flamecore_last_open": (c_int64, [c_void_p, c_void_p, c_void_p, c_int32, c_void_p]),
    "flamecore_paths_new": (c_void_p, [c_uint64]),
    "flamecore_paths_free": (None, [c_void_p]),
    "flamecore_paths_count": (c_int64, [c_void_p]),
    "flamecore_paths_parent": (c_void_p, [c_void_p]),
    "flamecore_paths_frame": (c_void_p, [c_void_p]),
    "flamecore_open_at": (
        c_int64,
        [c_void_p, c_void_p, c_void_p, c_int32, c_int32, c_void_p, c_void_p],
    ),
    "flamecore_nest": (c_int64, [c_void_p, c_int32, c_int32, c_void_p]),
    "flamecore_nest_by_depth": (
        c_int64,
        [c_void_p, c_void_p, c_int32, c_int32, c_int64, c_void_p],
    ),
    "flamecore_shown_times": (
        c_int64,
        [c_void_p, c_int32, c_void_p, c_int32, c_void_p, c_void_p],
    ),
    "flamecore_launched": (c_int64, [c_void_p, c_int32, c_void_p, c_void_p]),
    "flamecore_launched_spans": (c_int64, [c_void_p, c_int32, c_void_p, c_void_p]),
    "flamecore_outermost": (c_int64, [c_void_p, c_int32, c_void_p]),
    "flamecore_union": (c_int64, [c_void_p, c_int32, c_void_p]),
    "flamecore_innermost": (c_int64, [c_void_p, c_int32, c_int32, c_void_p]),
}


def compiled() -> Any | None:
    """Return the library; None where it was not built, or FLAME_NO_NATIVE is set and not 0."""
    return _load() if os.environ.get("FLAME_NO_NATIVE", "0") in ("", "0") else None


@cache
def _load() -> Any | None:
    try:
        library = ctypes.CDLL(str(LIBRARY))
        if library.flamecore_abi() != _ABI:
            return None  # left from another version of the sources
    except (OSError, AttributeError):
        return None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def loaded() -> Any:
    """Return the library, which must be there."""
    library = compiled()
    if library is None:
        raise RuntimeError("there is no compiled library")
    return library


def address(column: NDArray[Any]) -> int:
    """Return where the values of ``column`` lie, which must be as `whole` makes them."""
    if not (column.flags.c_contiguous and column.flags.aligned):
        raise ValueError("the values of a column do not lie as C expects them")
    return column.ctypes.data


def copied(place: int, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
    """Return a copy of the values at ``place``, as many as ``shape`` says."""
    values = np.empty(shape, dtype)
    ctypes.memmove(address(values), place, values.nbytes)
    return values


def whole(
    columns: Sequence[NDArray[Any]], dtypes: Sequence[DTypeLike] | None = None
) -> list[NDArray[Any]]:
    """Return ``columns``, all of one length, as C reads them: copies where they lie otherwise."""
    if len({len(column) for column in columns}) != 1:
        raise ValueError("the columns of a table are not of one length")
    return [
        np.require(column, dtype, ("C_CONTIGUOUS", "ALIGNED"))
        for column, dtype in zip(
            columns, dtypes or [column.dtype for column in columns], strict=True
        )
    ]


def checked(result: int) -> int | None:
    """Return what a function returned, None where it refused; raise MemoryError as it asks."""
    if result == _NO_MEMORY:
        raise MemoryError
    return result if result >= 0 else None


def random_key() -> int:
    """Return a key for hashes that no file can know."""
    return int.from_bytes(os.urandom(8), "little")
