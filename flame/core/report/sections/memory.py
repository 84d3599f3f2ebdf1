"""Tell what allocating and freeing memory cost the host, and how much of GPUs was allocated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.distribution import Distributions
from flame.core.columns import I8, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.calls import CallClass
from flame.core.model.launches import DEVICE
from flame.core.report.allocations.tables import held_memory
from flame.core.report.host_calls import NO_CALLS, RECORD_CALLS, HostCalls
from flame.core.report.measures.allocator_memory import given_out
from flame.core.report.measures.chosen_iterations import calls_per_iteration, iteration_notes
from flame.core.report.measures.device_memory import MemoryUse, memory_use
from flame.core.report.measures.times import times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, picked, share
from flame.core.units import BLOCKS

NAME, TITLE = "memory", "Memory of the GPUs"

LONG = 1_000_000
"""Calls that last longer, ns, are counted apart: an allocator's own take microseconds."""


@dataclass(frozen=True, eq=False)
class AllocatingCalls:
    """Sum up calls that allocate or free by shown name, i8[n] each.

    ``long`` counts those that last longer than `LONG`, ``long_time`` sums them up; ``longest`` is
    the place of the longest in ``calls``.
    """

    calls: HostCalls
    shown: I8
    times: Distributions
    long: I8
    long_time: I8
    longest: I8


def allocations(calls: HostCalls) -> AllocatingCalls:
    """Sum up those of ``calls`` that allocate or free memory."""
    calls = calls.of_class(CallClass.ALLOC)
    shown, place, times = calls.by_name
    size, is_long = len(shown), calls.length > LONG
    return AllocatingCalls(
        calls,
        shown,
        times,
        np.bincount(place[is_long], minlength=size).astype(np.int64),
        sum_by(place[is_long], calls.length[is_long], size),
        calls.longest(place, size),
    )


_COLUMNS = (
    TableColumn("name", "call"),
    *times_columns("these"),
    TableColumn("long", "over 1 ms", "count"),
    TableColumn("long_ns", "", "ns"),
    TableColumn("longest_begin_ns", "", "ns"),
)


