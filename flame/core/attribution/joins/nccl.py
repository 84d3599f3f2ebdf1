"""Find the collectives of NCCL's kernels, by the calls that their threads were in at the launch.

A kernel of NCCL is launched by the call of a collective, or by the end of the group that it is in.
Groups nest, on each thread by itself (`src/group.cc` of NCCL). So all from the first call to where
nothing is open any more is one batch; its kernels do what was called in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I4, I8, Bool, order_by, run_starts, unique_rows
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE, Activities
from flame.core.model.frames import COPIES, FrameTable, Kind
from flame.core.model.launches import (
    GROUP_END,
    GROUP_START,
    Collectives,
    NcclCall,
    NcclRanges,
    RecordedCollective,
)

_SEND, _RECEIVE, _POINT_TO_POINT = "ncclSend", "ncclRecv", "ncclSendRecv"
_KERNEL = lazy_regex(r"(?i)nccl\w*kernel")
_BYTE = "byte"
_Names = tuple[tuple[Any, ...], ...]
_LARGEST = float(1 << 40)
"""Bytes of one kernel: more than any GPU has, and would not add up in 63 bits."""


class _Batches(NamedTuple):
    """Intervals in which a thread was in NCCL, ns, and the batch of each range, -1 of none."""

    thread: I4
    start: I8
    end: I8
    of_range: I8


def find_nccl_collectives(
    read: Callable[[], NcclRanges], table: Activities, frames: FrameTable
) -> Collectives:
    """Find what the kernels of ``table`` do that threads launched in the ranges that it reads.

    A kernel alone in its batch does all of it, unless copies may do some (from 2.28 on NCCL has
    collectives without a kernel). Of several equal calls, with as many kernels, each does one. Else
    only the communicator is told, if it is the same for all; or nothing.
    """
    ranges = read()
    nothing = np.zeros(0, np.int64)
    if not (ranges.call >= 0).any():
        return Collectives(nothing, nothing.astype(np.int32), nothing, (), ranges.warnings)
    batches = _batches(ranges)
    rows = _kernels(table, frames)
    rows, batch = _launched_in(batches, table, rows)
    _, copying = _launched_in(batches, table, _copies(table))
    contents = _contents(ranges, batches)
    told = _told(contents, batch, table.process[rows], table.device[rows], copying)
    rows, batch, told = rows[told >= 0], batch[told >= 0], told[told >= 0]
    kinds, kind = _kinds(contents, batch, told, table.process[rows], ranges)
    return Collectives(rows, kind, np.full(len(rows), NONE), kinds, ranges.warnings)


def _kernels(table: Activities, frames: FrameTable) -> I8:
    """The kernels of NCCL, by their names, with a known launch; rows rise."""
    of_nccl = np.zeros(len(frames), bool)
    for at in np.flatnonzero(frames.kind == Kind.KERNEL).tolist():
        of_nccl[at] = _KERNEL.search(frames[at].name) is not None
    found: I8 = np.flatnonzero(of_nccl[table.frame] & table.launched & (table.thread >= 0))
    return found


def _copies(table: Activities) -> I8:
    """The copies with a known launch."""
    known = table.launched & (table.thread >= 0)
    found: I8 = np.flatnonzero(known & np.isin(table.kind, COPIES))
    return found


def _launched_in(batches: _Batches, table: Activities, rows: I8) -> tuple[I8, I8]:
    """Those of ``rows`` that a batch launched, and which."""
    opened = OpenIntervals(batches.thread, batches.start, batches.end)
    batch = opened.innermost(table.thread[rows], table.launch_start[rows])
    return rows[batch >= 0], batch[batch >= 0]


def _batches(ranges: NcclRanges) -> _Batches:
    """Follow how deep each thread is in NCCL: an end of a group that never began is left out."""
    opens, closes = ranges.call != GROUP_END, ranges.call != GROUP_START
    end = np.where(ranges.call >= 0, np.maximum(ranges.end, ranges.start + 1), ranges.end)
    thread = np.concatenate([ranges.thread[opens], ranges.thread[closes]])
    time = np.concatenate([ranges.start[opens], end[closes]])
    step = np.repeat([1, -1], [opens.sum(), closes.sum()])
    order = order_by([step, time, thread])
    thread, time = thread[order], time[order]
    before, after = _depths(thread, step[order])
    begins = (before == 0) & (after > 0)
    number = np.cumsum(begins) - 1
    closing = (before > 0) & (after == 0)
    last = np.full(int(begins.sum()), time.max(initial=0))
    last[number[closing]] = time[closing]
    back = np.empty(len(order), np.int64)
    back[order] = number
    of_range = np.full(len(ranges.call), NONE)
    of_range[opens] = back[: int(opens.sum())]
    return _Batches(thread[begins], time[begins], last, of_range)


def _depths(thread: I4, step: I8) -> tuple[I8, I8]:
    """How deep each thread is before and after each ``step``; never below 0."""
    after = np.zeros(len(step), np.int64)
    for low, high in pairwise([*run_starts(thread).tolist(), len(thread)]):
        level = np.cumsum(step[low:high])
        after[low:high] = level - np.minimum(np.minimum.accumulate(level), 0)
    before = np.append(0, after[:-1])
    before[run_starts(thread)] = 0
    return before, after


_DIFFERENT = -2
"""In columns of batches: not all calls have the same, or of some it is not known."""

_CALL, _FUNCTION, _COMMUNICATOR, _REDUCTION, _ROOT, _PEER = range(6)
_ONE, _ALL, _GROUP = range(3)
"""What is told of a kernel: one call, all calls of its batch together, or their group alone."""


class _Contents(NamedTuple):
    """What is called in each batch, and in how many calls.

    ``facts`` i8[batches, 6] are places in ``names``, NONE of nothing; ``sent`` and ``received``
    i8[batches] bytes, NONE of nothing. Either may be `_DIFFERENT`.
    """

    size: I8
    facts: I8
    sent: I8
    received: I8
    names: _Names


def _contents(ranges: NcclRanges, batches: _Batches) -> _Contents:
    """Add up the calls of each batch; NCCL leaves out collectives of no bytes."""
    calls = ranges.calls
    empty = np.array([one.bytes == 0 and one.name not in (_SEND, _RECEIVE) for one in calls])
    rows = np.flatnonzero(ranges.call >= 0)
    rows = rows[~empty[ranges.call[rows]]]
    rows = rows[order_by([batches.of_range[rows]])]
    batch, call = batches.of_range[rows], ranges.call[rows]
    names, facts = _numbered(calls)
    size = np.array([NONE if one.bytes is None else one.bytes for one in calls], np.int64)[call]
    receives = np.array([one.name == _RECEIVE for one in calls])[call]
    number = len(batches.start)
    return _Contents(
        np.bincount(batch, minlength=number),
        _common(batch, facts[call], number),
        _total(batch[~receives], size[~receives], number),
        _total(batch[receives], size[receives], number),
        names,
    )


def _numbered(calls: Sequence[NcclCall]) -> tuple[_Names, I8]:
    """What calls say, and the place of what each says: i8[calls, 6]. Nothing is NONE."""
    points = (_SEND, _RECEIVE)
    columns: list[list[Any]] = [
        list(range(len(calls))),
        [_POINT_TO_POINT if one.name in points else one.name for one in calls],
        [one.communicator for one in calls],
        [one.reduction or None for one in calls],
        [one.root for one in calls],
        [one.peer for one in calls],
    ]
    known = [tuple(dict.fromkeys(one for one in column if one is not None)) for column in columns]
    places = [{value: at for at, value in enumerate(values)} for values in known]
    found = [
        [place.get(one, NONE) for one in column]
        for place, column in zip(places, columns, strict=True)
    ]
    return tuple(known), np.array(found, np.int64).T


def _common(batch: I8, facts: I8, number: int) -> I8:
    """What all calls of each batch, which are in order, have in common."""
    found = np.full((number, facts.shape[1]), NONE)
    if len(batch):
        first = run_starts(batch)
        least, most = (way.reduceat(facts, first) for way in (np.minimum, np.maximum))
        found[batch[first]] = np.where(least == most, least, _DIFFERENT)
    return found


def _total(batch: I8, size: I8, number: int) -> I8:
    """The bytes of each batch; NONE without any call."""
    unknown = np.bincount(batch[size < 0], minlength=number) > 0
    nothing = np.bincount(batch, minlength=number) == 0
    # Exact below 2**53: larger sums are left out.
    total = np.bincount(batch, np.maximum(size, 0), minlength=number)
    known = np.where(unknown | (total > _LARGEST), _DIFFERENT, total)
    return np.where(nothing, NONE, known).astype(np.int64)


def _told(contents: _Contents, batch: I8, process: I4, device: I4, copying: I8) -> I8:
    """What can be told of each kernel; NONE of those of which nothing can.

    ``copying`` are batches that launched copies.
    """
    kernels = np.bincount(batch, minlength=len(contents.size))[batch]
    size, facts = contents.size[batch], contents.facts[batch]
    communicator = facts[:, _COMMUNICATOR]
    copied, group = np.isin(batch, copying), communicator >= 0
    one = (facts[:, _CALL] >= 0) & (kernels == size) & ((size == 1) | ~copied)
    shared = copied | _on_several(process, communicator, device)
    whole = group & (kernels == 1) & (facts[:, _FUNCTION] >= 0) & ~shared
    return np.select([one, whole, group], [_ONE, _ALL, _GROUP], NONE)


def _on_several(process: I4, communicator: I8, device: I4) -> Bool:
    """Mark kernels of a communicator that has several GPUs of their process.

    Calls for one GPU may then be in a batch with those for another, of which no kernel is known.
    """
    if not len(process):
        return np.zeros(0, bool)
    _, pair = unique_rows([process, communicator])
    first, _ = unique_rows([pair, device])
    several: Bool = np.bincount(pair[first])[pair] > 1
    return several


def _kinds(
    contents: _Contents, batch: I8, told: I8, process: I4, ranges: NcclRanges
) -> tuple[tuple[RecordedCollective, ...], I4]:
    """(the collectives of kernels, the place of each one's)."""
    if not len(batch):
        return (), np.zeros(0, np.int32)
    group = told == _GROUP
    facts = np.where(group[:, None], NONE, contents.facts[batch])
    facts[:, _COMMUNICATOR] = contents.facts[batch, _COMMUNICATOR]
    moved = contents.sent[batch], contents.received[batch]
    unknown = group | (moved[0] == _DIFFERENT) | (moved[1] == _DIFFERENT)
    sent, received = (
        np.where(unknown, NONE, _share(column, contents.size[batch], told == _ONE))
        for column in moved
    )
    columns = [*facts.T[_FUNCTION:], sent, received, process.astype(np.int64)]
    first, place = unique_rows(columns)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    made = [_collective(contents.names, row, ranges) for row in rows]
    known = {kind: at for at, kind in enumerate(dict.fromkeys(made))}
    return tuple(known), np.array([known[kind] for kind in made], np.int32)[place]


def _share(total: I8, size: I8, one: Bool) -> I8:
    """The bytes of a kernel: all of its batch, or those of one of its equal calls."""
    return np.where(one & (total >= 0), total // size, total)


def _collective(names: _Names, row: tuple[int, ...], ranges: NcclRanges) -> RecordedCollective:
    """Describe the collective of a ``row``: facts, bytes sent and received, and the process."""
    *facts, sent, received, process = row
    name, communicator, reduction, root, peer = (
        values[at] if at >= 0 else None for values, at in zip(names[1:], facts, strict=True)
    )
    ranks = None if communicator is None else ranges.sizes.get(communicator)
    moved = _moved(name, None if sent < 0 else sent, None if received < 0 else received, ranks)
    return RecordedCollective(
        name or "",
        _BYTE,
        *moved,
        ranks,
        "" if communicator is None else f"{communicator:#018x}",
        reduction=reduction or "",
        root=root,
        peer=peer,
        rank=None if communicator is None else ranges.ranks.get((process, communicator)),
    )


def _moved(
    name: str | None, size: int | None, received: int | None, ranks: int | None
) -> tuple[int | None, int | None]:
    """The bytes that a rank gives and gets, by the ``size`` of its messages; None is not known.

    Arguments of NCCL's functions count: what is got in reduce-scatter and scatter, what each pair
    of ranks exchanges in all-to-all, else what is given (src/nccl.h.in).
    """
    whole = None if size is None or ranks is None else size * ranks
    if name == "ncclReduceScatter":
        return whole, size
    if name == "ncclAlltoAll":
        return whole, whole
    return (None, size) if name == "ncclScatter" else (size, received)
