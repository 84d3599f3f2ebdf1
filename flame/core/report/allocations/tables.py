"""Tell who held the memory of GPUs in tables: by GPU, by part, by stack, requests that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from flame.core.allocator.growth import LEAST_BOUNDARIES
from flame.core.allocator.out_of_memory import verdict
from flame.core.allocator.reserved import PART_MEANINGS
from flame.core.analysis.words.memory import asked_words
from flame.core.model.allocator.recorded import MemoryOfDevice
from flame.core.projection.filters import At, Moment
from flame.core.projection.selection import moment_of
from flame.core.report.allocations.stacks import (
    LEVELS,
    HeldStack,
    called,
    device_frame,
    devices_with_memory,
    gpu_name,
    held_stacks,
    stack_names,
    stack_sources,
)
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Table, TableColumn, Value, share, source_of
from flame.core.units import format_counted

_GPU = TableColumn("gpu", "GPU")
_GPUS = (
    _GPU,
    TableColumn("peak_bytes", "at the peak", "bytes"),
    TableColumn("before_bytes", "from before", "bytes"),
    TableColumn("before_percent", "of the peak", "percent"),
    TableColumn("live_bytes", "at the end", "bytes"),
    TableColumn("reserved_bytes", "reserved", "bytes"),
    TableColumn("largest_free_bytes", "largest free", "bytes"),
    TableColumn("events", "events", "count"),
    TableColumn("peak_position", "", "count"),
    TableColumn("peak_after_ns", "peak after", "ns"),
)
_PARTS = (
    _GPU,
    TableColumn("part", "part"),
    TableColumn("bytes", "bytes", "bytes"),
    TableColumn("percent", "of reserved", "percent"),
    TableColumn("meaning", "which is"),
)
_FAILED = (
    _GPU,
    TableColumn("bytes", "asked for", "bytes"),
    TableColumn("device_free_bytes", "GPU had free", "bytes"),
    TableColumn("free_bytes", "allocator", "bytes"),
    TableColumn("largest_free_bytes", "largest", "bytes"),
    TableColumn("verdict", "verdict"),
    TableColumn("stack", "stack"),
    TableColumn("path", ""),
    TableColumn("position", "", "count"),
)
_GREW = (
    _GPU,
    TableColumn("bytes", "grew by", "bytes"),
    TableColumn("per_step_bytes", "per step", "bytes"),
    TableColumn("steps", "steps", "count"),
    TableColumn("stack", "stack"),
    TableColumn("path", ""),
    TableColumn("series", ""),
)
_STACKS = {
    "peak": ("peak_stacks", "stacks at the peak", "of the peak"),
    "live": ("end_stacks", "stacks at the end", "of all"),
    "churn": ("churn_stacks", "most traffic: allocated and given back", "of all"),
}


class HeldMemory(NamedTuple):
    """Hold what a section says of memory: values by key, tables, and sentences below them."""

    facts: dict[str, object]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def held_memory(scope: Scope) -> HeldMemory | None:
    """Tell who held the memory of GPUs; None of a trace that does not know."""
    devices = devices_with_memory(scope)
    if not devices:
        return None
    stacks = {metric: _stack_table(scope, metric) for metric in _STACKS}
    moment = moment_of(scope.selection)
    if moment is None and any(one.out_of_memory for one in devices):
        moment = "oom"
    if moment is not None:
        stacks = {"moment": _stack_table(scope, "peak", moment), **stacks}
    tables = (
        _gpu_table(scope, devices),
        Table.of("reserved", "reserved at the end", _PARTS, _parts(scope, devices), whole=True),
        _failed_table(scope, devices),
        _growth_table(scope, devices),
        *(table for table, _ in stacks.values()),
    )
    facts = {"memory": {metric: one for metric, (_, one) in stacks.items()}}
    titled = tuple(map(_with_gpu, tables)) if len(devices) > 1 else tables
    return HeldMemory({**facts}, titled, tuple(_notes(scope, devices)))


def _with_gpu(table: Table) -> Table:
    """Say in the title which GPU all rows are of: people see no column that says one thing."""
    gpus = {row[0] for row in table.rows} if _GPU in table.columns else set()
    return replace(table, title=f"{table.title}: {gpus.pop()}") if len(gpus) == 1 else table


def place_of(scope: Scope, device: int, metric: str, stack: int | None = None) -> Place:
    """Lead to a Python stack of a GPU in the tree of ``metric``: to the GPU's frame without one."""
    path = () if stack is None else stack_names(scope, stack)
    sources = () if stack is None else stack_sources(scope, stack)
    if len(scope.profile.devices) == 1:
        return Place((), path, metric, sources=sources)
    gpu = device_frame(scope, device)
    return Place(LEVELS, (gpu.name, *path), metric, sources=(source_of(gpu), *sources))


def place_of_failure(scope: Scope, device: int) -> Place:
    """Lead to what a GPU held when the last request failed."""
    return place_of(scope, device, "peak")._replace(moment="oom")


