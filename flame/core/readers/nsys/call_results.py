"""Read which API calls failed, once somebody asks."""

from __future__ import annotations

from functools import partial

import numpy as np

from flame.core.columns import I8
from flame.core.model.raw import RawCalls
from flame.core.model.threads.call_rows import FailedCalls
from flame.core.readers.nsys.api import TABLE
from flame.core.readers.nsys.geometry import have_same_starts
from flame.core.readers.sqlite.source import NULL, TableQuery, TableSource

_RESULT = "returnValue"


def failures_reader(calls: RawCalls, source: TableSource) -> partial[FailedCalls | None] | None:
    """Tell how to read which of ``calls`` failed; None where the table does not say."""
    return partial(read_failures, calls) if _RESULT in source.columns(TABLE) else None


def read_failures(calls: RawCalls, source: TableSource) -> FailedCalls | None:
    """Read which of ``calls`` returned anything but 0; None where they are not the same any more.

    Rows that repeat a call with its backtrace are none.
    """
    failed, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    done = known = 0
    for chunk in source.chunks(TableQuery(TABLE, ("start", _RESULT))):
        rows = slice(done, done + len(chunk["start"]))
        if not have_same_starts(chunk["start"], calls.start[rows]):
            return None
        value, counts = chunk[_RESULT], ~calls.chain_only[rows]
        found: I8 = np.flatnonzero(counts & (value != 0) & (value != NULL))
        known += int(np.count_nonzero(counts & (value != NULL)))
        failed.append(found + done)
        values.append(value[found])
        done = rows.stop
    if done != len(calls.start):
        return None
    row = np.concatenate(failed)
    start, end = calls.start[row], np.maximum(calls.start[row], calls.end[row])
    return FailedCalls(
        calls.thread[row], calls.frame[row], start, end, np.concatenate(values), known
    )
