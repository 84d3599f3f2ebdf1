"""Stacks that a file spells out frame by frame, built for all of its rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, I8, Column, distinct
from flame.core.stacks import StackBuilder

_FRAME_BITS = 32


def spelled_stacks(
    frames: I4, lengths: Column, working: Callable[[], None]
) -> tuple[StackBuilder, I4]:
    """A builder that holds just these stacks, and the id of each, i4[rows].

    ``frames`` are the frame ids of all rows one after another, outermost first; ``lengths``, i8,
    how many of them each row has. ``working`` is called between pieces of work and may raise.

    Level by level, as all stacks of a depth are known once all rows have got there: `StackBuilder`
    would search, and move, all that it knows for each level, which a single deep row makes 10,000
    times. What it is given in the end is in its own order, so that it numbers stacks as here.
    """
    order = np.argsort(-lengths, kind="stable")
    first = (np.cumsum(lengths) - lengths)[order]
    stack = np.zeros(len(lengths), np.int64)
    keys: list[I8] = [np.zeros(0, np.int64)]
    known = 1
    for level, rows in enumerate(_rows_by_level(lengths[order])):
        working()
        wanted = (stack[:rows] << _FRAME_BITS) | frames[first[:rows] + level]
        values, place = distinct(wanted)
        keys.append(values)
        stack[:rows] = known + place
        known += len(values)
    ids = np.empty(len(lengths), np.int32)
    ids[order] = stack
    return _builder(np.concatenate(keys)), ids


def _rows_by_level(descending: Column) -> list[int]:
    """How many rows are longer than 0, than 1, and so on."""
    levels = np.arange(1, int(descending.max(initial=0)) + 1)
    longer: list[int] = (len(descending) - np.searchsorted(descending[::-1], levels)).tolist()
    return longer


def _builder(keys: I8) -> StackBuilder:
    stacks = StackBuilder()
    stacks.extend(keys >> _FRAME_BITS, keys & ((1 << _FRAME_BITS) - 1))
    return stacks
