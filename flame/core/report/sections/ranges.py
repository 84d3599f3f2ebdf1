"""Tell the time of ranges and operators: on the host, and on the GPUs below them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.analysis.frame_totals import FrameTotals
from flame.core.columns import I4, I8, Bool, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.report.measures.launching_calls import in_launch_order
from flame.core.report.measures.range_styles import styles_of
from flame.core.report.measures.range_work import RangeWork, range_work, shown_ranges
from flame.core.report.measures.times import ratios, shares
from flame.core.report.range_instances import RangeInstances, no_pieces
from flame.core.report.scope import Scope
from flame.core.report.sections.range_events import event_tables
from flame.core.report.table import Place, Section, Table, TableColumn, Value, picked

NAME, TITLE = "ranges", "Ranges and operators"

HEAVY = 5, 1.0
"""A range is heavy on dispatch where its own host time is at least so many times the GPU time that
it launched itself, and at least so many percent of that of all ranges."""


@dataclass(frozen=True, eq=False)
class RangeTimes:
    """Sum up ranges by shown name and domain, i8[n] each, times in ns.

    On the host: ``host`` counts the time of ranges within others of the same name once, ``own`` is
    that in which no range inside was open, ``instances`` are of all of them. On the GPUs, of what
    was launched below: ``gpu``, recursion once, and ``gpu_own``, below no range inside; ``idle`` is
    how long GPUs were empty before. ``projected`` are the spans from the beginning of the first
    activity that an instance launched to the end of the last, of those that launched any.
    """

    frame: I8
    instances: Distributions
    host: I8
    own: I8
    gpu: I8
    gpu_own: I8
    activities: I8
    launches: I8
    idle: I8
    projected: Distributions
    work: RangeWork

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def order(self) -> I8:
        """The places, by GPU time, then by that of the host."""
        order: I8 = np.lexsort((self.frame, -self.host, -self.gpu))
        return order

    @property
    def dispatch_heavy(self) -> Bool:
        """Which take much longer to launch than to run."""
        times, percent = HEAVY
        long = (self.gpu_own > 0) & (self.own >= times * self.gpu_own)
        marks: Bool = long & (100 * self.own >= percent * self.own.sum())
        return marks


def range_times(scope: Scope) -> RangeTimes:
    """Sum up the ranges of ``scope``."""
    shown = shown_ranges(scope)
    found, work = scope.ranges or RangeInstances.of(no_pieces()), range_work(scope, shown)
    frame = unique(np.concatenate([shown[found.frames], work.totals.frame]).astype(np.int64))
    size, place = len(frame), np.searchsorted(frame, shown).astype(np.int32)[found.frame]
    # Worked out first: of a million ranges what that takes is no more there with the rest.
    projected = _projected(scope, found, place, size)

    def below(column: I8) -> I8:
        spread = np.zeros(size, np.int64)
        spread[np.searchsorted(frame, work.totals.frame)] = column
        return spread

    totals: FrameTotals = work.totals
    times = found.times_by(shown)
    return RangeTimes(
        frame,
        distributions(place, found.length, size),
        times.outer[frame],
        times.own[frame],
        gpu=below(totals.total),
        gpu_own=below(totals.own),
        activities=below(totals.count),
        launches=below(work.launches),
        idle=below(work.idle),
        projected=projected,
        work=work._replace(widest=below(work.widest)),
    )


def _projected(scope: Scope, found: RangeInstances, place: I4, size: int) -> Distributions:
    """Summarize what ranges launched, from the beginning of the first to the end of the last."""
    rows = in_launch_order(scope.profile, scope.rows)
    length = found.launched_spans(scope.profile.activities, rows)
    if (nothing := length < 0).any():
        place = np.where(nothing, np.int32(size), place)
    return distributions(place, length, size + 1).first(size)


_COLUMNS = (
    TableColumn("name", "range"),
    TableColumn("domain", "domain"),
    TableColumn("style", "style"),
    TableColumn("count", "number", "count"),
    TableColumn("host_ns", "host", "ns"),
    TableColumn("instances_ns", "", "ns"),
    TableColumn("mean_ns", "", "ns"),
    TableColumn("min_ns", "", "ns"),
    TableColumn("p50_ns", "", "ns"),
    TableColumn("p95_ns", "", "ns"),
    TableColumn("p99_ns", "", "ns"),
    TableColumn("max_ns", "", "ns"),
    TableColumn("own_ns", "", "ns"),
    TableColumn("gpu_ns", "GPU time", "ns"),
    TableColumn("gpu_percent", "of GPU time", "percent"),
    TableColumn("gpu_own_ns", "", "ns"),
    TableColumn("activities", "", "count"),
    TableColumn("launches", "", "count"),
    TableColumn("idle_ns", "", "ns"),
    TableColumn("projected_ns", "projected", "ns"),
    TableColumn("projected_count", "", "count"),
    TableColumn("projected_p50_ns", "", "ns"),
    TableColumn("projected_max_ns", "", "ns"),
    TableColumn("host_per_gpu", "host/GPU", "ratio"),
    TableColumn("is", "is"),
)
_BY_PATH = (
    TableColumn("path", "path"),
    TableColumn("gpu_ns", "GPU time", "ns"),
    TableColumn("gpu_percent", "of GPU time", "percent"),
    TableColumn("gpu_own_ns", "own", "ns"),
    TableColumn("activities", "activities", "count"),
)


def ranges_section(scope: Scope) -> Section:
    """Tell the ranges by name; GPU time is that of what was launched in them."""
    if scope.profile.resolved:
        return Section(NAME, TITLE, why="stacks do not tell ranges from functions")
    found, more = range_times(scope), tuple(event_tables(scope))
    if not len(found) and not more:
        how = "annotate the code with NVTX; nsys: --trace=cuda,nvtx"
        return Section(NAME, TITLE, why="no range was recorded", how=how)
    tables = [_table(scope, found), *more] if len(found) else [*more]
    if "path" in scope.details and len(found):
        tables.append(_by_path(found.work))
    facts = {
        "names": len(found),
        "instances": int(found.instances.count.sum()),
        "host_own_ns": int(found.own.sum()),
        "gpu_ns": int(found.gpu_own.sum()),
        "gpu_time_ns": int(scope.weights.value.sum()),
    }
    return Section(NAME, TITLE, facts, tuple(tables))


def _table(scope: Scope, found: RangeTimes) -> Table:
    frames = [scope.profile.frames[frame] for frame in found.frame.tolist()]
    times, projected = found.instances, found.projected
    styles = styles_of(scope, shown_ranges(scope))
    on_host, on_gpu = times.count > 0, found.activities > 0
    spanned = projected.count > 0
    cells: tuple[Any, ...] = (
        [scope.labels.text[frame] for frame in found.frame.tolist()],
        [frame.get("domain") or None for frame in frames],
        [styles.get(frame) for frame in found.frame.tolist()],
        *(_where(on_host, column) for column in (times.count, found.host, times.total)),
        times.means,
        *(
            _where(on_host, column)
            for column in (times.minimum, times.p50, times.p95, times.p99, times.maximum, found.own)
        ),
        found.gpu,
        shares(found.gpu, int(scope.weights.value.sum())),
        found.gpu_own,
        found.activities,
        found.launches,
        found.idle,
        *(
            _where(spanned, column)
            for column in (projected.total, projected.count, projected.p50, projected.maximum)
        ),
        ratios(found.own, found.gpu_own),
        _words(found, [bool(frame.get("captured")) for frame in frames]),
    )
    order = found.order
    places = [_place(found.work, at) if on_gpu[at] else None for at in order.tolist()]
    return Table.of("rows", "", _COLUMNS, picked(order, *cells), places)


def _where(known: Bool, column: I8) -> list[Value]:
    pairs = zip(column.tolist(), known.tolist(), strict=True)
    return [value if one else None for value, one in pairs]


def _words(found: RangeTimes, captured: list[bool]) -> list[str | None]:
    heavy = found.dispatch_heavy.tolist()
    return [
        "captured" if one else "dispatch-heavy" if marked else None
        for one, marked in zip(captured, heavy, strict=True)
    ]


def _place(work: RangeWork, at: int) -> Place:
    return Place(("nvtx", "kernel"), work.tree.names(int(work.widest[at])))


def _by_path(work: RangeWork) -> Table:
    """Sum up what ran by the path of ranges above it."""
    tree = work.tree
    paths = [tree.names(node) for node in range(1, len(tree))]
    rows = slice(1, None)
    percent = shares(tree.total[rows], int(tree.total[0]))
    names = [" / ".join(path) for path in paths]
    cells = (names, tree.total[rows], percent, tree.own[rows], tree.count[rows])
    order = np.argsort(-tree.total[rows], kind="stable")
    places = [Place(("nvtx", "kernel"), paths[at]) for at in order.tolist()]
    return Table.of("by_path", "by path", _BY_PATH, picked(order, *cells), places)
