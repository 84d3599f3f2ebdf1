"""Find what was open at moments: paths of intervals that nest, lane by lane."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flame.core.compiled.library import address, checked, compiled, copied, random_key, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_LANES = 1 << 24


class IntervalPaths(NamedTuple):
    """Hold the paths that were open at moments.

    ``path`` i4[moments] is a row of ``parent`` and ``frame`` (i4 each; row 0 is the empty path,
    parents come before their children). ``refused`` bool[lanes] marks lanes whose intervals do not
    nest: the paths of their moments are empty.
    """

    path: NDArray[np.int32]
    parent: NDArray[np.int32]
    frame: NDArray[np.int32]
    refused: NDArray[np.bool_]


class _Intervals(ctypes.Structure):
    _fields_ = (
        ("count", c_int64),
        ("lane", c_void_p),
        ("start", c_void_p),
        ("end", c_void_p),
        ("frame", c_void_p),
    )


class Moments(ctypes.Structure):
    """Give C the lanes of moments, NULL where all are on one, and their times."""

    _fields_ = (("count", c_int64), ("lane", c_void_p), ("time", c_void_p))


def find_open(
    intervals: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    moments: tuple[NDArray[Any], NDArray[Any]],
    deepest: int,
) -> IntervalPaths | None:
    """Find the paths of ``intervals`` (lane, start, end, frame) open at ``moments`` (lane, time).

    Both ends are included; lanes of -1 are left out. None where this is refused as a whole.
    """
    library = compiled()
    lanes = 1 + max(int(lane.max(initial=-1)) for lane in (intervals[0], moments[0]))
    if library is None or lanes > _MOST_LANES:
        return None
    spans = whole(intervals, (np.int32, np.int64, np.int64, np.int32))
    times = whole(moments, (np.int32, np.int64))
    path, refused = np.zeros(len(times[0]), np.int32), np.zeros(max(lanes, 1), np.uint8)
    given = (
        _Intervals(len(spans[0]), *map(address, spans)),
        Moments(len(times[0]), *map(address, times)),
    )
    paths = library.flamecore_paths_new(random_key())
    if not paths:
        raise MemoryError
    try:
        done = library.flamecore_open_at(
            paths, *map(ctypes.byref, given), lanes, deepest, address(path), address(refused)
        )
        if checked(done) is None:
            return None
        size = library.flamecore_paths_count(paths)
        parent, frame = (
            copied(place(paths), np.int32, size)
            for place in (library.flamecore_paths_parent, library.flamecore_paths_frame)
        )
    finally:
        library.flamecore_paths_free(paths)
    return IntervalPaths(path, parent, frame, refused.view(np.bool_))
