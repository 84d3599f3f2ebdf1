"""Tell what held the program up besides its own work: the profiler, loading, garbage collection."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from flame.core.analysis.distribution import distributions
from flame.core.analysis.utilization import gap_edges
from flame.core.columns import I8, Column, sum_by, unique_rows
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.names.overheads import is_of_profiler
from flame.core.report.measures.launching_calls import process_of_threads
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, picked
from flame.core.timeline.busy_time import BusyTime

NAME, TITLE = "states", "What held the program up"

PROFILER, LOADING, COLLECTION = "profiler", "loading", "garbage collection"

_COLLECTION = lazy_regex(r"(?:python )?gc|garbage collection", re.IGNORECASE)
_COLUMNS = (
    TableColumn("state", "state"),
    TableColumn("name", "name"),
    TableColumn("ns", "time", "ns"),
    TableColumn("idle_ns", "GPU idle", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("max_ns", "max", "ns"),
)


@dataclass(frozen=True, eq=False)
class States:
    """Hold when anything held a program up: one row each, in no order.

    ``name`` i8[n] is a place in ``names``, whose state is in ``states``; ``process`` i8[n] is -1
    where it is not known; ``start`` and ``end`` (exclusive) i8[n] are in ns.
    """

    names: list[str]
    states: list[str]
    name: I8
    process: I8
    start: I8
    end: I8

    def __len__(self) -> int:
        return len(self.start)


def find_states(profile: Profile) -> States | None:
    """Find what held the programs of ``profile`` up; None where the trace does not tell."""
    found = [one for one in (_overheads(profile), _collections(profile)) if one is not None]
    if not found:
        return None
    names = [name for one in found for name in one.names]
    states = [state for one in found for state in one.states]
    shift = np.cumsum([0, *(len(one.names) for one in found)])[:-1]
    place = [one.name + by for one, by in zip(found, shift.tolist(), strict=True)]
    columns = (
        np.concatenate([getattr(one, column) for one in found])
        for column in ("process", "start", "end")
    )
    return States(names, states, np.concatenate(place), *columns)


def _overheads(profile: Profile) -> States | None:
    """What the profiler told of itself, and of loading."""
    known = profile.overheads
    if known is None:
        return None
    states = [PROFILER if is_of_profiler(name) else LOADING for name in known.names]
    who = (known.name.astype(np.int64), known.process.astype(np.int64))
    return States(list(known.names), states, *who, known.start, known.end)


def _collections(profile: Profile) -> States | None:
    """Ranges that stand for garbage collection; None where there are none."""
    frames = profile.frames
    ranges = np.flatnonzero(frames.kind == Kind.NVTX).tolist()
    chosen = [at for at in ranges if _COLLECTION.fullmatch(frames[at].name)]
    if not chosen or profile.spans_finder is None:
        return None
    spans = profile.spans_finder(chosen)
    place = np.searchsorted(chosen, spans.frame)
    process = process_of_threads(profile)[spans.thread]
    names = [frames[at].name for at in chosen]
    return States(names, [COLLECTION] * len(names), place, process, spans.start, spans.end)


def idle_in(scope: Scope, states: States) -> I8:
    """Measure how long the GPUs that its process uses were idle in each, i8[n] in ns."""
    groups, idle = scope.profile.activities.groups, np.zeros(len(states), np.int64)
    for gpu in scope.gpus:
        gaps = BusyTime.between(*gap_edges(gpu))
        users = np.unique(groups.process[groups.device == gpu.device])
        rows = np.flatnonzero(np.isin(states.process, users) & (states.process >= 0))
        start, end = states.start[rows], states.end[rows]
        idle[rows] += gaps.sums_until(end) - gaps.sums_until(start)
    return idle


def states_section(scope: Scope) -> Section:
    """Tell profiler overhead, loading and garbage collection by name; states may overlap."""
    found = find_states(scope.profile)
    if found is None:
        why = "neither overhead of the profiler nor ranges of garbage collection"
        how = "Nsight Systems and the PyTorch profiler record the one, "
        how += "nsys --python-sampling or gc.callbacks the other"
        return Section(NAME, TITLE, why=why, how=how)
    low, high = _window(scope, found)
    some = np.flatnonzero(high > low)
    found = replace(
        found, name=found.name[some], process=found.process[some], start=low[some], end=high[some]
    )
    return Section(NAME, TITLE, tables=(_table(scope, found),))


def _window(scope: Scope, found: States) -> tuple[I8, I8]:
    """The part of each that lies in the windows of the GPUs; all where there are no GPUs."""
    if not scope.gpus or not scope.selection.where:
        return found.start, found.end
    low = min(gpu.window.low for gpu in scope.gpus)
    high = max(gpu.window.high for gpu in scope.gpus)
    return np.maximum(found.start, low), np.minimum(found.end, high)


def _table(scope: Scope, found: States) -> Table:
    first, place = unique_rows([found.name]) if len(found) else (found.name, found.name)
    number = found.name[first]
    times = distributions(place, found.end - found.start, len(first))
    idle = sum_by(place, idle_in(scope, found), len(first))
    cells: list[Column | list[Value]] = [
        [found.states[at] for at in number.tolist()],
        [found.names[at] or "[no name]" for at in number.tolist()],
        times.total,
        idle,
        times.count,
        times.p50,
        times.maximum,
    ]
    order = np.argsort(-times.total, kind="stable")
    return Table.of("rows", "", _COLUMNS, picked(order, *cells))
