"""Tell what held the program up besides its own work: profiler, loading, collection, the GIL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I8, sum_by, unique_rows
from flame.core.report.host.gil import GilColumns, measure_gil
from flame.core.report.host.state_times import idle_in, lengths_within
from flame.core.report.measures.chosen_iterations import chosen_iterations
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked, share
from flame.core.timeline.lanes import event_thread_label
from flame.core.timeline.thread_states.states import States, find_states

NAME, TITLE = "states", "What held the program up"

_COLUMNS = (
    TableColumn("state", "state"),
    TableColumn("name", "name"),
    TableColumn("ns", "time", "ns"),
    TableColumn("idle_ns", "GPU idle", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("max_ns", "max", "ns"),
    TableColumn("per_iteration", "", "ratio"),
)
_GIL = (
    TableColumn("thread", "thread"),
    TableColumn("pid", "", "count"),
    TableColumn("tid", "", "count"),
    TableColumn("thread_ns", "", "ns"),
    TableColumn("held_ns", "held it", "ns"),
    TableColumn("held_percent", "of thread", "percent"),
    TableColumn("waited_ns", "waited for it", "ns"),
    TableColumn("waited_percent", "of thread", "percent"),
    TableColumn("waited_idle_ns", "GPU idle", "ns"),
    TableColumn("waits", "waits", "count"),
    TableColumn("longest_ns", "longest", "ns"),
)
_WHY = "neither overhead of the profiler, nor garbage collection, nor the GIL"
_HOW = (
    "Nsight Systems and the PyTorch profiler record the first; ranges that gc.callbacks push the "
    "second; nsys --trace=python-gil the third"
)


class StateTimes(NamedTuple):
    """Sum up states by name, i8[n] each, times in ns.

    ``name`` is a place in ``states.names``; ``idle`` is how long GPUs were idle meanwhile;
    ``begun`` counts those that began in iterations, and ``begun_ns`` sums them up. ``longest`` is
    the place of the longest in ``states``.
    """

    states: States
    name: I8
    times: Distributions
    idle: I8
    begun: I8
    begun_ns: I8
    longest: I8


def state_times(scope: Scope, states: States) -> StateTimes:
    """Sum up what of ``states`` lies in the windows of ``scope``."""
    length = lengths_within(scope, states.start, states.end)
    states, length = states.where(length > 0), length[length > 0]
    first, place = unique_rows([states.name]) if len(states) else (states.name, states.name)
    size = len(first)
    chosen = np.append(chosen_iterations(scope), False)
    inside = chosen[scope.profile.iterations.at(states.process, states.start)]
    longest = np.zeros(size, np.int64)
    order = np.lexsort((length, place))
    longest[place[order]] = order
    idle = idle_in(scope, states.process, states.start, states.end)
    return StateTimes(
        states,
        states.name[first],
        distributions(place, length, size),
        sum_by(place, idle, size),
        np.bincount(place[inside], minlength=size).astype(np.int64),
        sum_by(place[inside], length[inside], size),
        longest,
    )


def states_section(scope: Scope) -> Section:
    """Tell what held the program up by name, and the GIL by thread; states may overlap."""
    found, gil = find_states(scope.profile), measure_gil(scope)
    if found is None and gil is None:
        return Section(NAME, TITLE, why=_WHY, how=_HOW)
    tables = []
    if found is not None:
        tables.append(_table(scope, state_times(scope, found)))
    if gil is not None:
        tables.append(_gil_table(scope, gil))
    return Section(NAME, TITLE, tables=tuple(tables))


def _table(scope: Scope, found: StateTimes) -> Table:
    number, states, times = found.name.tolist(), found.states, found.times
    iterations = int(np.count_nonzero(chosen_iterations(scope)))
    cells = (
        [states.states[at] for at in number],
        [states.names[at] or "[no name]" for at in number],
        times.total,
        found.idle,
        times.count,
        times.p50,
        times.maximum,
        _each(found.begun, iterations, 3),
        _each(found.begun_ns, iterations, None),
    )
    order = np.argsort(-times.total, kind="stable")
    places = [
        Place(window=(int(states.start[at]), int(states.end[at])))
        for at in found.longest[order].tolist()
    ]
    title = "an iteration" if found.begun.any() else ""
    columns = (*_COLUMNS, TableColumn("iteration_ns", title, "ns"))
    return Table.of("rows", "", columns, picked(order, *cells), places)


def _each(column: I8, number: int, digits: int | None) -> list[Value]:
    """What of a column one of a ``number`` has on average; None of none."""
    return [round(value / number, digits) if number else None for value in column.tolist()]


def _gil_table(scope: Scope, found: GilColumns) -> Table:
    order = found.order
    waiting = found.waiting
    places = [
        Place(window=(int(waiting.start[at]), int(waiting.end[at]))) if at >= 0 else None
        for at in found.longest[order].tolist()
    ]
    return Table.of("gil", "the GIL, by thread", _GIL, _gil_rows(scope, found), places)


def _gil_rows(scope: Scope, found: GilColumns) -> Iterator[tuple[Value, ...]]:
    waiting = found.waiting
    for at in found.order.tolist():
        thread, time = found.threads[at], int(found.time[at])
        held, waited, longest = int(found.held[at]), int(found.waited[at]), int(found.longest[at])
        yield (
            *(event_thread_label(scope.profile, thread), thread.pid, thread.tid, time),
            *(held, share(held, time), waited, share(waited, time)),
            int(found.idle[at]) if found.uses_gpu[at] else None,
            int(found.waits[at]),
            int(waiting.end[longest] - waiting.start[longest]) if longest >= 0 else None,
        )
