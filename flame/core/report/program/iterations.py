"""Tell how long iterations took, which are slow, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from flame.core.analysis.iteration_candidates import iteration_candidates
from flame.core.columns import I8, unique
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.report.labels import frame_place, labels_without_numbers, process_labels
from flame.core.report.measures.trend import HOW, has_statistics
from flame.core.report.program.iteration_measures import (
    IterationColumns,
    IterationTimes,
    measure_scope,
    measure_times,
)
from flame.core.report.program.iteration_verdicts import Verdicts, judge
from flame.core.report.program.slow_iterations import (
    EXPLAINING,
    LongerFrames,
    LongerParts,
    longer_frames,
    longer_parts,
)
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share
from flame.core.timeline.idle_parts import IdleCause
from flame.core.units import format_count, format_percent

NAME, TITLE = "iterations", "How long each iteration took"

_CANDIDATES = 3

_NUMBER = TableColumn("iteration", "iteration", "number")
_COLUMNS = (
    _NUMBER,
    TableColumn("verdict", ""),
    TableColumn("period_ns", "period", "ns"),
    TableColumn("host_ns", "host", "ns"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("busy_ns", "busy", "ns"),
    TableColumn("span_ns", "span", "ns"),
    TableColumn("kernels", "kernels", "count"),
    TableColumn("launches", "launches", "count"),
    TableColumn("launch_ns", "in launches", "ns"),
    TableColumn("syncs", "syncs", "count"),
    TableColumn("allocs", "allocs", "count"),
    TableColumn("collection_ns", "GC", "ns"),
    TableColumn("start_ns", "at", "moment"),
    TableColumn("rank", "slowest rank"),
)
_RANK_COLUMNS = (_NUMBER, TableColumn("rank", "rank"), *_COLUMNS[2:-1])
_PART_COLUMNS = (
    _NUMBER,
    TableColumn("rank", "rank"),
    TableColumn("window_ns", "window", "ns"),
    TableColumn("compute_ns", "compute", "ns"),
    TableColumn("exposed_comm_ns", "comm. exposed", "ns"),
    TableColumn("copies_alone_ns", "copies alone", "ns"),
    *(
        TableColumn(f"idle_{cause.name.lower()}_ns", f"idle: {cause.title}", "ns")
        for cause in IdleCause
    ),
)
_STATISTICS = (
    TableColumn("count", "iterations", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p95_ns", "p95", "ns"),
    TableColumn("p99_ns", "p99", "ns"),
    TableColumn("max_ns", "max", "ns"),
    TableColumn("mean_ns", "mean", "ns"),
    TableColumn("deviation_ns", "usual deviation", "ns"),
    TableColumn("trend_ns", "each longer by", "ns"),
    TableColumn("chance_percent", "chance of that", "percent"),
)
_WHY = (
    _NUMBER,
    TableColumn("excess_ns", "longer by", "ns"),
    TableColumn("part", "part"),
    TableColumn("longer_ns", "part longer by", "ns"),
    TableColumn("percent", "of it", "percent"),
)
_FRAMES = (
    _NUMBER,
    TableColumn("kernel", "kernel"),
    TableColumn("range", "below"),
    TableColumn("longer_ns", "longer by", "ns"),
    TableColumn("count", "number", "count"),
    TableColumn("usual", "usually", "ratio"),
)


@dataclass(frozen=True, eq=False)
class IterationReport:
    """Hold the iterations that pass, the slowest rank's of each (``times``), and ``verdicts``.

    What these ran is measured when it is asked for: that takes as long as all rules of findings.
    """

    scope: Scope
    times: IterationTimes
    verdicts: Verdicts

    @cached_property
    def every(self) -> IterationColumns:
        """All iterations, of all ranks."""
        return measure_scope(self.scope)

    @cached_property
    def columns(self) -> IterationColumns:
        """Those of ``times``."""
        return self.every.take(measure_times(self.scope).slowest)

    @cached_property
    def parts(self) -> LongerParts:
        """By what slow ones are longer."""
        return longer_parts(self.columns, self.verdicts)

    @cached_property
    def frames(self) -> list[LongerFrames]:
        """What slow ones ran longer."""
        return longer_frames(self.scope, self.columns, self.verdicts, self.parts)


@kept
def report_iterations(scope: Scope) -> IterationReport | None:
    """Judge the iterations of ``scope``; None where there are none."""
    if not len(scope.profile.iterations):
        return None
    every = measure_times(scope)
    times = every.take(every.slowest)
    return IterationReport(scope, times, judge(times.period))


def iterations_section(scope: Scope) -> Section:
    """Tell the iterations of a trace: those of the slowest rank, and all of them."""
    found = report_iterations(scope)
    if found is None:
        why = "no iterations: name a range by --iteration"
        return Section(NAME, TITLE, why=why, how=_candidates(scope))
    columns, verdicts = found.columns, found.verdicts
    words, many = _verdict_words(verdicts), len(unique(found.every.process)) > 1
    rows = _rows(scope, columns, words, many)
    return Section(
        NAME,
        TITLE,
        facts=_facts(scope, found),
        tables=(
            Table.of("statistics", "after the warm-up", _STATISTICS, _statistics(verdicts)),
            Table.of("rows", "", _COLUMNS, rows, _places(columns)),
            Table.of("why_slow", "why they are slow", _WHY, _why_rows(found)),
            Table.of(
                "slow_frames",
                "what they ran longer",
                _FRAMES,
                _frame_rows(scope, found),
                _frame_places(scope, found),
            ),
            *_more_tables(scope, found.every, many),
        ),
        notes=tuple(_notes(verdicts)),
    )


def _candidates(scope: Scope) -> str:
    whole = scope.profile.gpu_time
    told = [
        f"--iteration {shlex.quote(one.pattern)} has "
        f"{format_count(one.number)} with {format_percent(one.gpu_time, whole)} of the GPU time"
        for one in iteration_candidates(scope.profile, _CANDIDATES)
    ]
    return ", ".join(told) or "no range repeats"


def _verdict_words(verdicts: Verdicts) -> list[str | None]:
    marks = zip(verdicts.warm_up.tolist(), verdicts.slow.tolist(), strict=True)
    return ["warm-up" if first else "slow" if slow else None for first, slow in marks]


def _rows(
    scope: Scope, columns: IterationColumns, words: Iterable[str | None], many: bool
) -> Iterator[tuple[Value, ...]]:
    """The cells of ``_COLUMNS``; ranks only where there are ``many``."""
    size, timed = len(columns), columns.window > 0
    work = (columns.gpu_time, columns.kernels, columns.launches, columns.launch_ns)
    gpu_time, *launched = (_known(one, len(scope.profile.activities) > 0) for one in work)
    calls = (columns.syncs, columns.allocs, columns.collection_ns)
    cells: tuple[list[Any], ...] = (
        gpu_time,
        *(_known(one, timed) for one in (columns.busy, columns.span)),
        *launched,
        *([None] * size if one is None else one.tolist() for one in calls),
        columns.start.tolist(),
    )
    head = (columns.number.tolist(), words, columns.period.tolist(), columns.host.tolist())
    return zip(*head, *cells, _rank_cells(scope, columns, many), strict=True)


def _rank_cells(scope: Scope, columns: IterationColumns, many: bool) -> list[str | None]:
    labels = process_labels(scope.profile)
    return [labels[at] if many else None for at in columns.process.tolist()]


def _known(column: I8, known: Any) -> list[int | None]:
    """The cells of a column, None where they are not known."""
    marks: list[Any] = np.broadcast_to(known, column.shape).tolist()
    return [value if there else None for value, there in zip(column.tolist(), marks, strict=True)]


def _places(columns: IterationColumns) -> list[Place]:
    until = columns.start + columns.period
    return [Place(window=pair) for pair in zip(columns.start.tolist(), until.tolist(), strict=True)]


def _more_tables(scope: Scope, every: IterationColumns, many: bool) -> Iterator[Table]:
    if every.window.any():
        yield _parts_table(scope, every, many)
    if many:
        yield _ranks_table(scope, every)


def _parts_table(scope: Scope, every: IterationColumns, many: bool) -> Table:
    """Where the time on the GPUs went, of all ranks; parts that there are not are left out."""
    timed = every.window > 0
    parts = [_known(part, timed & part.any()) for part in every.parts]
    columns = (every.number.tolist(), _rank_cells(scope, every, many), _known(every.window, timed))
    rows = zip(*columns, *parts, strict=True)
    return Table.of("parts", "where the time of the GPUs went", _PART_COLUMNS, rows)


def _ranks_table(scope: Scope, every: IterationColumns) -> Table:
    rows = _rows(scope, every, [None] * len(every), many=True)
    cells = ((row[0], row[-1], *row[2:-1]) for row in rows)
    return Table.of("ranks", "of each rank", _RANK_COLUMNS, cells, _places(every))


def _statistics(verdicts: Verdicts) -> Iterator[tuple[Value, ...]]:
    found, trend = verdicts.statistics, verdicts.trend
    if found is not None and found.count > 1:
        yield (
            found.count,
            *(found.p50, found.p95, found.p99, found.maximum, round(found.mean)),
            verdicts.deviation,
            round(trend.slope) if trend else None,
            round(100 * trend.chance, 3) if trend else None,
        )


def _facts(scope: Scope, found: IterationReport) -> dict[str, object]:
    columns, verdicts = found.columns, found.verdicts
    return {
        "source": scope.profile.iterations.source,
        "count": len(columns),
        "warm_up": columns.number[verdicts.warm_up].tolist(),
        "slow": columns.number[verdicts.slow].tolist(),
        "slow_from_ns": verdicts.limit,
    }


def _why_rows(found: IterationReport) -> Iterator[tuple[Value, ...]]:
    numbers = found.columns.number[found.parts.row].tolist()
    for number, part, longer, excess in zip(
        numbers, *(column.tolist() for column in found.parts[1:]), strict=True
    ):
        yield number, excess, EXPLAINING[part], longer, share(longer, excess)


def _frame_rows(scope: Scope, found: IterationReport) -> Iterator[tuple[Value, ...]]:
    text = labels_without_numbers(scope).text
    for one in found.frames:
        number = int(found.columns.number[one.row])
        inside = text[one.range] if one.range >= 0 else None
        yield number, text[one.kernel], inside, one.longer, one.number, one.usual


def _frame_places(scope: Scope, found: IterationReport) -> list[Place | None]:
    return [frame_place(scope, "kernel", one.kernel) for one in found.frames]


def _notes(verdicts: Verdicts) -> Iterator[str]:
    if verdicts.limit is None:
        yield "fewer than 5 iterations: none is called slow"
    elif not has_statistics():
        yield HOW