def _gpu_table(scope: Scope, devices: Iterable[MemoryOfDevice]) -> Table:
    rows, places = list[tuple[Value, ...]](), list[Place]()
    for one in devices:
        before = one.before, share(one.before, one.peak)
        parts = (one.parts.reserved, one.parts.largest_free) if one.parts else (None, None)
        after = None if one.peak_time is None else one.peak_time - scope.profile.begin
        at = one.peak_position if one.peak_position >= 0 else None
        cells = (one.peak, *before, one.live_end, *parts, one.events, at, after)
        rows.append((gpu_name(scope, one.device), *cells))
        places.append(place_of(scope, one.device, "peak"))
    return Table.of("gpus", "in use", _GPUS, rows, places)


def _parts(scope: Scope, devices: Iterable[MemoryOfDevice]) -> Iterator[tuple[Value, ...]]:
    for one in devices:
        if one.parts is None:
            continue
        for name, meaning in PART_MEANINGS.items():
            size: int = getattr(one.parts, name)
            yield gpu_name(scope, one.device), name, size, share(size, one.parts.reserved), meaning


def _failed_table(scope: Scope, devices: Iterable[MemoryOfDevice]) -> Table:
    rows, places = list[tuple[Value, ...]](), list[Place]()
    for device in devices:
        for one in device.out_of_memory:
            names = stack_names(scope, one.stack)
            sizes = one.size, one.device_free, one.free, one.largest_free
            told = verdict(one), called(names) or None, ";".join(names) or None, one.position
            rows.append((gpu_name(scope, device.device), *sizes, *told))
            places.append(place_of_failure(scope, device.device))
    return Table.of("failed", "requests that failed", _FAILED, rows, places)


def _growth_table(scope: Scope, devices: Iterable[MemoryOfDevice]) -> Table:
    rows, places = list[tuple[Value, ...]](), list[Place]()
    for device in devices:
        for one in device.growth:
            names, steps = stack_names(scope, one.stack), len(one.sizes) - 1
            each, series = round(one.total / steps), " ".join(map(str, one.sizes))
            told = one.total, each, steps, called(names), ";".join(names), series
            rows.append((gpu_name(scope, device.device), *told))
            places.append(place_of(scope, device.device, "live", one.stack))
    return Table.of("growing", "stacks that grow from step to step", _GREW, rows, places)


def _stack_table(
    scope: Scope, metric: str, moment: Moment | int | None = None
) -> tuple[Table, dict[str, object]]:
    """The heaviest stacks by ``metric``, at ``moment`` unless it is None, and the sums of all."""
    found, (key, title, whole) = held_stacks(scope, metric, moment), _STACKS[metric]
    if moment is not None:
        key, title, whole = "moment_stacks", f"stacks {asked_words(At(moment))}", "of all"
    columns = (
        _GPU,
        TableColumn("bytes", "bytes", "bytes"),
        TableColumn("percent", whole, "percent"),
        TableColumn("allocations", "allocations", "count"),
        TableColumn("stack", "stack"),
        TableColumn("at", "at"),
        TableColumn("path", ""),
    )
    rows = (_stack_cells(one, found.by_gpu) for one in found.stacks)
    places = [_leading(scope, one, metric)._replace(moment=moment) for one in found.stacks]
    table = replace(Table.of(key, title, columns, rows, places), total=found.number)
    return table, {"bytes": found.by_gpu, "stacks": found.number}


def _stack_cells(one: HeldStack, whole: dict[str, int]) -> tuple[Value, ...]:
    names = one.path[1:] if one.gpu else one.path
    percent = share(one.size, whole[one.gpu]) if one.gpu in whole else None
    told = called(names) or "[no frame is left]", one.at or None, ";".join(names)
    return one.gpu or None, one.size, percent, one.allocations, *told


def _leading(scope: Scope, one: HeldStack, metric: str) -> Place:
    if len(scope.profile.devices) > 1 or not one.gpu:
        return Place(LEVELS, one.path, metric, sources=one.sources)
    return Place((), one.path[1:], metric, sources=one.sources[1:])


def why_no_growth(memory: MemoryOfDevice) -> str:
    """Say why it is not known which stacks grow; empty where it is known."""
    if memory.boundaries >= LEAST_BOUNDARIES:
        return ""
    ends = format_counted(memory.boundaries, "end of a step", "ends of steps")
    return (
        f"{ends} recorded, {LEAST_BOUNDARIES} are needed: those of the PyTorch profiler or of an "
        "optimizer, with _record_memory_history() before them"
    )


def _notes(scope: Scope, devices: Iterable[MemoryOfDevice]) -> Iterator[str]:
    if scope.selection.where:
        yield "stacks are of what passes the filters, all else of whole GPUs and all the recording"
    for one in devices:
        name = gpu_name(scope, one.device)
        if why := why_no_growth(one):
            yield f"{name}: whether anything grows is not known: {why}"
        elif not one.growth:
            steps = format_counted(one.boundaries, "step", "steps")
            yield f"{name}: no stack grows from step to step ({steps})"
        if one.parts is None:
            yield f"{name}: what is reserved was not recorded"
