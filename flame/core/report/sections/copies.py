"""Tell what copies and sets moved, how fast, and which of them hold the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flame.core.analysis.distribution import distributions
from flame.core.columns import I8, Bool, Column, unique_rows
from flame.core.model.profile import Profile
from flame.core.report.measures.copy_references import references
from flame.core.report.measures.copy_work import (
    CopyWork,
    asynchronous_pageable,
    copy_work,
    synchronous,
    synchronous_sets,
)
from flame.core.report.measures.times import shares
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked
from flame.core.timeline.exposure import exposed_times

NAME, TITLE = "copies", "What was copied, and how fast"

SIZES = (65_536, 1 << 20)
"""Bytes that divide copies into classes: below them latency counts, above them bandwidth."""

_SIZE_NAMES = ("< 64 KiB", "< 1 MiB", "≥ 1 MiB")
_COLUMNS = (
    TableColumn("name", "name"),
    TableColumn("source", "from"),
    TableColumn("target", "to"),
    TableColumn("size", "each of"),
    TableColumn("ns", "time", "ns"),
    TableColumn("alone_ns", "alone", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("bytes", "moved", "bytes"),
    TableColumn("gb_per_s", "rate", "GB/s"),
    TableColumn("efficiency_percent", "of best", "percent"),
    TableColumn("reference", "best is"),
    TableColumn("reference_gb_per_s", "", "GB/s"),
    TableColumn("percent", "of copies", "percent"),
    TableColumn("p50_gb_per_s", "p50", "GB/s"),
    TableColumn("min_gb_per_s", "", "GB/s"),
    TableColumn("max_gb_per_s", "max", "GB/s"),
)
_HOLDING: tuple[tuple[str, str, Callable[[CopyWork, Profile], Bool]], ...] = (
    ("async_pageable", "asynchronous, of pageable memory", asynchronous_pageable),
    ("sync", "synchronous", synchronous),
    ("sets_sync", "synchronous sets of host memory", synchronous_sets),
)
_HOLDING_COLUMNS = (
    TableColumn("what", "copies"),
    TableColumn("count", "number", "count"),
    TableColumn("bytes", "moved", "bytes"),
    TableColumn("ns", "time", "ns"),
)


def copies_section(scope: Scope) -> Section:
    """Tell copies and sets by direction, memory and size; rates are of the time on the GPU.

    They are compared with the GPU's memory, with a link that the user knows, or the best of them.
    """
    if not len(scope.rows):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    copies = copy_work(scope)
    duration = scope.profile.activities.duration[copies.row]
    chosen = [(key, title, of(copies, scope.profile)) for key, title, of in _HOLDING]
    held = [(key, title, _sums(copies, duration, mask)) for key, title, mask in chosen]
    columns = ("count", "bytes", "ns")
    facts = {key: dict(zip(columns, sums, strict=True)) for key, _, sums in held}
    rows = [(title, *sums) for _, title, sums in held if sums[0]]
    tables = (
        _by_memory(scope, copies, duration),
        Table.of("holding", "that hold the host", _HOLDING_COLUMNS, rows),
    )
    lacking = bool(len(copies.row)) and not copies.known
    notes = ("which memory was copied was not recorded",) * lacking
    return Section(NAME, TITLE, facts=facts, tables=tables, notes=notes)


def _sums(copies: CopyWork, duration: I8, mask: Bool) -> tuple[int, int, int]:
    """(number, bytes, ns) of the copies in ``mask``."""
    return int(mask.sum()), int(np.maximum(copies.bytes[mask], 0).sum()), int(duration[mask].sum())


def _by_memory(scope: Scope, copies: CopyWork, duration: I8) -> Table:
    shown = scope.labels.shown[scope.profile.activities.frame[copies.row]].astype(np.int64)
    size_class = np.where(copies.bytes < 0, -1, np.searchsorted(SIZES, copies.bytes, "right"))
    first, place = unique_rows([shown, copies.memory, size_class])
    number = len(first)
    alone = exposed_times(scope.profile)[copies.row] if len(copies.row) else copies.row
    times, alone_sums = distributions(place, duration, number), distributions(place, alone, number)
    moved = distributions(place, np.maximum(copies.bytes, 0), number).total
    known = copies.bytes[first] >= 0
    rate = distributions(place, _bytes_per_second(copies.bytes, duration), number)
    memories = [copies.memories[at] if at >= 0 else None for at in copies.memory[first].tolist()]
    names = [scope.labels.text[frame] for frame in shown[first].tolist()]
    whole = _bytes_per_second(np.where(known, moved, -1), times.total)
    best = references(scope.profile, scope.links, copies.row, place, rate.p90)
    cells: list[Column | Sequence[Value]] = [
        names,
        [one and one.source for one in memories],
        [one and one.target for one in memories],
        [_SIZE_NAMES[at] if at >= 0 else None for at in size_class[first].tolist()],
        times.total,
        alone_sums.total,
        times.count,
        [one if is_known else None for one, is_known in zip(moved.tolist(), known, strict=True)],
        _in_gb(whole),
        [one and one.percent(rate) for one, rate in zip(best, whole.tolist(), strict=True)],
        [one and one.what for one in best],
        [one and round(one.rate / 1e9, 3) for one in best],
        shares(times.total, int(times.total.sum())),
        *(_in_gb(one) for one in (rate.p50, rate.minimum, rate.maximum)),
    ]
    order = np.argsort(-times.total, kind="stable")
    places = [Place(("kernel",), (names[at],)) for at in order.tolist()]
    return Table.of("rows", "", _COLUMNS, picked(order, *cells), places)


def _bytes_per_second(size: I8, ns: I8) -> I8:
    """Bytes per second, 0 where either is not known."""
    known = (size > 0) & (ns > 0)
    rate = size.astype(np.float64) * 1e9 / np.where(ns > 0, ns, 1)
    return np.where(known, np.rint(rate), 0).astype(np.int64)


def _in_gb(rates: I8) -> list[Value]:
    return [round(rate / 1e9, 3) if rate else None for rate in rates.tolist()]
