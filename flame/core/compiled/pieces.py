"""Order pieces that nest by depth, and go through them from outer to inner."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import c_int64, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flame.core.compiled.library import address, checked, compiled, whole
from flame.core.compiled.nesting import MOST_LANES, lane_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PiecesByDepth(NamedTuple):
    """Hold pieces of intervals that nest, ordered by (lane, depth, start).

    ``lane``, ``depth``, ``frame`` and ``parent`` (-1: none) are i4[n], ``start`` and ``end`` i8[n].
    """

    lane: NDArray[np.int32]
    depth: NDArray[np.int32]
    frame: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    parent: NDArray[np.int32]


class LaunchedInPieces(NamedTuple):
    """Hold what was launched in pieces: from ``low`` to before ``high``, i4[n].

    ``first`` is when the first of it began, ``last`` when the last ended, i8[n] in ns; they are
    the largest and the least number where there is none.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


_TYPES = (np.int32, np.int32, np.int32, np.int64, np.int64, np.int32)


class _Pieces(ctypes.Structure):
    _fields_ = (("count", c_int64), *((name, c_void_p) for name in PiecesByDepth._fields))


class _MadePieces(ctypes.Structure):
    _fields_ = tuple((name, c_void_p) for name in PiecesByDepth._fields)


class _Launches(ctypes.Structure):
    _fields_ = (
        ("count", c_int64),
        ("row", c_void_p),
        ("lane", c_void_p),
        ("time", c_void_p),
        ("start", c_void_p),
        ("length", c_void_p),
    )


class _LaunchedIn(ctypes.Structure):
    _fields_ = tuple((name, c_void_p) for name in LaunchedInPieces._fields)


def pieces_by_depth(
    lane: NDArray[Any],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    frame: NDArray[Any],
    deepest: int,
) -> PiecesByDepth | None:
    """Cut intervals as `nested_pieces` does, and order the pieces of each lane by their depth.

    None where this is refused, as there.
    """
    library, lanes = compiled(), 1 + int(lane.max(initial=-1))
    if library is None or lanes > MOST_LANES:
        return None
    *spans, frame = whole((lane, start, end, frame), (np.int32, np.int64, np.int64, np.int32))
    given, count, room = lane_spans(spans), len(lane), -1
    columns: list[NDArray[Any]] = []
    while count > room:  # Mostly none is cut: then there are as many pieces.
        room = count
        columns = [np.empty(room, dtype) for dtype in _TYPES]
        out = _MadePieces(*_places(columns))
        done = library.flamecore_nest_by_depth(
            ctypes.byref(given), address(frame), lanes, deepest, room, ctypes.byref(out)
        )
        if (found := checked(done)) is None:
            return None
        count = found
    return PiecesByDepth(*(column[:count] for column in columns))


class ShownTimes(NamedTuple):
    """Sum the time of pieces by what their frames are shown as, i8[frames] each, ns.

    ``own`` is that in which no piece inside was open, ``outer`` of pieces in no other that is shown
    as the same.
    """

    own: NDArray[np.int64]
    outer: NDArray[np.int64]


def shown_times(pieces: PiecesByDepth, shown: NDArray[Any]) -> ShownTimes | None:
    """Sum the time of ``pieces`` by what their frames are ``shown`` as, of frames.

    None where this is refused: without the library, and where pieces do not nest.
    """
    library = compiled()
    if library is None:
        return None
    given, kept = _given(pieces)
    (shown,) = whole((shown,), (np.int32,))
    sums = ShownTimes(*(np.empty(len(shown), np.int64) for _ in range(2)))
    done = library.flamecore_shown_times(
        ctypes.byref(given), _deepest(pieces), address(shown), len(shown), *_places(sums)
    )
    del kept
    return None if checked(done) is None else sums


class LaunchedRows(NamedTuple):
    """Hold ``rows`` i8[n], by lane and time, of columns of what was launched when, and how it ran.

    ``lane`` is i4, ``time``, ``start`` and ``length`` are i8, ns.
    """

    rows: NDArray[np.int64]
    lane: NDArray[Any]
    time: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]


def launched_in(pieces: PiecesByDepth, launched: LaunchedRows) -> LaunchedInPieces | None:
    """Find what was ``launched`` in each of ``pieces``.

    None where this is refused: without the library, and where pieces do not nest.
    """
    library = compiled()
    if library is None:
        return None
    size = len(pieces.lane)
    low, high = (np.empty(size, np.int32) for _ in range(2))
    found = LaunchedInPieces(low, high, *(np.empty(size, np.int64) for _ in range(2)))
    out = _LaunchedIn(*_places(found))
    done = _call_launched(library.flamecore_launched, pieces, launched, ctypes.byref(out))
    return None if done is None else found


def launched_spans(pieces: PiecesByDepth, launched: LaunchedRows) -> NDArray[np.int64] | None:
    """Find how long what was ``launched`` in each of ``pieces`` took, from first to last, i8[n].

    -1 where that is nothing; None where this is refused, as there.
    """
    library = compiled()
    if library is None:
        return None
    span = np.empty(len(pieces.lane), np.int64)
    done = _call_launched(library.flamecore_launched_spans, pieces, launched, address(span))
    return None if done is None else span


def _call_launched(
    function: Any, pieces: PiecesByDepth, launched: LaunchedRows, out: Any
) -> int | None:
    given, kept = _given(pieces)
    columns = whole(launched[1:], (np.int32, np.int64, np.int64, np.int64))
    (rows,) = whole(launched[:1], (np.int64,))
    launches = _Launches(len(rows), address(rows), *_places(columns))
    done = function(ctypes.byref(given), _deepest(pieces), ctypes.byref(launches), out)
    del kept
    return checked(done)


def _given(pieces: PiecesByDepth) -> tuple[_Pieces, list[NDArray[Any]]]:
    """Give C the columns of ``pieces``; what it reads, which must stay, is the other one."""
    columns = whole(pieces, _TYPES)
    return _Pieces(len(columns[0]), *_places(columns)), columns


def _places(columns: Iterable[NDArray[Any]]) -> list[int]:
    """Where the values of the columns lie."""
    return [address(column) for column in columns]


def _deepest(pieces: PiecesByDepth) -> int:
    return 1 + int(pieces.depth.max(initial=-1))
