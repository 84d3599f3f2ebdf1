"""Tell how long threads waited for a GPU, and how much of that it worked."""

from __future__ import annotations

from typing import Any

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I4, I8, distinct, sum_by, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.calls import CallClass
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.chosen_iterations import calls_per_iteration, iteration_notes
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked, share
from flame.core.timeline.lanes import thread_label

NAME, TITLE = "syncs", "Waiting for the GPU"

_POLL = lazy_regex(
    r"(cuda|cu|hip)(StreamWaitEvent|EventQuery|StreamQuery|StreamWaitValue\w*)(_pt(sz|ds))?"
)
_FREE = lazy_regex(r"(cuda|cu|hip)(Mem)?Free(_v2)?(_pt(sz|ds))?")
_NOT_WAITING = lazy_regex(r"\w*(Async|Prefetch)\w*")


@dataclass(frozen=True, eq=False)
class WaitTimes:
    """Sum up calls that wait by thread and shown name, i8[n] each.

    ``while_busy`` is the part in which any GPU of the process ran something, ns; the rest is lost.
    ``longest`` is the place of the longest in ``calls``.
    """

    calls: HostCalls
    thread: I4
    shown: I8
    times: Distributions
    while_busy: I8
    longest: I8

    @property
    def while_idle(self) -> I8:
        """The time in which the GPUs ran nothing, ns."""
        return self.times.total - self.while_busy


@dataclass(frozen=True, eq=False)
class Syncs:
    """Hold the calls that block until a GPU has done its work, and those that do without saying so.

    ``implicit`` are copies and sets by calls that are not asynchronous, and frees: they wait, too.
    ``polls`` counts calls that ask or make a stream wait, and do not block.
    """

    blocking: WaitTimes
    implicit: WaitTimes
    polls: int


def syncs(calls: HostCalls) -> Syncs:
    """Sum up those of ``calls`` that wait for a GPU."""
    copies = (calls.kind == CallClass.COPY) & ~calls.named(_NOT_WAITING)
    return Syncs(
        _wait_times(calls.of_class(CallClass.SYNC)),
        _wait_times(calls.where(copies | calls.named(_FREE))),
        int(calls.named(_POLL).sum()),
    )


def _wait_times(calls: HostCalls) -> WaitTimes:
    first, place = unique_rows([calls.thread, calls.shown])
    times = distributions(place, calls.length, len(first))
    return WaitTimes(
        calls,
        calls.thread[first],
        calls.shown[first],
        times,
        sum_by(place, calls.while_busy, len(first)),
        calls.longest(place, len(first)),
    )


_COLUMNS = (
    TableColumn("thread", "thread"),
    TableColumn("pid", "", "count"),
    TableColumn("tid", "", "count"),
    TableColumn("name", "call"),
    TableColumn("ns", "time", "ns"),
    TableColumn("thread_percent", "of thread", "percent"),
    TableColumn("while_busy_ns", "GPU busy", "ns"),
    TableColumn("while_idle_ns", "GPU idle", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("mean_ns", "", "ns"),
    TableColumn("p50_ns", "", "ns"),
    TableColumn("p99_ns", "", "ns"),
    TableColumn("max_ns", "max", "ns"),
)


def syncs_section(scope: Scope) -> Section:
    """Tell the calls that wait, by thread and name."""
    calls = scope.calls
    if calls is None or scope.lacks_calls:
        return Section(NAME, TITLE, why=scope.lacks_calls or NO_CALLS, how=RECORD_CALLS)
    found, of_thread = syncs(calls), scope.thread_times
    tables = (
        _table(scope, found.blocking, of_thread, "rows", "calls that block"),
        _table(scope, found.implicit, of_thread, "implicit", "others that wait for the GPU"),
    )
    each = calls_per_iteration(scope, found.blocking.calls)
    notes = iteration_notes(each)
    if not len(found.blocking.calls):
        notes = ("no call blocks until the GPU is done",)
    return Section(NAME, TITLE, _facts(scope, found, of_thread, each), tables, notes)


def _facts(scope: Scope, found: Syncs, of_thread: I8, each: int | None) -> dict[str, object]:
    blocking = found.blocking
    return {
        "count": len(blocking.calls),
        "total_ns": int(blocking.times.total.sum()),
        "blocked_ns_by_thread": _blocked(scope, blocking, of_thread),
        "while_busy_ns": int(blocking.while_busy.sum()),
        "while_idle_ns": int(blocking.while_idle.sum()),
        "polls": found.polls,
        "per_iteration_p50": each,
    }


def _blocked(scope: Scope, found: WaitTimes, of_thread: I8) -> list[dict[str, object]]:
    """How long each thread was blocked: its outermost calls do not overlap."""
    thread, place = distinct(found.thread.astype(np.int64))
    blocked, busy = (
        sum_by(place, part, len(thread)) for part in (found.times.total, found.while_busy)
    )
    return [
        {
            **scope.thread(one),
            "blocked_ns": ns,
            "while_busy_ns": while_busy,
            "percent": share(ns, int(of_thread[one])),
        }
        for one, ns, while_busy in zip(
            thread.tolist(), blocked.tolist(), busy.tolist(), strict=True
        )
    ]


def _table(scope: Scope, found: WaitTimes, of_thread: I8, key: str, title: str) -> Table:
    threads = [scope.thread(thread) for thread in found.thread.tolist()]
    times = found.times
    cells: tuple[Any, ...] = (
        [thread_label(scope.profile, thread) for thread in found.thread.tolist()],
        [one["pid"] for one in threads],
        [one["tid"] for one in threads],
        found.calls.names(found.shown),
        times.total,
        _percent(times.total, of_thread[found.thread]),
        found.while_busy,
        found.while_idle,
        times.count,
        times.means,
        times.p50,
        times.p99,
        times.maximum,
    )
    order = np.argsort(-times.total, kind="stable")
    windows = [
        Place(window=(int(found.calls.start[at]), int(found.calls.end[at])))
        for at in found.longest[order].tolist()
    ]
    return Table.of(key, title, _COLUMNS, picked(order, *cells), windows)


def _percent(parts: I8, wholes: I8) -> list[Value]:
    return [share(*pair) for pair in zip(parts.tolist(), wholes.tolist(), strict=True)]
