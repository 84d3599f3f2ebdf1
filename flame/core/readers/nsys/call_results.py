"""Find which API calls failed, while they are read."""

from __future__ import annotations

import numpy as np

from flame.core.columns import I4, I8, U1, Bool, Column
from flame.core.model.raw import RawCalls
from flame.core.model.threads.call_rows import FailedCalls
from flame.core.readers.sqlite.numbering import RowNumbers
from flame.core.readers.sqlite.source import NULL

RESULT = "returnValue"
_UNKNOWN, _DONE, _FAILED = range(3)


def outcomes(result: I8, repeats: Bool) -> U1:
    """Tell of calls that returned ``result`` whether they failed, and nothing of ``repeats``.

    These are rows that repeat a call with its backtrace.
    """
    told = np.where(result == 0, np.uint8(_DONE), np.uint8(_FAILED))
    return np.where(repeats | (result == NULL), np.uint8(_UNKNOWN), told)


class CallResults:
    """Collects which calls failed.

    ``keys`` number what they have in common: ``slot`` of a key is what it returned.
    """

    def __init__(self, keys: RowNumbers, slot: int) -> None:
        self._keys, self._slot = keys, slot
        self._rows, self._numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        self._read = self._known = 0

    def add(self, outcome: Column, number: I4) -> None:
        """Take the next calls: their `outcomes`, and the numbers of their keys."""
        failed = np.flatnonzero(outcome == _FAILED)
        self._rows.append(failed + self._read)
        self._numbers.append(number[failed])
        self._read += len(outcome)
        self._known += int(np.count_nonzero(outcome))

    def build(self, calls: RawCalls) -> FailedCalls:
        """Say which of ``calls`` failed, all of which were added."""
        row, number = np.concatenate(self._rows), np.concatenate(self._numbers)
        value = self._keys.rows()[number, self._slot]
        start, end = calls.start[row], np.maximum(calls.start[row], calls.end[row])
        return FailedCalls(calls.thread[row], calls.frame[row], start, end, value, self._known)
