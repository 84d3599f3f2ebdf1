"""Take samples of the heaviest nodes of a comparison: by run, by iteration, by activity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import F8, I8, Bool, Column, order_by, sum_by, taken, unique, unique_rows
from flame.core.compare.basis import periods_of
from flame.core.compare.changes import Changes
from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import NEW, KeptRun
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, Activities
from flame.core.model.profile import Profile
from flame.core.projection.project import shown_profile
from flame.core.projection.weights import Weights, row_indices
from flame.core.report.measures.configurations import Configuration, configurations
from flame.core.report.scope import weights_of

MOST_NODES = 500
_MOST_CELLS = 1 << 23
"""Sums that are made at once: of very many iterations fewer nodes are looked at."""

STRETCHES = 32
"""Parts of a recording, with equally many activities each, that are looked at as one."""


@dataclass(frozen=True, eq=False)
class HeaviestNodes:
    """Choose the heaviest nodes of a union tree, heaviest first: ``node`` i8[k].

    Of a chain of nodes that hold the same it is the first. ``place`` i8[nodes] says which of them
    each node of the tree is, itself or by its chain; -1: none.
    """

    node: I8
    end: I8
    place: I8

    @classmethod
    def of(cls, comparison: Comparison, most: int = MOST_NODES) -> HeaviestNodes:
        """Choose up to ``most`` nodes, by their part of the side on which that is larger."""
        union = comparison.union
        first = _first_of_chains(union.own, union.own_count, union.tree.end)
        heads = unique(first)
        weight = _largest_part(comparison.changes)[heads]
        node = heads[np.argsort(-weight, kind="stable")[:most]]
        place = np.full(len(union), NONE, np.int64)
        place[node] = np.arange(len(node))
        return cls(node, union.tree.end[node].astype(np.int64), place[first])

    def sums(self, row: Column, node: Column, values: Column, rows: int) -> Column:
        """Sum ``values`` that end at ``node`` (of the tree) by ``row`` and node: [rows, k].

        Exact for int64, f8 otherwise.
        """
        bounds = unique(np.concatenate([self.node, self.end]))
        size = len(bounds) + 1
        segment = np.repeat(np.arange(size), np.diff(bounds, prepend=0, append=len(self.place)))
        key = row * size + segment[node]
        exact = values.dtype == np.int64
        own = (
            sum_by(key, values, rows * size)
            if exact
            else np.bincount(key, values, minlength=rows * size)
        )
        sums = np.cumsum(own.reshape(rows, size), axis=1)
        low, high = (np.searchsorted(bounds, at) for at in (self.node, self.end))
        found: Column = sums[:, high] - sums[:, low]
        return found


def _first_of_chains(own: I8, own_count: I8, end: Column) -> I8:
    """The first node of the chain that each is in: all but the last have one child and no more."""
    alike = (own[:, :-1] == 0).all(axis=0) & (own_count[:, :-1] == 0).all(axis=0)
    goes_on = np.append(False, alike & (end[1:] == end[:-1]))
    first: I8 = np.maximum.accumulate(np.where(goes_on, 0, np.arange(len(end))))
    return first


def _largest_part(changes: Changes) -> F8:
    """The part of its side that each node is, on the side where that is larger, f8[nodes]."""
    parts = [side.total / max(int(side.total[0]), 1) for side in (changes.base, changes.new)]
    return np.maximum(*parts)


class Samples(NamedTuple):
    """Hold what was measured of nodes again and again on each side, f8[k, n].

    ``complete`` bool[k] marks the nodes that all they have is in.
    """

    base: F8
    new: F8
    complete: Bool


def run_samples(comparison: Comparison, nodes: HeaviestNodes) -> Samples:
    """Take the value of each run on the basis of the comparison."""
    union, basis = comparison.union, comparison.basis
    values = union.total[:, nodes.node].astype(np.float64)
    if basis.kind == "activity":
        divisor: Column = union.count[:, nodes.node]
    elif basis.kind == "share":
        divisor = union.total[:, :1] / 100
    else:
        divisor = np.array(basis.divisor)[:, None]
    found = np.divide(values, divisor, out=np.zeros(values.shape), where=divisor > 0)
    return _by_side(comparison, [one[:, None] for one in found], np.ones(len(nodes.node), bool))


def _by_side(comparison: Comparison, of_runs: Sequence[Column], complete: Bool) -> Samples:
    """Join what runs have, [k, n] each."""
    split = len(comparison.sides.base)
    base, new = (
        np.concatenate(some, axis=1).astype(np.float64)
        for some in (of_runs[:split], of_runs[split:])
    )
    return Samples(base, new, complete)


# Iterations


def nodes_by_step(comparison: Comparison) -> HeaviestNodes:
    """Choose the nodes of which there is room for sums by iteration."""
    steps = max(max(comparison.basis.divisor), 1)
    return HeaviestNodes.of(comparison, max(min(MOST_NODES, int(_MOST_CELLS / 2 / steps)), 1))


def step_samples(comparison: Comparison, nodes: HeaviestNodes) -> Samples:
    """Take what each iteration that is compared launched, in order of time."""
    found, complete = [], np.ones(len(nodes.node), bool)
    for at, run in enumerate(comparison.sides.runs):
        number = periods_of(run, comparison.selection).number
        if isinstance(run, KeptRun):
            launched = _kept_sums(comparison, at, run)
        else:
            launched = _launched_in(run.profile, compared_rows(comparison, at), number)
        sums = nodes.sums(*launched, len(number))
        complete &= sums.sum(axis=0) == comparison.union.total[at, nodes.node]
        found.append(sums.T)
    return _by_side(comparison, found, complete)


def _kept_sums(comparison: Comparison, at: int, run: KeptRun) -> tuple[I8, I8, I8]:
    """(place of the iteration, node, value) of what is kept of groups that are compared."""
    if run.steps is None:
        none = np.zeros(0, np.int64)
        return none, none, none
    step, group, total = (
        np.array(column, np.int64) for column in (run.steps.step, run.steps.group, run.steps.total)
    )
    own = comparison.trees[at].node_of_group[group]
    rows = np.flatnonzero(own >= 0)
    return step[rows], comparison.union.node[at][own[rows]].astype(np.int64), total[rows]


def _launched_in(profile: Profile, rows: ComparedRows, number: I8) -> tuple[I8, I8, I8]:
    """(place in ``number``, node, value) of the rows launched in one of these iterations."""
    of = taken(profile.iterations.of(rows.table), rows.row)
    place = profile.iterations.places_among(number, of)
    inside = np.flatnonzero(place >= 0)
    if len(inside) == len(place):
        return place, rows.node, rows.value
    return place[inside], rows.node[inside], rows.value[inside]


# Activities


class ComparedRows(NamedTuple):
    """Hold the rows of a run that are compared: ``row`` of ``table``, ``node`` of the union.

    i8[n] each; ``value`` is that of the metric.
    """

    table: Activities
    row: I8
    node: I8
    value: I8


def compared_rows(comparison: Comparison, at: int) -> ComparedRows:
    """Find the rows of the run ``at`` that place, and where they end."""
    tree = comparison.trees[at]
    table, row = _table_and_rows(comparison, at)
    node_of_group = np.append(comparison.union.node[at], NONE)[tree.node_of_group]
    node = node_of_group.astype(np.int64, copy=False)[taken(table.groups.of_row, row)]
    if node.min(initial=0) < 0:
        some = np.flatnonzero(node >= 0)
        row, node = row[some], node[some]
    return ComparedRows(table, row, node, taken(tree.metric.values(table), row))


def compared_weights(comparison: Comparison, at: int) -> tuple[Activities, Weights]:
    """Sum the GPU time and the number of the rows that `compared_rows` finds by group."""
    table, rows = _table_and_rows(comparison, at)
    weights, compared = weights_of(table, rows), comparison.trees[at].node_of_group >= 0
    return table, Weights(*(np.where(compared, part, 0) for part in weights))


def _table_and_rows(comparison: Comparison, at: int) -> tuple[Activities, I8]:
    """The table of the run ``at`` that place, and its rows that pass the filters of rows."""
    run = comparison.sides.runs[at]
    selection = run.selection(comparison.selection)
    profile = shown_profile(run.profile, selection)
    table = profile.table(comparison.trees[at].metric)
    chosen = row_indices(profile, table, selection.where)
    return table, np.arange(len(table)) if chosen is None else chosen


@dataclass(frozen=True, eq=False)
class ActivitySamples:
    """Hold activities of both sides: ``value``, ``node`` of the union tree, i8[n], ``is_new``.

    Those of one ``stratum`` (0 to ``strata`` - 1) ended at one node, are of one kernel, and had one
    configuration, or as many bytes. ``stretch`` is the part of its recording that each is in.
    """

    value: I8
    node: I8
    is_new: Bool
    stratum: I8
    strata: int
    stretch: I8


def activity_samples(comparison: Comparison) -> ActivitySamples:
    """Take all activities that are compared; reads how they were launched from the files."""
    runs = [compared_rows(comparison, at) for at in range(len(comparison.sides.runs))]
    profiles = [run.profile for run in comparison.sides.runs]
    kernels = _common_kernels(profiles, runs)
    sizes = _launched_with(profiles, runs)
    columns = [
        np.concatenate(parts)
        for parts in ([one.node for one in runs], kernels, *zip(*sizes, strict=True))
    ]
    first, stratum = unique_rows(columns)
    lengths = [len(one.row) for one in runs]
    is_new = np.repeat(np.array(comparison.sides.side_of_run) == NEW, lengths)
    return ActivitySamples(
        np.concatenate([one.value for one in runs]),
        columns[0],
        is_new,
        stratum,
        len(first),
        np.concatenate([_stretches(one) + at * STRETCHES for at, one in enumerate(runs)]),
    )


def _stretches(rows: ComparedRows) -> I8:
    """The part of the recording that each of ``rows`` is in, 0 to `STRETCHES` - 1."""
    size = len(rows.row)
    order, found = order_by([rows.table.start[rows.row]]), np.empty(size, np.int64)
    found[order] = np.arange(size) * STRETCHES // max(size, 1)
    return found


def _common_kernels(profiles: Sequence[Profile], runs: Sequence[ComparedRows]) -> list[I8]:
    """Number what ran by its full name, the same in all runs, i8[n] each."""
    known, found = dict[tuple[object, ...], int](), []
    for profile, rows in zip(profiles, runs, strict=True):
        frame = rows.table.frame[rows.row]
        number = np.full(len(profile.frames) + 1, NONE, np.int64)
        for one in unique(frame[frame >= 0]).tolist():
            what = profile.frames[one]
            name = what.get("demangled") or what.name
            number[one] = known.setdefault((what.kind, name), len(known))
        found.append(number[frame])
    return found


def _launched_with(
    profiles: Sequence[Profile], runs: Sequence[ComparedRows]
) -> Iterator[tuple[I8, I8]]:
    """The configuration, numbered the same in all runs, and the bytes of each row; -1 unknown."""
    known = dict[Configuration, int]()
    launches = [profile.launches for profile in profiles]
    for profile, rows in zip(profiles, runs, strict=True):
        if profile.launches is None or None in launches:
            nothing = np.full(len(rows.row), NONE, np.int64)
            yield nothing, nothing
            continue
        different, of_row = configurations(profile)
        number = [known.setdefault(one, len(known)) for one in different]
        yield np.array([*number, NONE])[of_row[rows.row]], profile.launches.bytes[rows.row]
