"""Decode the integers of SQLite's file format at many places at once."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I8, U1, Bool, Column


def decode_big_endian(flat: U1, at: I8, width: Column | int) -> I8:
    """Decode signed big-endian numbers of ``width`` bytes (0 to 8) at ``at``."""
    eight = np.lib.stride_tricks.as_strided(flat[:8].view(">i8"), (len(flat) - 7,), (1,))
    value = eight[at].astype(np.int64)
    shifted: I8 = value >> np.minimum(64 - 8 * np.asarray(width), 63)
    return shifted


def decode_varints(flat: U1, at: I8) -> tuple[I8, I8]:
    """Decode SQLite's variable-length integers at ``at``; return the positions behind them too."""
    first = flat[at]
    value, after = first.astype(np.int64), at + 1
    more = np.flatnonzero(first >= 0x80)
    if len(more):
        value[more], after[more] = _decode_long(flat, at[more])
    return value, after


def _decode_long(flat: U1, at: I8) -> tuple[I8, I8]:
    """Decode varints of two to nine bytes; the ninth counts with all its bits."""
    value, after = np.zeros(len(at), np.int64), at.copy()
    going: Bool = np.ones(len(at), bool)
    for _ in range(8):
        byte = flat[after[going]].astype(np.int64)
        value[going] = value[going] << 7 | (byte & 0x7F)
        after[going] += 1
        going[going] = byte >= 0x80
        if not going.any():
            return value, after
    value[going] = value[going] << 8 | flat[after[going]]
    after[going] += 1
    return value, after
