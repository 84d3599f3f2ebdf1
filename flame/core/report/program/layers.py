"""Compare the layers of a model: ranges and modules whose names differ in one index alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, distinct, order_by, run_starts, sum_by
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import NONE, ThreadPieces
from flame.core.model.frames import FrameTable, Kind
from flame.core.model.stacks import StackBuilder, StackTable
from flame.core.names.numbers import STAR, split_numbers
from flame.core.names.rename import NN_MODULE, fold_indices, fold_module
from flame.core.report.host.host_time import HostTime
from flame.core.report.measures.launching_calls import launches_by_group
from flame.core.report.scope import Scope
from flame.core.report.table import Place, Section, Table, TableColumn, Value, share

NAME, TITLE = "layers", "How the layers of the model compare"

_FAMILIES = (
    TableColumn("layers", "layers"),
    TableColumn("within", "within"),
    TableColumn("number", "number", "count"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
    TableColumn("min_ns", "least", "ns"),
    TableColumn("median_ns", "median", "ns"),
    TableColumn("max_ns", "most", "ns"),
    TableColumn("spread", "most / median", "ratio"),
    TableColumn("equal_counts", "equal work"),
)
_ROWS = (
    TableColumn("layer", "layer"),
    TableColumn("within", "within"),
    TableColumn("index", "index", "number"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("activities", "activities", "count"),
    TableColumn("launches", "launches", "count"),
    TableColumn("host_ns", "host", "ns"),
)


@dataclass(frozen=True, eq=False)
class Layers:
    """Hold layers by family and index; i8[n] each.

    A ``family`` are those of one name but for the index, within the same ranges and modules, whose
    numbers do not count. ``gpu_time``, ``activities`` and ``launches`` are of what passes and was
    launched below, ``host`` is how long threads were in it. ``stack`` is one of its stacks, of
    `Activities.stacks`; ``of_stack`` i8[stacks] is the layer that each ends with, -1: none.
    ``names`` and ``within`` are by family.
    """

    family: I8
    index: I8
    gpu_time: I8
    activities: I8
    launches: I8
    host: I8
    stack: I8
    of_stack: I8
    names: tuple[str, ...]
    within: tuple[str, ...]


class LayerFamilies(NamedTuple):
    """Sum up families of layers, i8[n], most GPU time first; ``family`` is as in `Layers`.

    ``same`` tells whether all have as many activities.
    """

    family: I8
    number: I8
    total: I8
    least: I8
    median: I8
    most: I8
    same: Bool


@kept
def measure_layers(scope: Scope) -> Layers:
    """Sum up the layers of what passes; families of a single index are left out."""
    profile = scope.profile
    table = profile.activities
    names = _IndexedNames.of(profile.frames)
    paths = _Paths(names)
    stack_path = paths.of_tree(table.stacks.depth, table.stacks.parent, table.stacks.frame)
    keys, layer_of = _layers_of(names, stack_path, table.stacks.frame)
    sums = _sums(scope, table.stacks, layer_of, len(keys))
    host = _host_times(scope, names, paths, keys)
    stack = np.zeros(len(keys), np.int64)
    rows = np.flatnonzero(layer_of >= 0)
    stack[layer_of[rows[::-1]]] = rows[::-1]
    family, index = keys >> 32, keys & 0xFFFFFFFF
    kept = (np.bincount(family, sums[1] > 0) > 1)[family] & (sums[1] > 0) if len(keys) else keys > 0
    used, place = distinct(family[kept])
    renumbered = np.append(np.where(kept, np.cumsum(kept) - 1, NONE), NONE)
    gpu_time, activities, launches = (column[kept] for column in sums)
    described = [paths.describe(at) for at in used.tolist()]
    return Layers(
        place,
        index[kept],
        gpu_time,
        activities,
        launches,
        host[kept],
        stack[kept],
        renumbered[layer_of],
        tuple(name for name, _ in described),
        tuple(above for _, above in described),
    )


def stacks_below(scope: Scope, layers: Layers, family: int) -> I8:
    """Find the layer of ``family`` that each stack of ``scope`` is below, i8[stacks]; -1: none."""
    stacks = scope.profile.activities.stacks
    mine = (layers.of_stack >= 0) & (np.append(layers.family, NONE)[layers.of_stack] == family)
    below = np.append(np.where(mine, layers.of_stack, NONE), NONE)
    for rows in stacks.by_depth():
        below[rows] = np.where(below[rows] < 0, below[stacks.parent[rows]], below[rows])
    return below[:-1]


def sum_families(layers: Layers) -> LayerFamilies:
    """Compare the layers of each family."""
    order = np.lexsort((layers.gpu_time, layers.family))
    first = run_starts(layers.family[order])
    size = np.diff(np.append(first, len(order)))
    ordered, counts = layers.gpu_time[order], layers.activities[order]
    total = sum_by(layers.family, layers.gpu_time, len(first))
    if not len(first):
        return LayerFamilies(first, size, total, first, first, first, first > 0)
    same = np.minimum.reduceat(counts, first) == np.maximum.reduceat(counts, first)
    best = np.argsort(-total, kind="stable")
    first, size, total = first[best], size[best], total[best]
    least, median = ordered[first], ordered[first + (size + 1) // 2 - 1]
    return LayerFamilies(best, size, total, least, median, ordered[first + size - 1], same[best])


# Names


@dataclass(frozen=True, eq=False)
class _IndexedNames:
    """Names of ranges and modules by frame: without all numbers, and of layers their index.

    ``alike`` i4[frames] numbers ``texts``, -1 for all other frames; of a layer it is that without
    its index alone. ``index`` i8[frames], -1 where it is no layer.
    """

    alike: I4
    index: I8
    texts: tuple[str, ...]

    @cached_property
    def is_layer(self) -> Bool:
        """Which frames are layers, bool[frames]."""
        return self.index >= 0

    @classmethod
    def of(cls, frames: FrameTable) -> _IndexedNames:
        known: dict[tuple[str, str], int] = {}
        indexed = cache(_indexed)  # frames of one name differ in shapes and details
        alike = np.full(len(frames) + 1, NONE, np.int32)
        index = np.full(len(frames) + 1, NONE, np.int64)
        for at in np.flatnonzero(np.isin(frames.kind, (Kind.NVTX, Kind.PYTHON))).tolist():
            frame = frames[at]
            if frame.kind == Kind.PYTHON and not frame.name.startswith(NN_MODULE):
                continue
            text, index[at] = indexed(frame.kind, frame.name)
            alike[at] = known.setdefault((text, frame.get("domain")), len(known))
        return cls(alike, index, tuple(text for text, _ in known))


def _indexed(kind: Kind, name: str) -> tuple[str, int]:
    """The ``name`` of a frame without its index, and that; -1 where it has none, or several."""
    fold = fold_module if kind == Kind.PYTHON else fold_indices
    folded = fold(name)
    if folded == name or folded.count(STAR) != name.count(STAR) + 1:
        return STAR.join(split_numbers(folded).texts), NONE
    before, _, after = folded.partition(STAR)
    if not name.startswith(before):  # a star of its own stands before it
        return folded, NONE
    number = name[len(before) : len(name) - len(after)]
    return folded, int(number) if number.isascii() and number.isdigit() else NONE


class _Paths:
    """Numbers paths of ranges and modules, those of equal names without numbers alike."""

    def __init__(self, names: _IndexedNames) -> None:
        self._names = names
        self._builder = StackBuilder()

    def of_tree(self, depth: Column, parent: Column, frame: Column) -> I4:
        """The path of each layer of a tree; parent -1 is the root, which has the least ``depth``.

        Of rows that are no layer, nor around one, it is 0.
        """
        paths = np.zeros(len(parent) + 1, np.int32)
        for rows in _with_all_around(depth, parent, self._names.is_layer[frame]):
            alike = self._names.alike[frame[rows]]
            above = paths[parent[rows]]
            paths[rows] = above
            some = np.flatnonzero(alike >= 0)
            paths[rows[some]] = self._builder.extend(above[some], alike[some])
        return paths[:-1]

    def describe(self, path: int) -> tuple[str, str]:
        """The name at the end of a path, and those above it."""
        *above, name = (self._names.texts[at] for at in self._builder.build().path(path))
        return name.removeprefix(NN_MODULE), " › ".join(
            one.removeprefix(NN_MODULE) for one in above
        )


def _with_all_around(depth: Column, parent: Column, wanted: Bool) -> list[I8]:
    """List the rows that are ``wanted`` (bool[rows]), and all that they are in, depth by depth."""
    rows = np.flatnonzero(wanted)
    while len(rows):
        above = parent[rows]
        above = above[above >= 0]
        above = above[~wanted[above]]
        wanted[above] = True
        rows = above[run_starts(above)]
    rows = np.flatnonzero(wanted)
    rows = rows[order_by([depth[rows]])]
    bounds = [*run_starts(depth[rows]).tolist(), len(rows)]
    return [rows[low:high] for low, high in pairwise(bounds)]


def _layers_of(names: _IndexedNames, path: I4, frame: Column) -> tuple[I8, I8]:
    """Number the layers, by path and index: (keys, that of each row, -1: it is none)."""
    rows = np.flatnonzero(names.is_layer[frame])
    keys, place = distinct((path[rows].astype(np.int64) << 32) | names.index[frame[rows]])
    found = np.full(len(frame), NONE, np.int64)
    found[rows] = place
    return keys, found


# Sums


def _sums(scope: Scope, stacks: StackTable, layer_of: I8, size: int) -> tuple[I8, I8, I8]:
    """(GPU time, activities, launches) of each of ``size`` layers."""
    table, weights = scope.profile.activities, scope.own_weights
    some = np.flatnonzero(layer_of >= 0)
    sums = []
    for of_group in (*weights, launches_by_group(scope)):
        total = np.zeros(len(stacks), np.int64)
        for column in (table.groups.nvtx, table.groups.python):
            total += sum_by(column, of_group, len(stacks))
        below = _subtree_sums(stacks, total)
        sums.append(sum_by(layer_of[some], below[some], size))
    return sums[0], sums[1], sums[2]


def _subtree_sums(stacks: StackTable, total: I8) -> I8:
    """Sum ``total`` over each stack and all that go on from it."""
    for rows in reversed(list(stacks.by_depth())):
        np.add.at(total, stacks.parent[rows], total[rows])
    return total


def _host_times(scope: Scope, names: _IndexedNames, paths: _Paths, keys: I8) -> I8:
    """How long threads were in each of the layers ``keys``, ns."""
    host, time = np.zeros(len(keys), np.int64), HostTime(scope)
    if not len(keys):
        return host
    for pieces in (scope.profile.ranges, scope.profile.functions):
        if pieces is not None and len(pieces):
            rows, place = _in_layers(names, paths, keys, pieces)
            length = time.within(pieces.thread[rows], pieces.start[rows], pieces.end[rows])
            host += sum_by(place, length, len(keys))
    return host


def _in_layers(
    names: _IndexedNames, paths: _Paths, keys: I8, pieces: ThreadPieces
) -> tuple[I8, I8]:
    """Find the ``pieces`` that are one of the layers ``keys``: their rows, and which they are."""
    path = paths.of_tree(pieces.depth, pieces.parent, pieces.frame)
    rows = np.flatnonzero(names.is_layer[pieces.frame])
    wanted = path[rows].astype(np.int64)
    del path
    wanted <<= 32
    wanted |= names.index[pieces.frame[rows]]
    place = np.searchsorted(keys, wanted)
    np.minimum(place, len(keys) - 1, out=place)
    known = keys[place] == wanted
    return (rows, place) if known.all() else (rows[known], place[known])


# Tables


def layers_section(scope: Scope) -> Section:
    """Tell how the layers of a model compare."""
    if scope.profile.resolved or not len(scope.profile.activities):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    layers = measure_layers(scope)
    families = sum_families(layers)
    if not len(families.family):
        why = "no ranges or modules that differ in the index of a layer"
        return Section(NAME, TITLE, why=why, how="name ranges such as layers.3, or record modules")
    order = _row_order(layers, families)
    places = [layer_place(scope, int(layers.stack[row])) for row in order.tolist()]
    return Section(
        NAME,
        TITLE,
        tables=(
            Table.of("families", "", _FAMILIES, _family_rows(scope, layers, families)),
            Table.of("rows", "each of them", _ROWS, _rows(layers, order), places),
        ),
    )


def _row_order(layers: Layers, families: LayerFamilies) -> I8:
    """The rows, families with most GPU time first, by index."""
    rank = np.argsort(families.family)
    order: I8 = np.lexsort((layers.index, rank[layers.family]))
    return order


def _within(layers: Layers, family: int) -> str | None:
    """What is around a family, where another one has its name."""
    name = layers.names[family]
    return (layers.within[family] or None) if layers.names.count(name) > 1 else None


def _family_rows(
    scope: Scope, layers: Layers, families: LayerFamilies
) -> Iterator[tuple[Value, ...]]:
    whole = int(scope.own_weights.value.sum())
    for at, number, total, least, median, most, same in zip(
        *(column.tolist() for column in families), strict=True
    ):
        spread = round(most / median, 3) if median else None
        yield (
            *(layers.names[at], _within(layers, at), number, total, share(total, whole)),
            *(least, median, most, spread, "yes" if same else "no"),
        )


def _rows(layers: Layers, order: I8) -> Iterator[tuple[Value, ...]]:
    numbers = (layers.gpu_time, layers.activities, layers.launches, layers.host)
    within = [_within(layers, at) for at in range(len(layers.names))]
    has_host = bool(layers.host.any())
    for at, index, *cells in zip(
        layers.family[order].tolist(),
        layers.index[order].tolist(),
        *(column[order].tolist() for column in numbers),
        strict=True,
    ):
        *work, host = cells
        yield layers.names[at], within[at], index, *work, host if has_host else None


def layer_place(scope: Scope, stack: int) -> Place:
    """The path of a stack of ranges or functions."""
    profile, text = scope.profile, scope.labels.text
    frames = profile.activities.stacks.path(stack)
    level = "nvtx" if profile.frames[frames[-1]].kind == Kind.NVTX else "python"
    return Place((level, "kernel"), tuple(text[frame] for frame in frames))
