"""Join activities to the API calls that launched them, by process and correlation id."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, pack, unique
from flame.core.compiled.rows import join_calls
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import repeat
from flame.core.model.raw import RawCalls
from flame.core.model.stacks import EMPTY


class Launched(Protocol):
    """Tell the process (place, -1 unknown) and the correlation id of what a call has launched."""

    @property
    def process(self) -> I4:
        """Of each row, i4[n]."""
        ...

    @property
    def correlation(self) -> I8:
        """Of each row, i8[n]; 0 without one."""
        ...


@dataclass(frozen=True)
class LaunchJoin:
    """Hold for every activity the rows of its launching call and of the call with its stacks.

    -1 where there is none.
    """

    call: I8
    chain: I8


def join_launches(activities: Launched, calls: RawCalls, thread_process: I4) -> LaunchJoin:
    """Join launches on (process, correlation id): correlation ids repeat in other processes.

    Of several calls with the same id the earliest launches (the longest on ties); rows that only
    repeat a call for its call chain never launch unless they are alone.
    """
    process = np.append(thread_process, np.int32(-1))[calls.thread]
    wanted = _known_process(activities.process, process)
    if not calls.chain_only.any():
        joined = join_calls(process, calls.correlation, wanted, activities.correlation)
        if joined is not None:
            return LaunchJoin(joined, joined)
    keys = pack(
        [
            np.concatenate([process, wanted]),
            np.concatenate([calls.correlation, activities.correlation]),
        ]
    )
    have, want = keys[: len(process)], keys[len(process) :]
    order = np.argsort(have, kind="stable")
    if (np.diff(have[order]) == 0).any():  # some ids have several calls
        duration = calls.end - calls.start
        order = np.lexsort((-duration, calls.start, calls.chain_only, have))
    valid = (activities.correlation > 0) & (wanted >= 0)
    call = _first(have, order, want, valid)
    return LaunchJoin(call, _chains(calls, have, want, call))


def _chains(calls: RawCalls, have: I8, want: I8, call: I8) -> I8:
    """The row with each launch's stacks: the call itself, else the row that repeats it for them."""
    repeats = np.flatnonzero(calls.chain_only & ((calls.python > 0) | (calls.native > 0)))
    order = repeats[np.lexsort((calls.start[repeats], have[repeats]))]
    repeated = _first(have, order, want, call >= 0)
    own = (calls.python[call] > 0) | (calls.native[call] > 0) if len(have) else call >= 0
    return np.where((repeated < 0) | own, call, repeated)


def _known_process(process: I4, of_calls: I4) -> I4:
    """Give activities that name no process the only process there is, if there is only one."""
    processes = unique(of_calls)
    processes = processes[processes >= 0]
    return np.where(process < 0, processes[0], process) if len(processes) == 1 else process


def _first(have: I8, order: I8, want: I8, valid: Bool) -> I8:
    """For each ``want``, the first row in ``order`` with that key; -1 where absent or invalid."""
    if len(order) == 0:
        return np.full(len(want), -1, np.int64)
    ordered = have[order]
    place = np.minimum(np.searchsorted(ordered, want), len(ordered) - 1)
    return np.where(valid & (ordered[place] == want), order[place], -1)


def taken(column: Column, rows: I8, absent: int) -> Column:
    """Return ``column[rows]``, ``absent`` where the row is -1."""
    if not len(column):
        return np.full(len(rows), absent, column.dtype)
    found = column[rows]
    if rows.min(initial=0) < 0:
        found[rows < 0] = absent
    return found


def taken_stacks(stacks: I4, rows: I8) -> I4:
    """Take the stacks of ``rows``, the empty one where the row is -1; not to be written to."""
    if stacks.strides == (0,) and not stacks[:1].any():  # nothing recorded any
        return repeat(np.int32(EMPTY), len(rows))
    return taken(stacks, rows, EMPTY)
