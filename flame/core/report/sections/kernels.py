"""Tell what ran on the GPUs by name: kernels, and below them copies and sets."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.analysis.frame_totals import frame_totals
from flame.core.columns import I8, count_different, taken, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import COPIES, Kind
from flame.core.projection.project import project
from flame.core.report.measures.activity_groups import kinds_of_groups
from flame.core.report.measures.configurations import configurations, dim_text
from flame.core.report.measures.times import shares, times_cells, times_columns
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Unit, picked

NAME, TITLE = "kernels", "What ran on the GPUs"
_OF_STACKS = "Frames, by what they hold"

_KERNELS = (Kind.KERNEL, Kind.GRAPH)
"""A graph that was traced as a whole stands for the kernels in it."""


@dataclass(frozen=True, eq=False)
class NamedTimes:
    """Sum up activities by shown name, i8[n] each.

    ``frame`` is what is shown, ``configurations`` counts the different launch configurations of it
    that are known, ``devices`` the GPUs; ``first`` is when the first began, ns.
    """

    frame: I8
    times: Distributions
    configurations: I8
    devices: I8
    first: I8

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def order(self) -> I8:
        """The places, heaviest first; of equals the one that began first."""
        order: I8 = np.lexsort((self.first, -self.times.total))
        return order


def kernel_times(scope: Scope) -> NamedTimes:
    """Sum up kernels, and graphs that were traced as a whole."""
    return _named_times(scope, scope.rows_of(*_KERNELS))


def copy_times(scope: Scope) -> NamedTimes:
    """Sum up copies and sets."""
    return _named_times(scope, scope.rows_of(*COPIES))


def _named_times(scope: Scope, rows: I8) -> NamedTimes:
    table = scope.profile.activities
    groups, shown = table.groups, scope.labels.shown[table.groups.frame].astype(np.int64)
    some, kind = kinds_of_groups(table, rows, [shown])
    place, size = kind[taken(groups.of_row, rows)], len(some)
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, place, taken(table.start, rows))
    used = np.flatnonzero(kind >= 0)
    return NamedTimes(
        shown[groups.of_row[rows[some]]],
        distributions(place, taken(table.duration, rows), size),
        _configurations(scope, rows, place, size),
        count_different(kind[used], groups.device[used], size),
        first,
    )


def _configurations(scope: Scope, rows: I8, place: I8, size: int) -> I8:
    """Count the different configurations that are known at each ``place``, i8[size]."""
    config = taken(configurations(scope.profile).of_row, rows)
    known = config >= 0
    if not known.all():
        place, config = place[known], config[known]
    return count_different(place, config, size)


def kernels_section(scope: Scope) -> Section:
    """Tell what ran by shown name; of files of stacks all frames."""
    if scope.profile.resolved:
        return _frames_section(scope)
    kernels, copies = kernel_times(scope), copy_times(scope)
    if not len(kernels) and not len(copies):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    tables = [
        _table(scope, kernels, "rows", "kernels"),
        _table(scope, copies, "copies", "copies"),
    ]
    if "config" in scope.details:
        tables.append(_by_config(scope))
    sums = {"kernels_ns": kernels, "copies_ns": copies}
    facts = {key: int(one.times.total.sum()) for key, one in sums.items()}
    return Section(NAME, TITLE, facts=facts, tables=tuple(tables))


def _columns(whole: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn("name", "name"),
        TableColumn("kind", ""),
        *times_columns(whole),
        TableColumn("configurations", "configs", "count"),
        TableColumn("devices", "", "count"),
        TableColumn("first_ns", "", "ns"),
    )


def _table(scope: Scope, found: NamedTimes, key: str, whole: str) -> Table:
    """Tell the times of ``found``, which are those ``whole``."""
    frames = found.frame.tolist()
    names = [scope.labels.text[frame] for frame in frames]
    cells = (
        names,
        [scope.profile.frames[frame].kind.title for frame in frames],
        *times_cells(found.times),
        [number or None for number in found.configurations.tolist()],
        found.devices,
        found.first,
    )
    order = found.order
    places = [Place(("kernel",), (names[at],)) for at in order.tolist()]
    return Table.of(key, whole, _columns(whole), picked(order, *cells), places)


_BY_CONFIG = (
    TableColumn("name", "name"),
    TableColumn("grid", "grid"),
    TableColumn("block", "block"),
    TableColumn("shared_bytes", "", "bytes"),
    *times_columns("kernels"),
)


def _by_config(scope: Scope) -> Table:
    """Sum up kernels by shown name and what they were launched with."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    different, of_row = configurations(scope.profile)
    shown = scope.labels.shown[table.frame[rows]]
    first, place = unique_rows([shown, of_row[rows]])
    times = distributions(place, table.duration[rows], len(first))
    known = [different[at] if at >= 0 else None for at in of_row[rows[first]].tolist()]
    cells = (
        [scope.labels.text[frame] for frame in shown[first].tolist()],
        [one and dim_text(one.grid) for one in known],
        [one and dim_text(one.block) for one in known],
        [one and one.shared for one in known],
        *times_cells(times),
    )
    order = np.argsort(-times.total, kind="stable")
    return Table.of("by_config", "by configuration", _BY_CONFIG, picked(order, *cells))


def _frames_section(scope: Scope) -> Section:
    """Tell the frames of a file of stacks, by its first own metric."""
    tree = project(scope.profile, scope.selection)
    totals, metric = frame_totals(tree), tree.metric
    unit: Unit = "ns" if metric.unit == "ns" else "bytes" if metric.unit == "bytes" else "count"
    columns = (
        TableColumn("name", "frame"),
        TableColumn("total", metric.title, unit),
        TableColumn("percent", "of all", "percent"),
        TableColumn("own", "own", unit),
        TableColumn("count", metric.noun, "count"),
    )
    names = [tree.text[frame] for frame in totals.frame.tolist()]
    percent = shares(totals.total, int(tree.total[0]))
    cells = (names, totals.total, percent, totals.own, totals.count)
    order = np.argsort(-totals.total, kind="stable")
    table = Table.of("rows", "", columns, picked(order, *cells))
    facts = {"metric": metric.key, "unit": metric.unit, "total": int(tree.total[0])}
    return Section(NAME, _OF_STACKS, facts=facts, tables=(table,))
