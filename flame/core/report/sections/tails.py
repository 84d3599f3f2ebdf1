"""Tell which of many equal launches of a kernel took far longer than is usual."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flame.core.analysis.distribution import Distributions, distributions
from flame.core.columns import I4, I8, Bool, Column, sum_above, taken, unique, unique_rows
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.report.measures.configurations import Configuration, configurations, dim_text
from flame.core.report.measures.times import ratios, shares
from flame.core.report.range_instances import RangeInstances, no_pieces
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, picked
from flame.core.units import format_counted

NAME, TITLE = "tails", "Slow among equals"

FEWEST = 20
"""Launches of which something is said: of fewer the highest percentiles are single values."""

RARE = 20
"""At most one in so many is slow, where there is a tail: more are another kind of work."""

RARE_AND_SLOW = 0.5, 2.0
"""Least score, and share of the GPU time in percent below which nobody looks by themselves."""


@dataclass(frozen=True, eq=False)
class Tails:
    """Compare values with their like, by group, i8[n] each.

    ``slow`` counts those above 1.5 times the median of their group, ``excess`` sums up what these
    are above it.
    """

    times: Distributions
    slow: I8
    excess: I8

    @classmethod
    def of(cls, group: Column, values: I8, size: int) -> Tails:
        """Compare the ``values`` of each ``group``."""
        return cls.beyond(distributions(group, values, size), group, values)

    @classmethod
    def beyond(cls, times: Distributions, group: Column, values: I8) -> Tails:
        """Compare the ``values`` of each ``group``, which are summed up as ``times``."""
        number, total = sum_above(group, values, times.p50 + times.p50 // 2)
        return cls(times, number, total - number * times.p50)

    def take(self, groups: I8) -> Tails:
        """Take some of the groups."""
        times = Distributions(*(column[groups] for column in vars(self.times).values()))
        return Tails(times, self.slow[groups], self.excess[groups])

    @property
    def enough(self) -> Bool:
        """Which have enough values to tell."""
        return self.times.count >= FEWEST

    @property
    def mixed(self) -> Bool:
        """Which have so many slow ones that these are other work."""
        return self.enough & (self.slow * RARE > self.times.count)

    @property
    def tail(self) -> Bool:
        """Which have a tail: the worst of a hundred is slow, and slow ones are rare."""
        return self.enough & ~self.mixed & (2 * self.times.p99 > 3 * self.times.p50)

    @property
    def order(self) -> I8:
        """The places of those with enough values: by excess, mixed ones last."""
        order: I8 = np.lexsort((-self.times.total, -self.excess, self.mixed))
        return order[self.enough[order]]


class SlowLaunches(NamedTuple):
    """Hold launches that took longer than 1.5 times the median of their ``group``, i8[n] each.

    ``row`` is that of `Profile.activities`, ``excess`` what it took above the median, ns.
    """

    row: I8
    group: I8
    excess: I8

    def where(self, mask: Bool) -> SlowLaunches:
        """Choose some."""
        return SlowLaunches(*(column[mask] for column in self))


@dataclass(frozen=True, eq=False)
class KernelTails:
    """Compare launches that did the same work.

    ``rows`` i8[n] is an activity of each group, ``configuration`` i4[n] its place in
    ``configurations``. Where that is not known (-1) they are compared below the same ranges
    instead, which says less: their ``tails`` may be mixed work. ``slow`` are those of tails.
    """

    tails: Tails
    rows: I8
    configuration: I4
    configurations: tuple[Configuration, ...]
    slow: SlowLaunches

    @property
    def tail(self) -> Bool:
        """Which have a tail for sure."""
        return self.tails.tail & (self.configuration >= 0)


@kept
def kernel_tails(scope: Scope) -> KernelTails:
    """Compare the kernels of ``scope`` by shown and full name and launch configuration."""
    rows, table = scope.rows_of(Kind.KERNEL), scope.profile.activities
    found = configurations(scope.profile)
    config, duration = taken(found.of_row, rows), taken(table.duration, rows)
    keys: list[Column] = [_full_names(scope)[taken(table.groups.of_row, rows)], config]
    if (unknown := config < 0).any():
        keys.append(np.where(unknown, table.nvtx[rows], 0))
    first, group = unique_rows(keys)
    tails = Tails.of(group, duration, len(first))
    slow = _slow(tails, rows, group, duration)
    return KernelTails(tails, rows[first], config[first], found.different, slow)


def _slow(tails: Tails, rows: I8, group: I8, values: I8) -> SlowLaunches:
    """Find the slow ones of the groups with a tail."""
    some = np.flatnonzero(tails.tail[group])
    above = values[some] - tails.times.p50[group[some]]
    found = SlowLaunches(rows[some], group[some], above)
    return found.where(2 * values[some] > 3 * tails.times.p50[group[some]])


def _full_names(scope: Scope) -> I4:
    """Number the kernels by shown name and by name with all template arguments, i4[groups].

    That is of the groups of kernels that pass; of others the number says nothing.
    """
    groups, number = scope.profile.activities.groups, dict[tuple[int, str], int]()
    passing = (scope.own_weights.activities > 0) & (groups.kind == Kind.KERNEL)
    of_frame = np.zeros(len(scope.profile.frames), np.int32)
    for at in unique(groups.frame[passing]).tolist():
        kernel = scope.profile.frames[at]
        key = int(scope.labels.shown[at]), kernel.get("demangled") or kernel.name
        of_frame[at] = number.setdefault(key, len(number))
    found: I4 = np.append(of_frame, np.int32(0))[groups.frame]
    return found


_NUMBERS = (
    TableColumn("count", "number", "count"),
    TableColumn("ns", "", "ns"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("p95_ns", "", "ns"),
    TableColumn("p99_ns", "", "ns"),
    TableColumn("max_ns", "", "ns"),
    TableColumn("tail", "p99/p50", "ratio"),
    TableColumn("worst", "", "ratio"),
    TableColumn("slow", "slow", "count"),
    TableColumn("excess_ns", "excess", "ns"),
    TableColumn("score_percent", "score", "percent"),
    TableColumn("is", "is"),
)
_COLUMNS = (
    TableColumn("name", "kernel"),
    TableColumn("full_name", ""),
    TableColumn("grid", "grid"),
    TableColumn("block", ""),
    TableColumn("shared_bytes", "", "bytes"),
    *_NUMBERS,
)


def tails_section(scope: Scope) -> Section:
    """Tell the groups of kernels with enough launches, by what their slow ones cost."""
    if not len(scope.rows_of(Kind.KERNEL)):
        return Section(NAME, TITLE, why="no kernel was recorded")
    found = kernel_tails(scope)
    whole = int(scope.weights.value.sum())
    unknown = int((found.configuration < 0)[found.tails.enough].sum())
    some = int(found.tails.enough.sum()) > unknown
    notes = ([_SCORE, _verdict(found)] if some or not unknown else []) + (
        [_UNKNOWN] if unknown else []
    )
    facts = {
        "groups": int(found.tails.enough.sum()),
        "tails": int(found.tail.sum()),
        "mixed": int(found.tails.mixed.sum()),
        "without_configuration": unknown,
        "gpu_time_ns": whole,
    }
    tables = (_table(scope, found, whole), _call_table(scope), _range_table(scope))
    return Section(NAME, TITLE, facts, tables, tuple(notes))


def _verdict(found: KernelTails) -> str:
    known = found.configuration >= 0
    groups = format_counted(int((found.tails.enough & known).sum()), "group has", "groups have")
    tails, mixed = int(found.tail.sum()), int((found.tails.mixed & known).sum())
    return (
        f"{groups} at least {FEWEST} launches of a kernel in one configuration: {tails} with a"
        f" tail, {mixed} of mixed work"
    )


_SCORE = "excess is the time above the median of slow ones; score is its share of the GPU time"
_UNKNOWN = (
    "shapes were not recorded of all kernels: those without are compared below the same ranges,"
    " where mixed work cannot be told from a tail"
)


def _table(scope: Scope, found: KernelTails, whole: int) -> Table:
    profile, tails = scope.profile, found.tails
    frames = profile.activities.frame[found.rows].tolist()
    names = [scope.labels.text[frame] for frame in frames]
    known = found.configurations
    config = [known[at] if at >= 0 else None for at in found.configuration.tolist()]
    cells = (
        names,
        [profile.frames[frame].get("demangled") or profile.frames[frame].name for frame in frames],
        [one and dim_text(one.grid) for one in config],
        [one and dim_text(one.block) for one in config],
        [one and one.shared for one in config],
        *_cells(tails),
        shares(tails.excess, whole),
        _words(found, whole),
    )
    order = tails.order
    places = [Place(("kernel",), (names[at],)) for at in order.tolist()]
    return Table.of("rows", "kernels", _COLUMNS, picked(order, *cells), places)


_OTHERS = (TableColumn("name", "name"), *_NUMBERS[:-2])


def _call_table(scope: Scope) -> Table:
    calls = scope.calls
    if calls is None:
        none = np.zeros(0, np.int64)
        return _other_table(scope, "calls", "API calls", none, Tails.of(none, none, 0))
    shown, place, times = calls.by_name
    tails = Tails.beyond(times, place, calls.length)
    return _other_table(scope, "calls", "API calls", shown, tails)


def _range_table(scope: Scope) -> Table:
    """Compare ranges of equal name, shapes and details, each of which is a frame of its own."""
    ranges = scope.ranges or RangeInstances.of(no_pieces())
    tails = Tails.of(ranges.frame, ranges.length, len(ranges.counts)).take(ranges.frames)
    return _other_table(scope, "ranges", "ranges of equal shapes", ranges.frames, tails)


def _other_table(scope: Scope, key: str, title: str, frames: Column, tails: Tails) -> Table:
    """Tell what took time on the host, by frame."""
    names = [scope.labels.text[one] for one in frames.tolist()]
    return Table.of(key, title, _OTHERS, picked(tails.order, names, *_cells(tails)))


def _cells(tails: Tails) -> tuple[Any, ...]:
    """The cells of `_NUMBERS` but for the last two."""
    return (
        tails.times.count,
        tails.times.total,
        tails.times.p50,
        tails.times.p95,
        tails.times.p99,
        tails.times.maximum,
        ratios(tails.times.p99, tails.times.p50),
        ratios(tails.times.maximum, tails.times.p50),
        tails.slow,
        tails.excess,
    )


def _words(found: KernelTails, whole: int) -> list[str]:
    """What each group is: ``tail``, ``rare and slow``, ``mixed`` work, or nothing of these."""
    tails, (score, most) = found.tails, RARE_AND_SLOW
    costs = 100 * tails.excess >= score * whole
    words = np.select(
        [
            tails.enough & (found.configuration < 0),
            tails.mixed,
            found.tail & costs & (100 * tails.times.total < most * whole),
            found.tail,
        ],
        ["not known", "mixed", "rare and slow", "tail"],
        "",
    )
    return [str(word) for word in words]
