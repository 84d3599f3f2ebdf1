"""Compare the ranks of a job: what each did, and how far they are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from flame.core.columns import I8, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.report.parties.processes import measure_processes
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.report.table import Place, Section, Table, TableColumn, Value

NAME, TITLE = "ranks", "How the ranks compare"

_NUMBERS = (
    TableColumn("gpu_time", "GPU time", "ns"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("copies", "copies", "count"),
    TableColumn("bytes", "copied", "bytes"),
    TableColumn("launches", "launches", "count"),
    TableColumn("launch_ns", "in launches", "ns"),
    TableColumn("blocked", "blocked", "ns"),
    TableColumn("ranges", "ranges", "count"),
    TableColumn("window", "window", "ns"),
    TableColumn("compute", "compute", "ns"),
    TableColumn("exposed_comm", "comm. exposed", "ns"),
    TableColumn("copies_alone", "copies alone", "ns"),
    TableColumn("idle", "idle", "ns"),
)


def _key(column: TableColumn) -> str:
    """The key in JSON: times have their unit."""
    return column.key if column.unit != "ns" else f"{column.key.removesuffix('_ns')}_ns"


_COLUMNS = (
    TableColumn("rank", "rank"),
    *(column._replace(key=_key(column)) for column in _NUMBERS),
)
_SPREAD = (
    TableColumn("quantity", "quantity"),
    TableColumn("least_rank", "least"),
    TableColumn("most_rank", "most"),
    TableColumn("ratio", "most / least", "ratio"),
)


@dataclass(frozen=True, eq=False)
class RankColumns:
    """Hold what each rank, a file, did: sums over its processes and GPUs, i8[ranks].

    As `ProcessColumns` and `Budget` have it; None where it was not recorded. What a GPU did that
    several of them used counts to each.
    """

    gpu_time: I8
    kernels: I8
    copies: I8
    bytes: I8 | None
    launches: I8
    launch_ns: I8
    blocked: I8 | None
    ranges: I8 | None
    window: I8
    compute: I8
    exposed_comm: I8
    copies_alone: I8
    idle: I8


def measure_ranks(scope: Scope) -> RankColumns:
    """Sum up what the processes and the GPUs of each file did."""
    profile, size = scope.profile, len(scope.profile.sources)
    processes = measure_processes(scope)
    of_process = np.array([process.source for process in profile.processes], np.int64)
    own: dict[str, I8 | None] = {}
    for name in [column.key for column in _NUMBERS if hasattr(processes, column.key)]:
        column = getattr(processes, name)
        own[name] = None if column is None else sum_by(of_process, column[:-1], size)
    return RankColumns(**own, **_times(scope, size))  # type: ignore[arg-type]


def _times(scope: Scope, size: int) -> dict[str, I8]:
    found = [one for one in budgets(scope) if one.gpu.device >= 0]
    files = [scope.profile.devices[one.gpu.device].sources for one in found]
    of = np.array([file for each in files for file in each], np.int64)
    times = [len(each) for each in files]  # one that several used is each one's
    parts = {
        "window": [one.window for one in found],
        "compute": [one.compute for one in found],
        "exposed_comm": [one.exposed_communication for one in found],
        "copies_alone": [one.copies_alone for one in found],
        "idle": [int(one.idle.sum()) for one in found],
    }
    columns = {name: np.array(part, np.int64) for name, part in parts.items()}
    return {name: sum_by(of, np.repeat(part, times), size) for name, part in columns.items()}


def ranks_section(scope: Scope) -> Section:
    """Tell what each rank did, and by which of them they are apart."""
    profile = scope.profile
    if profile.resolved or len(profile.sources) < 2:
        how = "name the files of all ranks"
        return Section(NAME, TITLE, why="one file alone was opened", how=how)
    found = measure_ranks(scope)
    labels = [source.label for source in profile.sources]
    columns = [getattr(found, each.name) for each in fields(found)]
    cells = [[None] * len(labels) if one is None else one.tolist() for one in columns]
    rows = zip(labels, *cells, strict=True)
    return Section(
        NAME,
        TITLE,
        tables=(
            Table.of(
                "rows", "", _COLUMNS, rows, (Place(("rank", "kernel"), (one,)) for one in labels)
            ),
            Table.of("spread", "how far apart", _SPREAD, _spread_rows(found, labels)),
        ),
    )


def _spread_rows(found: RankColumns, labels: list[str]) -> Iterator[tuple[Value, ...]]:
    """The quantities in which ranks differ, most first."""
    rows = []
    for column in _NUMBERS:
        values = getattr(found, column.key)
        if values is not None and values.max() > 0:
            least, most = int(np.argmin(values)), int(np.argmax(values))
            ratio = round(int(values[most]) / int(values[least]), 3) if values[least] else None
            rows.append((column.title, labels[least], labels[most], ratio))
    yield from sorted(rows, key=lambda row: -(row[3] or np.inf))
