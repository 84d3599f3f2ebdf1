"""Find where moments stand among moments in order, lane by lane."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from flame.core.compiled.intervals import Moments
from flame.core.compiled.library import address, checked, compiled, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_LANES = 1 << 20
_FEWEST = 64
"""Moments below which calling costs as much as it saves."""


def search_moments(
    ordered: tuple[NDArray[Any] | None, NDArray[np.int64]],
    wanted: tuple[NDArray[Any] | None, NDArray[np.int64]],
    after: bool,
) -> NDArray[np.int64] | None:
    """Find how many of ``ordered`` (lane, time) stand before each of ``wanted``, i8[n].

    With ``after`` also those at the same moment count. Lanes are i4, or None: all are on one. None
    where numpy is to do it.
    """
    library, (lane, time) = compiled(), ordered
    if library is None or len(wanted[1]) < _FEWEST or not len(time):
        return None
    if time.dtype != np.int64 or wanted[1].dtype != np.int64:
        return None
    lanes = 1 if lane is None else int(lane[-1]) + 1
    if lane is not None and (lanes > _MOST_LANES or int(lane[0]) < 0):
        return None
    place = np.empty(len(wanted[1]), np.int64)
    kept = [_columns(*moments) for moments in (ordered, wanted)]
    given = [Moments(len(one[-1]), *_places(one)) for one in kept]
    done = library.flamecore_search(
        *(ctypes.byref(one) for one in given), lanes, after, address(place)
    )
    return None if checked(done) is None else place


def last_open(
    spans: tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]],
    wanted: tuple[NDArray[Any], NDArray[np.int64]],
) -> NDArray[np.int32] | None:
    """Find which of ``spans`` (lane, start, end) is open at each of ``wanted`` (lane, time), i4[n].

    It is the last that has begun on the lane, if it has not ended by then; -1: none. Spans are in
    order of lane and start. None where numpy is to do it.
    """
    library, (lane, start, end) = compiled(), spans
    if library is None or not len(lane):
        return None
    lanes = int(lane[-1]) + 1
    if lanes > _MOST_LANES or int(lane[0]) < 0:
        return None
    kept = whole((lane, start, end), (np.int32, np.int64, np.int64))
    moments = _columns(*wanted)
    found = np.empty(len(moments[-1]), np.int32)
    done = library.flamecore_last_open(
        ctypes.byref(Moments(len(lane), *_places(kept[:2]))),
        address(kept[2]),
        ctypes.byref(Moments(len(found), *_places(moments))),
        *(lanes, address(found)),
    )
    return None if checked(done) is None else found


def _columns(lane: NDArray[Any] | None, time: NDArray[np.int64]) -> list[NDArray[Any]]:
    return whole([time]) if lane is None else whole((lane, time), (np.int32, np.int64))


def _places(columns: list[NDArray[Any]]) -> list[int | None]:
    """Where the lanes and the times of ``columns`` lie; None where there are no lanes."""
    places = [address(column) for column in columns]
    return [None, *places] if len(places) == 1 else [*places]
