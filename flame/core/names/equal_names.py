"""Tell in columns which of many names are equal, without an object for each of them."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, Column, unique_rows

_WORD = 8
_LONGEST = 256
"""Bytes up to which names are compared by words: each word is looked at in all of them at once."""


def number_names(texts: bytes, start: Column, end: Column) -> I8:
    """Number the names, each from ``start`` to ``end`` in ``texts``: equal ones alike, i8[n]."""
    start, size = start.astype(np.int64), (end - start).astype(np.int64)
    # Those that are numbered alike have the same length, and are equal up to where words are read.
    number, used = size.copy(), int(size.max(initial=0)) + 1
    words = np.ndarray(len(texts), "<i8", texts + bytes(_WORD), strides=(1,))
    short = np.flatnonzero(size <= _LONGEST)
    for begin in range(0, int(size[short].max(initial=0)), _WORD):
        short = short[size[short] > begin]
        first, kind = unique_rows([number[short], _masked(words, start, size, short, begin)])
        number[short] = kind + used
        used += len(first)
    known: dict[bytes, int] = {}
    for at in np.flatnonzero(size > _LONGEST).tolist():
        name = texts[start[at] : end[at]]
        number[at] = used + known.setdefault(name, len(known))
    return number


def _masked(words: I8, start: I8, size: I8, names: I8, begin: int) -> I8:
    """The word of each of ``names`` at ``begin``, with zeros behind its last byte."""
    missing = np.maximum(begin + _WORD - size[names], 0).astype(np.uint64)
    own = np.uint64(2**64 - 1) >> (np.uint64(8) * missing)
    found: I8 = words[start[names] + begin] & own.view(np.int64)
    return found
