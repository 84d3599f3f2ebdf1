"""Nest intervals lane by lane, and find which of them is the innermost when."""

from __future__ import annotations

import ctypes
from ctypes import c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flame.core.compiled.library import address, checked, compiled, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_LANES = 1 << 24
_TIMES = (np.int64, np.int64)
_SPARE = 1024
"""Pieces that there is room for besides two of each interval: of more numpy takes care."""


class NestedPieces(NamedTuple):
    """Hold pieces of intervals that nest, ordered by (lane, start, depth).

    ``source`` i4[n] is the interval of each, ``start``, ``end`` i8[n] its times, ``parent`` i4[n]
    the piece around it or -1, ``depth`` i4[n] how many are around it.
    """

    source: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]


class LanePieces(NamedTuple):
    """Hold when which interval was the innermost, or the outermost, by lane and time.

    ``piece`` i4[n] is the interval, ``start``, ``end`` (exclusive) i8[n] its times.
    """

    piece: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def first(self, count: int) -> LanePieces:
        """Take the first ``count`` of them."""
        return LanePieces(self.piece[:count], self.start[:count], self.end[:count])


class _LaneSpans(ctypes.Structure):
    _fields_ = (("count", c_int64), ("lane", c_void_p), ("start", c_void_p), ("end", c_void_p))


class _NestedPlaces(ctypes.Structure):
    _fields_ = (
        ("room", c_int64),
        ("source", c_void_p),
        ("start", c_void_p),
        ("end", c_void_p),
        ("parent", c_void_p),
        ("depth", c_void_p),
    )


class _Innermost(ctypes.Structure):
    _fields_ = (("piece", c_void_p), ("start", c_void_p), ("end", c_void_p))


def nested_pieces(
    lane: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64], deepest: int
) -> NestedPieces | None:
    """Cut the intervals [start, end) of each lane into pieces that nest; those of lane -1 not.

    None where this is refused: without the library, for intervals in ``deepest`` others, and where
    very many cross.
    """
    library, lanes = compiled(), 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES:
        return None
    spans = whole((lane, start, end), (np.int32, np.int64, np.int64))
    room = 2 * len(lane) + _SPARE
    source, parent, depth = (np.empty(room, np.int32) for _ in range(3))
    begin, stop = (np.empty(room, np.int64) for _ in range(2))
    places = [address(column) for column in (source, begin, stop, parent, depth)]
    given, made = lane_spans(spans), _NestedPlaces(room, *places)
    done = library.flamecore_nest(ctypes.byref(given), lanes, deepest, ctypes.byref(made))
    if (count := checked(done)) is None:
        return None
    return NestedPieces(source[:count], begin[:count], stop[:count], parent[:count], depth[:count])


def innermost_spans(
    lane: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64], deepest: int
) -> LanePieces | None:
    """Cut the time of intervals that nest, each lane's, by which of them is the innermost.

    None where this is refused: without the library, and where intervals cross or nest too deeply.
    """
    library, lanes = compiled(), 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES:
        return None
    spans = whole((lane, start, end), (np.int32, np.int64, np.int64))
    given, made = lane_spans(spans), _room(2 * len(lane))
    out = _Innermost(*(address(column) for column in (made.piece, made.start, made.end)))
    done = library.flamecore_innermost(ctypes.byref(given), lanes, deepest, ctypes.byref(out))
    return None if (count := checked(done)) is None else made.first(count)


def outermost_spans(
    lane: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64]
) -> LanePieces | None:
    """Leave of the intervals of each lane what reaches beyond those before it; nothing of lane -1.

    Earlier starts come first, then later ends, then earlier rows. None without the library.
    """
    library, lanes = compiled(), 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES:
        return None
    spans = whole((lane, start, end), (np.int32, np.int64, np.int64))
    given, made = lane_spans(spans), _room(len(lane))
    out = _Innermost(*(address(column) for column in (made.piece, made.start, made.end)))
    done = library.flamecore_outermost(ctypes.byref(given), lanes, ctypes.byref(out))
    return None if (count := checked(done)) is None else made.first(count)


def united_spans(
    lane: NDArray[Any] | None, start: NDArray[np.int64], end: NDArray[np.int64]
) -> LanePieces | None:
    """Put together what is open on each lane (None: all on one); stretches that touch are one.

    ``piece`` is the first interval of each. None without the library, and for very many lanes or
    such as are below 0.
    """
    library, lanes = compiled(), 1 if lane is None else 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES or (lane is not None and lane.min(initial=0) < 0):
        return None
    if lane is None:
        given = _LaneSpans(len(start), None, *map(address, kept := whole((start, end), _TIMES)))
    else:
        given = lane_spans(kept := whole((lane, start, end), (np.int32, *_TIMES)))
    made = _room(len(start))
    out = _Innermost(*(address(column) for column in (made.piece, made.start, made.end)))
    done = library.flamecore_union(ctypes.byref(given), lanes, ctypes.byref(out))
    del kept
    return None if (count := checked(done)) is None else made.first(count)


class LaneTimes(NamedTuple):
    """Hold when the first interval of each lane began, the last ended, and how long any was open.

    i8[lanes] each, ns; the largest and the least number, and 0, of lanes without any.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    busy: NDArray[np.int64]


def lane_times(
    lane: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64], lanes: int
) -> LaneTimes | None:
    """Measure what is open on each of so many lanes; what is of lane -1 is left out.

    None where this is refused: without the library, and where the intervals of a lane do not come
    in order of their starts.
    """
    library = compiled()
    if library is None or lanes > MOST_LANES:
        return None
    spans = whole((lane, start, end), (np.int32, *_TIMES))
    made = LaneTimes(*(np.empty(lanes, np.int64) for _ in range(3)))
    given, out = lane_spans(spans), _Innermost(*map(address, made))
    done = library.flamecore_lane_times(ctypes.byref(given), lanes, ctypes.byref(out))
    return None if checked(done) is None else made


def times_beside(
    lane: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Measure for how long each interval was open beside others of its lane, i8[n]; 0 of lane -1.

    None where this is refused: without the library, and where the intervals of a lane do not come
    in order of their starts.
    """
    library, lanes = compiled(), 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES:
        return None
    spans = whole((lane, start, end), (np.int32, *_TIMES))
    given, beside = lane_spans(spans), np.empty(len(lane), np.int64)
    done = library.flamecore_times_beside(ctypes.byref(given), lanes, address(beside))
    return None if checked(done) is None else beside


def _room(size: int) -> LanePieces:
    return LanePieces(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))


def lane_spans(spans: list[NDArray[Any]]) -> _LaneSpans:
    """Give C the columns of ``spans`` (lane, start, end), as `whole` makes them."""
    return _LaneSpans(len(spans[0]), *(address(column) for column in spans))
