"""Numbers on screen equal those that plain loops and SQL find in the same trace."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from flame.core.analysis.chains import frames_word
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.filters import MinShare, Time
from flame.core.projection.labels import Naming
from flame.core.projection.project import project as project_selection
from flame.core.projection.selection import Selection
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import highlight, matching_intervals, passing_intervals
from flame.core.timeline.intervals import Timeline, timeline
from flame.core.timeline.lanes import Track
from flame.core.timeline.raster import Grid
from flame.tui.details.facts import Facts, collect
from flame.tui.details.labels import Label as Title
from flame.tui.details.parts import HeaviestParts
from flame.tui.dialogs.write_files import ExportedStacks
from flame.tui.session.carry import matching_frames
from flame.tui.session.query import Query
from flame.tui.session.session import Projection, project
from flame.tui.session.tree_view import TreeView
from flame.tui.timeline.time_view import TimeView
from flame.tui.views.sandwich_halves import SandwichHalves
from flame.tui.views.top_table import TopTable
from flame.tui.widgets.header import search_status
from tests.conftest import TRACES, is_small
from tests.support.oracles.facts import CAPTURED
from tests.support.oracles.naive import Row, Trace, naive, read_ranges
from tests.support.oracles.naive_host import naive_host
from tests.support.oracles.naive_tree import Label, Shape, Stack, tree_stack
from tests.support.oracles.naive_views import (
    Seen,
    around,
    by_name,
    deepest,
    matched,
    nearest_rank,
    seen,
    union,
)
from tests.support.project_tree import project_tree
from tests.support.strategies import CALL_NAMES, Script, scripts
from tests.support.tiers import deep_except, examples

LEVELS = ("native", "launch", "nvtx", "kernel")
REAL = (
    "a100_llm_nvtx",
    "cuda_backtraces_mpi",
    "cuda_graph_small",
    "h100_2gpu_window",
    "rtx3070_train_17k",
    "ten_streams",
    "two_processes_colliding_ids",
)
SMALL = [name for name in REAL if is_small(TRACES / "nsys" / f"{name}.sqlite")]
on_real = pytest.mark.parametrize("trace", deep_except(SMALL, REAL))
_LONG = 3_000
random_traces = examples(0.15, [HealthCheck.too_slow])


@dataclass(frozen=True)
class Case:
    """A way to look at a trace."""

    metric: str
    shape: Shape = field(default_factory=Shape)
    chosen: dict[str, Any] = field(default_factory=dict)

    def shown(self, profile: Profile) -> Projection:
        layout = TreeLayout(self.shape.inverted, self.shape.collapsed)
        filters = where(**self.shape.filters, **self.chosen)
        return project(profile, Selection(LEVELS, filters, self.metric, layout=layout))

    def plain(self, rows: Iterable[Row]) -> list[Seen]:
        return seen(rows, LEVELS, self.metric, self.shape, self.chosen)


class Looked(NamedTuple):
    """What one case shows, and what a plain computation says of it."""

    case: Case
    shown: Projection
    plain: list[Seen]

    @property
    def tree(self) -> StackTree:
        return self.shown.view.tree


def path_of(trace: str) -> Path:
    path = TRACES / "nsys" / f"{trace}.sqlite"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    return path


@cache
def loaded(trace: str) -> tuple[Profile, list[Row]]:
    path = path_of(trace)
    return load(path, LoadOptions("raw")), naive(path)


def cases(rows: list[Row]) -> Iterator[Case]:
    """Metrics, filters and arrangements in turn, chosen so that something is left of `rows`."""
    starts = sorted(row.start for row in rows)
    third = f"{starts[len(starts) // 3]}ns/{starts[-len(starts) // 3] + 1}ns"
    streams = Counter(row.stream for row in rows).most_common(1)
    [(kernel, _)] = Counter(row.name for row in rows).most_common(1)
    ranges = Counter(text for row in rows for text in set(row.ranges)).most_common(1)
    yield Case("gpu")
    yield Case("queue", Shape(), {"time": third})
    yield Case("idle", Shape(inverted=True), {"stream": (streams[0][0],)})
    yield Case("launch", Shape(hide_stacks=(f"^{re.escape(kernel)}$",), collapsed=True))
    yield Case("gpu", Shape(show_stacks=(re.escape(kernel),), inverted=True), {"time": third})
    yield Case("gpu", Shape(hide_frames=("^cuda", f"^{re.escape(kernel)}$")))
    yield Case("count", Shape(show_from=(re.escape(ranges[0][0] if ranges else kernel),)))
    if ranges and ranges[0][0] and not set("*?@\\") & set(ranges[0][0]):
        yield Case("gpu", Shape(), {"nvtx": ranges[0][0]})


def looked_at(profile: Profile, rows: list[Row]) -> Iterator[Looked]:
    """All cases, or of a long trace every third."""
    for case in islice(cases(rows), 0, None, 3 if len(rows) > _LONG else 1):
        plain = case.plain(rows)
        try:
            shown = case.shown(profile)
        except NoMatchError:
            assert not plain
        else:
            yield Looked(case, shown, plain)


@cache
def looked(trace: str) -> list[Looked]:
    return list(looked_at(*loaded(trace)))


def label_of(tree: StackTree, frame: int) -> Label:
    known = tree.frames[frame]
    mark = CAPTURED if known.get("captured") else ""
    return known.kind.title, tree.text[frame] + mark


def labels_of(tree: StackTree) -> dict[Label, int]:
    """The frame of every label; a label stands for one frame."""
    frames = np.unique(tree.frame[1:]).tolist()
    found = {label_of(tree, frame): frame for frame in frames}
    assert len(found) == len(frames)
    return found


def ways(tree: StackTree) -> dict[Stack, int]:
    return {tree_stack(tree, node): int(tree.total[node]) for node in range(len(tree))}


# Top


def check_top(one: Looked) -> None:
    tree, table = one.tree, TopTable(one.tree)
    values = one.shown.metric.values(one.shown.profile.activities)
    table.take(table.later(one.shown.members(), values, {}))
    spread, sums = table.spread, table.totals
    assert spread is not None
    expected = by_name(one.plain)
    assert set(labels_of(tree)) == set(expected)
    whole = sum(value for _, value, _ in one.plain)
    assert int(tree.total[0]) == whole
    for row, frame in enumerate(sums.frame.tolist()):
        named = expected[label_of(tree, frame)]
        columns = (sums.total, sums.own, sums.count, sums.places)
        found = tuple(int(column[row]) for column in columns)
        assert found == (named.total, named.own, len(named.values), named.places)
        assert len(one.shown.members().of_frame(frame)) == len(named.values)
        ranks = tuple(int(c[row]) for c in (spread.p50, spread.p95, spread.p99, spread.maximum))
        assert ranks == tuple(nearest_rank(named.values, p) for p in (50, 95, 99, 100))
        if tree.metric.unit == "ns":
            check_cells(table, row, named.total, whole, ranks)


def check_cells(table: TopTable, row: int, total: int, whole: int, ranks: tuple[int, ...]) -> None:
    assert_says(table.cell(row, "total"), total)
    assert_percent(table.cell(row, "share"), total, whole)
    for key, value in zip(("p50", "p95", "p99", "maximum"), ranks, strict=True):
        assert_says(table.cell(row, key), value)
    if ranks[0]:
        ratio = float(table.cell(row, "tail").removesuffix("×").replace(",", "").strip(">"))
        assert ratio == pytest.approx(min(ranks[2] / ranks[0], 99_999), abs=0.051, rel=0.005)


SCALE = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def assert_says(text: str, ns: float) -> None:
    """The text is `ns`, to its last digit, in a unit that leaves one to three digits before it."""
    number, unit = text.split()
    scale, digits = SCALE[unit], len(number.partition(".")[2])
    assert float(number) * scale == pytest.approx(ns, abs=0.5001 * scale / 10**digits)
    assert 1 <= float(number) < 1000 or unit == "s" or ns < 1


def assert_percent(text: str, part: int, whole: int) -> None:
    if text == "<0.1 %":
        assert 0 < part * 1000 < whole
    else:
        percent = float(text.removesuffix(" %"))
        assert percent == pytest.approx(100 * part / whole if whole else 0, abs=0.0501)
        assert (percent == 0) == (part == 0 or whole == 0)


@on_real
def test_the_top_table_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        check_top(one)


@on_real
def test_the_top_table_of_host_time(trace: str) -> None:
    path = path_of(trace)
    tree = project_tree(load(path, LoadOptions("raw")), "nvtx,launch", metric="host")
    total, own = Counter[Label](), Counter[Label]()
    for piece in naive_host(path):
        labels = [("nvtx", text) for text in piece.ranges]
        labels += [("launch", piece.call)] if piece.call else []
        for label in set(labels):
            total[label] += piece.ns
        own[labels[-1]] += piece.ns
    table = TopTable(tree).totals
    columns = zip(table.frame.tolist(), table.total.tolist(), table.own.tolist(), strict=True)
    found = {label_of(tree, frame): sums for frame, *sums in columns if any(sums)}
    assert found == {label: [total[label], own[label]] for label in total if total[label]}


# Sandwich


def check_sandwich(one: Looked, most: int) -> None:
    tree, inverted = one.tree, one.case.shape.inverted
    # In an inverted tree the innermost place is the outermost one.
    plain = [each._replace(path=each.path[::-1]) for each in one.plain] if inverted else one.plain
    named = sorted(by_name(plain).items(), key=lambda item: -item[1].total)
    for label, sums in named[:most]:
        halves = SandwichHalves.of(TreeView(tree), labels_of(tree)[label])
        callers, callees = around(plain, label, innermost=inverted)
        assert ways(halves.callers.tree) == callers
        assert ways(halves.callees.tree) == callees
        assert int(halves.callers.tree.total[0]) == sums.total
        assert halves.own == sums.own
        assert halves.callers.whole == halves.callees.whole == int(tree.total[0])


@on_real
def test_both_halves_of_sandwiches_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        check_sandwich(one, 4)


# Details


def details_of(one: Looked, node: int) -> Facts:
    *_, last = collect(one.shown, one.tree, node)
    return last


def nodes_of(tree: StackTree, most: int) -> list[int]:
    """The heaviest nodes, and some others."""
    heaviest = np.argsort(-tree.total, kind="stable")[:most].tolist()
    return sorted({*heaviest, *range(1, len(tree), max(len(tree) // most, 1))})


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


# Search


def check_search(one: Looked, pattern: str) -> None:
    tree, view = one.tree, one.shown.view
    query = Query(pattern)
    hits = matched(one.plain, query.compile())
    value, whole = sum(hit.value for hit in hits), int(tree.total[0])
    view.search(query)
    assert view.matches.result is not None
    assert view.matches.result.matches.total == value
    view.zoom_to(
        view.viewport.zoom_of(int(np.argmin(tree.total)))
    )  # shares are of all nevertheless
    status = "".join(piece.text for piece in search_status(view, 200))
    view.reset()
    if hits:
        number, total, share = status.strip().split(" · ")[:3]
        fitting = names_of(one.plain, query)
        paths = {path for path, *_ in hits}
        nodes = {p[:n] for p in paths for n in range(1, len(p) + 1) if p[n - 1] in fitting}
        assert number == frames_word(len(nodes))
        assert_percent(share.removesuffix(" of all"), value, whole)
        if tree.metric.unit == "ns":
            assert_says(total, value)
    else:
        assert "no frame matches" in status
    check_search_in_views(one, query)
    view.search(None)


def names_of(activities: list[Seen], query: Query) -> set[Label]:
    """The names that match."""
    search, labels = query.compile().search, {label for path, *_ in activities for label in path}
    return {label for label in labels if search(label[1].removesuffix(CAPTURED))}


def check_search_in_views(one: Looked, query: Query) -> None:
    tree, view = one.tree, one.shown.view
    table = TopTable(tree)
    assert view.matches.result is not None
    rows = table.rows("own", False, None, matching_frames(tree, view.matches.result))
    found = {label_of(tree, int(table.totals.frame[row])) for row in rows}
    names = names_of(one.plain, query)
    assert found == names
    for label in sorted(names)[:2]:
        halves = SandwichHalves.of(TreeView(tree), labels_of(tree)[label])
        halves.mark(tree, view.matches.result)
        for half in halves:
            assert half.matches.result and view.matches.result
            assert half.matches.result.matches.total == view.matches.result.matches.total
            marked = {half.tree.name(node) for node in half.matches.result.order.tolist()}
            assert marked <= {text.removesuffix(CAPTURED) for _, text in names}
    if not one.case.shape.hide_frames:  # names that are hidden here are still seen over time
        lit = lit_activities(one)
        assert lit == Counter(
            (each.row.start, each.row.duration)
            for each in matched(one.plain, query.compile())
            if each.row.kind != "graph" or each.row.start or each.row.duration
        )


def lit_activities(one: Looked) -> Counter[tuple[int, int]]:
    """(start, duration) of the work that is bright over time."""
    shown, time, table = one.shown, over_time(one.shown.profile), one.shown.profile.activities
    found = shown.view.matches.result
    assert found is not None
    hits = matching_intervals(time, one.tree, found.matches.mask, found.query.compile())
    lit = highlight(
        time, passing_intervals(time, shown.profile, one.tree, shown.selection.where), hits
    )
    rows = time.source[lit.bright & (time.track == Track.WORK)]
    return Counter(zip(table.start[rows].tolist(), table.duration[rows].tolist(), strict=True))


over_time = cache(timeline)


@on_real
def test_search_finds_the_same_in_all_views_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        for pattern in ("gemm|forward", "e", "memcpy|layer", "nothing like this"):
            check_search(one, pattern)


# Timeline


def windows_of(time: Timeline) -> list[TimeWindow]:
    high = time.whole.high
    return [
        time.whole,
        TimeWindow(high // 3, high // 2),
        TimeWindow(high - high // 7, high),
        TimeWindow(high // 5, high // 5 + 1_000),
    ]


def check_timeline(profile: Profile, rows: list[Row], ranges: dict[int, Any]) -> None:
    time = timeline(profile)
    spans = defaultdict[Any, list[tuple[int, int]]](list)
    streams = defaultdict[Any, list[tuple[int, int]]](list)
    threads = {
        thread: [(r.start - time.origin, r.end - time.origin) for r in of if r.end > r.start]
        for thread, of in ranges.items()
    }
    for row in rows:
        if row.kind != "graph" or row.start or row.duration:
            span = row.start - time.origin, row.start - time.origin + row.duration
            spans[row.gpu].append(span)
            streams[row.gpu, row.pid, row.stream].append(span)
    work = [lane for lane in time.lanes if lane.track == Track.WORK]
    for window in windows_of(time):
        busy = {name: device.share(window) for name, device in time.devices}
        assert busy == pytest.approx({f"GPU{gpu}": share(of, window) for gpu, of in spans.items()})
        found = [time.busy(lane).share(window) for lane in work if not lane.level]
        assert sorted(found) == pytest.approx(sorted(share(of, window) for of in streams.values()))
        outer = [lane for lane in time.lanes if lane.track == Track.RANGES and not lane.level]
        found = [time.busy(lane).share(window) for lane in outer]
        expected = [share(of, window) for of in threads.values() if of]
        assert sorted(found) == pytest.approx(sorted(expected))
    levels = [lane.level for lane in time.lanes if lane.track == Track.RANGES]
    assert sorted(levels) == sorted(n for of in ranges.values() for n in range(deepest(of)))


def share(intervals: list[tuple[int, int]], window: TimeWindow) -> float:
    return union(intervals, *window) / max(window.length, 1)


@on_real
def test_rows_over_time_are_as_busy_as_the_file_says(trace: str) -> None:
    check_timeline(*loaded(trace), read_ranges(Trace(path_of(trace)), start_end=False))


@on_real
@pytest.mark.parametrize(("left", "right"), [(0, 120), (40, 41), (41, 119)])
def test_a_brush_filters_by_what_starts_in_its_cells(trace: str, left: int, right: int) -> None:
    profile, rows = loaded(trace)
    check_brush(profile, rows, left, right, 120)


def check_brush(profile: Profile, rows: list[Row], left: int, right: int, width: int) -> None:
    time = over_time(profile)
    view = TimeView(time, highlight(time, np.ones(len(time), bool)))
    view.viewport.width = width
    view.viewport.brush_cells(left, right)
    assert view.viewport.brush
    low, high = (time.origin + edge for edge in view.viewport.brush.window)
    cells = {id(row): (row.start - time.origin) * width // time.whole.length for row in rows}
    expected = [row for row in rows if left <= cells[id(row)] < right]
    try:
        tree = project_tree(profile, LEVELS, (Time(low, high),), "gpu")
    except NoMatchError:
        assert not expected
    else:
        found = int(tree.total[0]), int(tree.count[0])
        assert found == (sum(row.duration for row in expected), len(expected))


def test_the_end_of_a_brush_is_the_end_of_its_last_cell() -> None:
    """Cells of 2.5 ns: what starts at 2 ns is in the first one."""
    grid = Grid(TimeWindow(0, 10), 4)
    assert [grid.time(cell) for cell in range(5)] == [0, 2.5, 5, 7.5, 10]
    grid = Grid(TimeWindow(0, 49_000_000_000_049), 49)
    assert all(grid.time(cell) == cell * 1_000_000_000_001 for cell in range(50))


# Filters


def weight(profile: Profile, metric: str, *filters: Any, **arranged: Any) -> int:
    selection = Selection(LEVELS, filters, metric, layout=TreeLayout(**arranged))
    try:
        return int(project_selection(profile, selection).total[0])
    except NoMatchError:
        return 0


def check_algebra(profile: Profile, pattern: str, metric: str) -> None:
    whole = project_tree(profile, LEVELS, metric=metric)
    total = int(whole.total[0])
    view = project(profile, Selection(LEVELS, (), metric)).view
    view.search(Query(f"(?-i:{pattern})"))
    assert view.matches.result
    show, hide, below, less = (
        where(**{kind: pattern})  # type: ignore[arg-type]
        for kind in ("show_stacks", "hide_stacks", "show_from", "hide_frames")
    )
    assert weight(profile, metric, *show) == view.matches.result.matches.total
    assert weight(profile, metric, *show) + weight(profile, metric, *hide) == total
    assert weight(profile, metric, *below) == weight(profile, metric, *show)
    for same in (less, (MinShare(3.0),), (*less, MinShare(50.0))):
        assert weight(profile, metric, *same) == total
    assert weight(profile, metric, collapsed=True) == total
    folded = project_selection(profile, Selection(LEVELS, (), metric, Naming(fold=True)))
    assert int(folded.total[0]) == total
    inverted = project_tree(profile, LEVELS, metric=metric, layout=TreeLayout(inverted=True))
    first = {inverted.name(n): int(inverted.total[n]) for n in inverted.children(0)}
    sums = TopTable(whole).totals
    own = zip(sums.frame.tolist(), sums.own.tolist(), sums.count.tolist(), strict=True)
    assert {n: v for n, v in first.items() if v} == {whole.text[f]: v for f, v, _ in own if v}


@on_real
def test_filters_add_up_on_real_traces(trace: str) -> None:
    profile, _ = loaded(trace)
    for metric in ("gpu", "count", "idle"):
        for pattern in ("gemm", "e|memcpy"):
            check_algebra(profile, pattern, metric)


# Exports


def check_exports(one: Looked, folder: Path) -> None:
    tree, view = one.tree, one.shown.view
    for node in nodes_of(tree, 2):
        view.zoom_to(view.viewport.zoom_of(node))
        path = tree_stack(tree, view.viewport.zoom.node)
        stacks = Counter[str]()
        for each in one.plain:
            if each.path[: len(path)] == path and each.value:
                names = (text.removesuffix(CAPTURED).replace(";", ":") for _, text in each.path)
                stacks[";".join(name or "[empty]" for name in names) or "all"] += each.value
        if stacks:
            written = ExportedStacks(
                one.shown.profile, "trace", tree.restrict_to(view.viewport.zoom.node)
            )
            assert read_folded(written, folder) == stacks
            assert read_speedscope(written, folder) == sum(stacks.values())
            assert sum(stacks.values()) == view.viewport.total
    view.reset()


def read_folded(written: ExportedStacks, folder: Path) -> dict[str, int]:
    written.write("folded", str(folder / "folded.txt"), replace=True)
    lines = (folder / "folded.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return {stack: int(value) for stack, value in (line.rsplit(" ", 1) for line in lines)}


def read_speedscope(written: ExportedStacks, folder: Path) -> int:
    written.write("speedscope", str(folder / "speedscope.json"), replace=True)
    [profile] = json.loads((folder / "speedscope.json").read_bytes())["profiles"]
    assert profile["endValue"] == sum(profile["weights"])
    return int(profile["endValue"])


@on_real
def test_what_is_shown_is_what_is_written(trace: str, tmp_path: Path) -> None:
    for one in looked(trace):
        check_exports(one, tmp_path)


# Random traces


UNKNOWN_PROCESS = Script(
    "new",
    0,
    False,
    (
        ("api", {"name": CALL_NAMES[0], "start": 0, "end": 1, "corr": 1, "pid": 100, "tid": 100}),
        ("kernel", {"name": "gemm", "start": 2, "end": 4, "corr": 1}),
        ("kernel", {"name": "gemm", "start": 5, "end": 6, "corr": None}),
    ),
)
"""Kernels that do not say of which process they are, one of them launched by the only one."""


@random_traces
@example(UNKNOWN_PROCESS, 0, 1)
@given(scripts(), st.integers(0, 3), st.integers(1, 4))
def test_all_of_it_on_random_traces(
    trace_file: Path, script: Script, left: int, width: int
) -> None:
    script.write(trace_file)
    profile, rows = load(trace_file, LoadOptions("raw")), naive(trace_file)
    if not rows:
        return
    for one in looked_at(profile, rows):
        check_top(one)
        check_sandwich(one, 3)
        check_details(one, 4)
        for pattern in ("gemm|forward", "a"):
            check_search(one, pattern)
        check_exports(one, trace_file.parent)
    check_timeline(profile, rows, read_ranges(Trace(trace_file), start_end=False))
    if profile.duration >= 4:  # or cells would be shorter than a nanosecond
        check_brush(profile, rows, left, min(left + width, 4), 4)
    check_algebra(profile, "layer|gemm$", "gpu")