_GIVEN = (
    TableColumn("gpu", "GPU"),
    TableColumn("peak_bytes", "at most", "bytes"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("peak_ns", "at", "moment"),
    TableColumn("first_bytes", "at first", "bytes"),
    TableColumn("last_bytes", "at the end", "bytes"),
    TableColumn("changes", "changes", "count"),
)
_USE = (
    TableColumn("gpu", "GPU"),
    TableColumn("kind", "memory"),
    TableColumn("peak_bytes", "at most", "bytes"),
    TableColumn("percent", "of all", "percent"),
    TableColumn("peak_ns", "at", "moment"),
    TableColumn("last_bytes", "at the end", "bytes"),
    TableColumn("allocations", "allocated", "count"),
    TableColumn("freed", "", "count"),
    TableColumn("allocated_bytes", "", "bytes"),
    TableColumn("strays", "freed, older", "count"),
)
_OVER_TIME = (
    TableColumn("gpu", "GPU"),
    TableColumn("kind", "memory"),
    TableColumn("chart", "allocated over time", "chart"),
)
_RECORD_MEMORY = {
    "nsys-sqlite": "nsys profile --cuda-memory-usage=true",
    "kineto": "torch.profiler.profile(profile_memory=True)",
    "fdump": "flame record --memory",
}


def memory_section(scope: Scope) -> Section:
    """Tell how much was allocated when, and the calls that allocate or free, by name."""
    calls, uses = scope.calls, memory_use(scope)
    known, given = calls is not None and not scope.lacks_calls, allocator_table(scope)
    held = held_memory(scope)
    if not known and not uses and not given.rows and held is None:
        return Section(NAME, TITLE, why=scope.lacks_calls or NO_CALLS, how=RECORD_CALLS)
    facts, tables, notes = _calls(scope, calls) if calls is not None and known else ({}, (), ())
    tables = (given, *tables) if given.rows else tables
    if held is not None:
        facts, tables = {**facts, **held.facts}, (*held.tables, *tables)
        notes = (*held.notes, *notes)
    memory = scope.profile.device_memory
    if memory is None or not memory.places:
        missing = () if given.rows or held else _how(scope)
        return Section(NAME, TITLE, facts, tables, (*notes, *missing))
    left_out = memory.left_out
    notes += (f"{left_out:,} events of memory make no sense: left out",) * bool(left_out)
    facts |= {"over_time": [_over_time(scope, one) for one in uses]}
    charts = Table.of("use_over_time", "", _OVER_TIME, ((*_of(one), _chart(one)) for one in uses))
    return Section(NAME, TITLE, facts, (_use_table(scope, uses), charts, *tables), notes)


def _how(scope: Scope) -> Iterator[str]:
    """Say what records how much was allocated, of formats that have it."""
    formats = {source.meta.format for source in scope.profile.sources}
    ways = [way for name, way in _RECORD_MEMORY.items() if name in formats]
    if ways:
        yield f"how much was allocated when: {' or '.join(ways)} records that"


def allocator_table(scope: Scope) -> Table:
    """Tell how much PyTorch's allocator had given out, by GPU."""
    found = given_out(scope)
    rows = []
    for one in found:
        whole = scope.profile.devices[one.device].facts.memory
        part = share(one.most, whole) if whole else None
        rows.append((one.label, one.most, part, one.at, one.first, one.last, one.number))
    places = [Place(window=(one.at, one.until)) for one in found]
    return Table.of("allocator", "given out by PyTorch's allocator", _GIVEN, rows, places)


def _use_table(scope: Scope, uses: list[MemoryUse]) -> Table:
    rows = []
    for one in uses:
        device = scope.profile.devices[one.place.device] if one.place.device >= 0 else None
        whole = device.facts.memory if device and one.place.kind == DEVICE else None
        rows.append(
            (
                *_of(one),
                one.peak,
                share(one.peak, whole) if whole else None,
                one.peak_at,
                one.last,
                *(one.allocations, one.freed, one.total, one.strays or None),
            )
        )
    places = [Place(window=(one.peak_at, one.peak_until)) for one in uses]
    return Table.of("use", "allocated", _USE, rows, places)


def _of(one: MemoryUse) -> tuple[str, str | None]:
    """The GPU and the kind of memory."""
    return one.gpu.label if one.gpu else f"GPU{max(one.place.gpu, 0)}", one.place.kind or None


def _chart(one: MemoryUse) -> str:
    """A character for each part, the higher the more was allocated."""
    return "".join(BLOCKS[-(-size * (len(BLOCKS) - 1) // max(one.peak, 1))] for size in one.most)


def _over_time(scope: Scope, one: MemoryUse) -> dict[str, object]:
    return {
        **(scope.device(one.gpu) if one.gpu else {"id": None, "source": one.place.source}),
        "kind": one.place.kind or None,
        "begin_ns": one.window.low,
        "length_ns": one.window.length,
        "most_bytes": list(one.most),
    }


def _calls(
    scope: Scope, calls: HostCalls
) -> tuple[dict[str, object], tuple[Table, ...], tuple[str, ...]]:
    """(facts, tables, notes) of the calls."""
    found = allocations(calls)
    order = np.argsort(-found.times.total, kind="stable")
    begin, end = (time[found.longest] for time in (found.calls.start, found.calls.end))
    cells = (
        calls.names(found.shown),
        *times_cells(found.times),
        found.long,
        found.long_time,
        begin,
    )
    windows = [Place(window=(int(begin[at]), int(end[at]))) for at in order.tolist()]
    table = Table.of("rows", "calls", _COLUMNS, picked(order, *cells), windows)
    each = calls_per_iteration(scope, found.calls)
    facts: dict[str, object] = {
        "calls": len(found.calls),
        "total_ns": int(found.times.total.sum()),
        "long": int(found.long.sum()),
        "long_ns": int(found.long_time.sum()),
        "per_iteration_p50": each,
    }
    notes = iteration_notes(each)
    if not len(found.calls):
        notes = ("no call allocates or frees memory",)
    return facts, (table,), notes
