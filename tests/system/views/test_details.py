"""The details of a frame equal what plain loops and SQL find of it in the same trace."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from flame.tui.details.facts import Facts, collect
from flame.tui.details.labels import Label as Title
from flame.tui.details.parts import HeaviestParts
from flame.tui.session.tree_view import TreeView
from flame.tui.views.sandwich_halves import SandwichHalves
from tests.support.oracles.naive import Row
from tests.support.oracles.naive_tree import Label, tree_stack
from tests.support.oracles.naive_views import Seen, nearest_rank
from tests.system.views.shown_cases import (
    Case,
    Looked,
    label_of,
    labels_of,
    loaded,
    looked,
    nodes_of,
    on_real,
    path_of,
)


def details_of(one: Looked, node: int) -> Facts:
    *_, last = collect(one.shown, one.tree, node)
    return last


def check_details(one: Looked, most: int) -> None:
    tree = one.tree
    for node in nodes_of(tree, most):
        facts, path = details_of(one, node), tree_stack(tree, node)
        below = [each for each in one.plain if each.path[: len(path)] == path]
        each = [s.row.duration if one.case.metric == "count" else s.value for s in below]
        check_spread(facts, sorted(each))
        waits = sorted(s.row.queue for s in below if s.row.call)
        if one.case.metric != "queue" and waits:
            assert facts.queue
            assert (facts.queue.count, facts.queue.total) == (len(waits), sum(waits))
            assert facts.queue.p99 == nearest_rank(waits, 99)
        check_places(facts.on, below, len(one.shown.profile.processes))
        if path:
            check_parents(facts.parents, one, path[-1])


def check_spread(facts: Facts, values: list[int]) -> None:
    found = facts.spread
    assert found
    assert (found.count, found.total) == (len(values), sum(values))
    assert (found.minimum, found.maximum) == (values[0], values[-1])
    ranks = [nearest_rank(values, percent) for percent in (50, 95, 99)]
    assert [found.p50, found.p95, found.p99] == ranks
    histogram = facts.histogram
    if histogram is not None:
        inner = [values[0] - 1, *histogram.edges[1:-1].tolist(), values[-1] + 1]
        expected = np.histogram(values, inner)[0]
        assert histogram.counts.tolist() == expected.tolist()


def check_places(on: Mapping[Title, HeaviestParts], below: list[Seen], processes: int) -> None:
    """Where it ran; with one process in the whole trace, nothing is told of processes."""
    of: dict[Title, Callable[[Row], int | None]] = {
        Title.PROCESSES: lambda row: row.pid,
        Title.THREADS: lambda row: row.call.tid if row.call else None,
        Title.GPUS: lambda row: row.gpu,
        Title.STREAMS: lambda row: row.stream,
    }
    for title, place in of.items():
        sums = Counter[Any]()
        for each in below:
            sums[place(each.row)] += each.value
        sums += Counter()  # leaves out what weighs nothing
        if len(sums) > 1 and (title is not Title.PROCESSES or processes > 1):
            assert on[title].number == len(sums) and on[title].whole == sum(sums.values())
            found = [part.value for part in on[title].heaviest]
            assert found == sorted(sums.values(), reverse=True)[:4]
        else:
            assert title not in on


def check_parents(parents: HeaviestParts, one: Looked, label: Label) -> None:
    tree, sums = one.tree, Counter[Label | None]()
    for path, value, _ in one.plain:
        if label in path:
            at = path.index(label)
            sums[path[at - 1] if at else None] += value
    assert (parents.number, parents.whole) == (len(sums), sum(sums.values()))
    found = [part.value for part in parents.heaviest]
    assert found == sorted(sums.values(), reverse=True)[:6]
    for part in parents.heaviest:
        above = label_of(tree, int(tree.frame[part.node])) if part.node else None
        assert sums[above] == part.value
        assert label in {label_of(tree, int(tree.frame[n])) for n in tree.children(part.node)}


@on_real
def test_the_details_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        check_details(one, 5)


GEOMETRY = (
    "gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread,"
    " staticSharedMemory, dynamicSharedMemory"
)


@on_real
def test_launch_geometry_and_bytes_as_in_the_file(trace: str) -> None:
    profile, rows = loaded(trace)
    one = Looked(Case("gpu"), Case("gpu").shown(profile), Case("gpu").plain(rows))
    expected = defaultdict[str, Counter[Any]](Counter)
    moved = Counter[str]()
    for name, geometry, size in recorded_launches(path_of(trace), rows):
        if geometry:
            expected[name][geometry] += 1
        else:
            moved[name] += size
    tree = one.tree
    for label, frame in labels_of(tree).items():
        kind, name = label
        if kind not in ("kernel", "memcpy", "memset"):
            continue
        facts = of_all_places(one, frame)
        time = sum(row.duration for row in rows if (row.kind, row.name) == label)
        if kind == "kernel":
            assert facts.launched and facts.launched.ns == time
            longest = [used.ns for used in facts.launched.used]
            assert longest == sorted(longest, reverse=True)
            found = Counter[Any]()
            for used in facts.launched.used:
                found[used_geometry(used.config)] += used.times
            assert facts.launched.number >= len(expected[name])
            if facts.launched.number == len(facts.launched.used):
                assert found == expected[name]
            assert found <= expected[name]
        else:
            assert facts.moved
            assert (facts.moved.sizes.total, facts.moved.ns) == (moved[name], time)


def of_all_places(one: Looked, frame: int) -> Facts:
    """As a sandwich shows them."""
    halves = SandwichHalves.of(TreeView(one.tree), frame)
    *_, last = collect(one.shown, halves.callees.tree, 0)
    return last


def used_geometry(config: Any) -> tuple[Any, ...]:
    shared = config.static_shared, config.dynamic_shared
    return (*config.grid, *config.block, config.registers, *shared)


def recorded_launches(path: Path, rows: list[Row]) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """(name, geometry of a kernel, bytes of a copy or set) in the order of the tables."""
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        wanted = {"kernel": GEOMETRY, "memcpy": "bytes", "memset": "bytes"}
        for kind, columns in wanted.items():
            of = [row for row in rows if row.kind == kind]
            if of:
                table = f"CUPTI_ACTIVITY_KIND_{kind.upper()}"
                found = database.execute(f"SELECT {columns} FROM {table} ORDER BY rowid").fetchall()
                for row, values in zip(of, found, strict=True):
                    yield row.name, values if kind == "kernel" else (), values[0]
