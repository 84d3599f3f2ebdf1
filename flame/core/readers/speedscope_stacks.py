"""Stacks of speedscope profiles, from samples and from events, whole columns at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Raw

from flame.core.columns import I4, I8, Column
from flame.core.errors import InputError
from flame.core.readers.speedscope_file import Event, Number
from flame.core.stacks import EMPTY, StackBuilder

_PIECE = 1 << 23
_DIGITS = np.zeros(256, bool)
_DIGITS[list(b"0123456789, \t\r\n[]")] = True
_SPACES = b" \t\r\n"
_APART = bytes.maketrans(b"[],", b"   ")

Working = Callable[[], None]
"""Called between pieces of work; may raise to stop."""


def numbers(values: Sequence[Number]) -> Column:
    """``values`` as int64 where all are whole numbers of that size, else as float64.

    Raises InputError where one is larger than a float64 holds.
    """
    try:
        column: Column = np.array(values) if values else np.zeros(0, np.int64)
        return column if column.dtype == np.int64 else column.astype(np.float64)
    except OverflowError:
        raise InputError("a number in it is too large") from None


def sampled_stacks(text: Raw, frames: I4, stacks: StackBuilder, working: Working) -> I4:
    """Ids in ``stacks`` of all samples in ``text``, a JSON list of lists of indices into ``frames``.

    Raises InputError where it is something else.
    """
    indices, lengths = _parsed(text, len(frames), working)
    first = np.cumsum(lengths) - lengths
    node: I4 = np.full(len(lengths), EMPTY, np.int32)
    depth, rows = 0, np.flatnonzero(lengths)
    while len(rows):
        working()
        node[rows] = stacks.extend(node[rows], frames[indices[first[rows] + depth]])
        depth += 1
        rows = rows[lengths[rows] > depth]
    return node


def _parsed(text: Raw, limit: int, working: Working) -> tuple[I4, I8]:
    """Frame indices of all samples, one after another, and how many each sample has."""
    found: list[tuple[I4, I8]] = []
    done = 0
    for piece in _pieces(text):
        working()
        try:
            found.append(_numbers_of(piece, limit))
        except _Wrong as wrong:
            sample, what = wrong.args
            raise InputError(f"sample {done + sample} {what}") from None
        done += len(found[-1][1])
    indices, lengths = zip(*found, strict=True) if found else ((), ())
    none = np.zeros(0, np.int64)
    return np.concatenate([none.astype(np.int32), *indices]), np.concatenate([none, *lengths])


class _Wrong(Exception):
    """(number of the sample in its piece, what is wrong with it)."""


def _pieces(text: Raw) -> Iterator[bytes]:
    """The inside of the JSON list ``text``, cut behind inner lists into pieces of some megabytes."""
    view = memoryview(text)
    whole = bytes(view[:1]) == b"["
    if not whole:
        raise InputError("its samples are no list")
    begin, size = 1, len(view) - 1
    while begin < size:
        end = min(begin + _PIECE, size)
        while end < size and (cut := bytes(view[begin:end]).rfind(b"]")) < 0:
            end = min(end + _PIECE, size)
        if end < size:
            end = begin + cut + 1
        yield bytes(view[begin:end])
        begin = end


def _numbers_of(piece: bytes, limit: int) -> tuple[I4, I8]:
    """Frame indices and lengths of the samples in a piece; `_Wrong` where one is no list of them."""
    packed = np.frombuffer(piece.translate(None, _SPACES), np.uint8)
    opened, closed = np.flatnonzero(packed == ord("[")), np.flatnonzero(packed == ord("]"))
    strange = np.flatnonzero(~_DIGITS[packed])
    brackets = np.flatnonzero((packed == ord("[")) | (packed == ord("]")))
    if len(strange):
        raise _Wrong(int(np.searchsorted(closed, strange[0])), "is no list of frame numbers")
    if not _alternating(packed, brackets):
        raise _Wrong(_first_nested(packed, brackets), "is no list of frame numbers")
    commas = np.flatnonzero(packed == ord(","))
    lengths = np.searchsorted(commas, closed) - np.searchsorted(commas, opened)
    lengths += closed > opened + 1
    indices = _integers(piece)
    if len(indices) != lengths.sum():
        raise _Wrong(0, "or one after it is no list of frame numbers")
    wrong = np.flatnonzero(indices >= limit)
    if len(wrong):
        sample = int(np.searchsorted(np.cumsum(lengths), wrong[0], side="right"))
        raise _Wrong(sample, f"names frame {indices[wrong[0]]}, of {limit} (the first is 0)")
    return indices.astype(np.int32), lengths


def _integers(piece: bytes) -> I8:
    """All numbers in ``piece``, which has nothing but digits between separators."""
    apart = piece.translate(_APART)
    if apart.isspace() or not apart:
        return np.zeros(0, np.int64)  # NumPy reads one 0 from blanks
    return np.fromstring(apart, np.int64, sep=" ")


def stack_rows(
    events: Sequence[Event], at: Column, frames: I4, stacks: StackBuilder, working: Working
) -> tuple[I4, I8]:
    """The stack that is open after each of ``events``, i4[n], and the events where time passes.
    """
