"""Tell what ran on each GPU, and where its time went."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import unique
from flame.core.model.frames import COPIES, Kind
from flame.core.report.labels import frame_place
from flame.core.report.measures.device_facts import FACT_COLUMNS, fact_cells
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import Budget, budgets
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share

NAME, TITLE = "devices", "What each GPU did"

_COLUMNS = (
    TableColumn("device", "GPU"),
    TableColumn("name", "model"),
    TableColumn("processes", "processes", "count"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("copies", "copies", "count"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("window_ns", "window", "ns"),
    TableColumn("compute_ns", "compute", "ns"),
    TableColumn("compute_percent", "of window", "percent"),
    TableColumn("exposed_comm_ns", "comm. exposed", "ns"),
    TableColumn("copies_alone_ns", "copies alone", "ns"),
    TableColumn("idle_ns", "idle", "ns"),
    TableColumn("idle_percent", "of window", "percent"),
    *FACT_COLUMNS,
)


def devices_section(scope: Scope) -> Section:
    """Tell what ran on each GPU: counts of what passes, times of all that ran."""
    found = budgets(scope)
    if not found:
        return Section(NAME, TITLE, why="no GPU activity with times was recorded")
    rows = (tuple(_row(scope, budget)) for budget in found)
    places = (device_place(scope, budget.gpu.device) for budget in found)
    return Section(NAME, TITLE, tables=(Table.of("rows", "", _COLUMNS, rows, places),))


def device_place(scope: Scope, device: int) -> Place | None:
    """Say where a GPU is in the picture."""
    frames = scope.profile.grouping.device.tolist()
    return frame_place(scope, "device", frames[device]) if device >= 0 else None


def _row(scope: Scope, budget: Budget) -> Iterator[Value]:
    groups, gpu, weights = scope.profile.activities.groups, budget.gpu, scope.own_weights
    used = np.flatnonzero((groups.device == gpu.device) & (weights.activities > 0))
    number = weights.activities[used]
    idle = int(budget.idle.sum())
    yield gpu.label
    yield scope.profile.devices[gpu.device].name or None if gpu.device >= 0 else None
    yield len(unique(groups.process[used]))
    yield int(number[groups.kind[used] == Kind.KERNEL].sum())
    yield int(number[np.isin(groups.kind[used], COPIES)].sum())
    yield int(weights.value[used].sum())
    yield budget.window
    yield budget.compute
    yield share(budget.compute, budget.window)
    yield budget.exposed_communication
    yield budget.copies_alone
    yield idle
    yield share(idle, budget.window)
    yield from fact_cells(scope.profile.devices[gpu.device] if gpu.device >= 0 else None)
