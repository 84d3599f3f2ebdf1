"""Timelines: every activity and range in one row, and cells as busy as a count by hand says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.analysis.node_activities import NodeActivities
from flame.core.analysis.search import search
from flame.core.attribution.resolved import resolve_stacks
from flame.core.columns import I8
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.activities import ThreadPieces, has_times
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta, Process, Thread
from flame.core.model.profile import Profile
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackBuilder
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.timeline.busy_time import TimeWindow
from flame.core.timeline.highlight import (
    Highlight,
    category_looks,
    highlight,
    matching_intervals,
    passing_intervals,
)
from flame.core.timeline.intervals import Timeline, timeline
from flame.core.timeline.lanes import Lane, Track
from flame.core.timeline.raster import Grid, Shading, shade
from tests.support.generated.strategies import Script, scripts
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

random_traces = examples(0.4, [HealthCheck.too_slow])


def loaded(script: Script, path: Path) -> Profile:
    return load(script.write(path), LoadOptions("raw"))


def owners(time: Timeline, lane: Lane) -> dict[int, int]:
    """What is visible in ``lane`` at each nanosecond: the first in its order that is open then."""
    seen: dict[int, int] = {}
    for item in range(lane.first, lane.last):
        for moment in range(*time.window(item)):
            seen.setdefault(moment, item)
    return seen


def share(grid: Grid, cell: int, moments: set[int]) -> Fraction:
    """The part of ``cell`` that ``moments`` (each a nanosecond long) fill."""
    step = Fraction(grid.window.length, grid.width)
    low = grid.window.low + cell * step
    high = low + step
    whole = map(Fraction, moments)
    inside = (min(high, moment + 1) - max(low, moment) for moment in whole)
    return sum((part for part in inside if part > 0), Fraction(0)) / step


def shaded(time: Timeline, lit: Highlight, grid: Grid) -> list[tuple[Lane, Shading]]:
    return list(zip(time.lanes, shade(time, lit, list(time.lanes), grid), strict=True))


@random_traces
@given(scripts())
def test_every_activity_and_range_has_one_place(trace_file: Path, script: Script) -> None:
    profile = loaded(script, trace_file)
    time, ranges, calls = timeline(profile), profile.ranges, profile.calls
    assert ranges is not None and calls is not None
    for track, pieces in ((Track.RANGES, ranges), (Track.CALLS, calls)):
        assert sorted(time.source[time.track == track]) == list(range(len(pieces)))
    work = time.source[time.track == Track.WORK]
    assert sorted(work) == np.flatnonzero(has_times(profile.activities)).tolist()
    bounds = [lane.first for lane in time.lanes] + [len(time)]
    assert bounds[0] == 0 and [lane.last for lane in time.lanes] == bounds[1:]


@random_traces
@given(scripts())
def test_rows_are_ordered_and_visible_parts_do_not_overlap(
    trace_file: Path, script: Script
) -> None:
    time = timeline(loaded(script, trace_file))
    for lane in time.lanes:
        seen = owners(time, lane)
        starts = [time.window(item).low for item in range(lane.first, lane.last)]
        assert starts == sorted(starts)
        for item in range(lane.first, lane.last):
            visible = set(range(int(time.low[item]), time.high(item)))
            assert visible == {moment for moment, owner in seen.items() if owner == item}


@random_traces
@given(scripts(), st.integers(-3, 20), st.integers(1, 25), st.integers(1, 9), st.integers(0, 99))
def test_cells_are_as_busy_as_counted_by_hand(
    trace_file: Path, script: Script, low: int, length: int, width: int, seed: int
) -> None:
    profile = loaded(script, trace_file)
    time = timeline(profile)
    looks = category_looks(time, profile) if seed % 2 else None
    lit = highlight(time, np.random.default_rng(seed).random(len(time)) < 0.6, by_category=looks)
    grid = Grid(TimeWindow(low, low + length), width)
    for lane, shading in shaded(time, lit, grid):
        seen = owners(time, lane)
        alone = {bar.item for bar in shading.bars}
        cells = {cell for bar in shading.bars for cell in range(bar.left, bar.right)}
        for cell in set(range(width)) - cells:
            rest = {moment: item for moment, item in seen.items() if item not in alone}
            bright = {moment for moment, item in rest.items() if lit.bright[item]}
            assert shading.cover[cell] == pytest.approx(float(share(grid, cell, set(rest))))
            assert shading.lit[cell] == pytest.approx(float(share(grid, cell, bright)))
            by_look = {
                look: share(grid, cell, {one for one in bright if lit.looks[rest[one]] == look})
                for look in lit.looks_of(lane.track)
            }
            most = max(by_look.values())
            if most:
                assert by_look[int(shading.look[cell])] == pytest.approx(float(most))


@random_traces
@given(scripts(), st.integers(-3, 20), st.integers(1, 25), st.integers(1, 9))
def test_bars_are_the_wide_ones_in_the_window_in_order(
    trace_file: Path, script: Script, low: int, length: int, width: int
) -> None:
    time = timeline(loaded(script, trace_file))
    grid = Grid(TimeWindow(low, low + length), width)
    for lane, shading in shaded(time, highlight(time, np.ones(len(time), bool)), grid):
        edges = [edge for bar in shading.bars for edge in (bar.left, bar.right)]
        assert edges == sorted(edges) and all(0 <= edge <= width for edge in edges)
        for item in range(lane.first, lane.last):
            first = max(int(time.low[item]), grid.window.low)
            visible = min(time.high(item), grid.window.high) - first
            is_wide = visible * Fraction(width, length) >= Fraction(3, 2)
            assert is_wide == (item in {bar.item for bar in shading.bars})


@random_traces
@given(scripts(), st.integers(-3, 20), st.integers(1, 25))
def test_devices_are_busy_while_anything_runs(
    trace_file: Path, script: Script, low: int, length: int
) -> None:
    profile = loaded(script, trace_file)
    time, table = timeline(profile), profile.activities
    window = TimeWindow(low, low + length)
    for (_, busy), device in zip(time.devices, np.unique(table.device), strict=True):
        open_at: set[int] = set()
        for row in np.flatnonzero((table.device == device) & has_times(table)).tolist():
            start = int(table.start[row]) - profile.begin
            open_at |= set(range(start, start + int(table.duration[row])))
        inside = sum(low <= moment < low + length for moment in open_at)
        assert busy.share(window) == pytest.approx(inside / length)


@random_traces
@given(scripts(), st.sampled_from([{"time": (2, 6)}, {"stream": 7}, {"kernel": "gemm"}]))
def test_filters_leave_what_passes_and_the_ranges_that_launched_it(
    trace_file: Path, script: Script, chosen: dict[str, object]
) -> None:
    profile = loaded(script, trace_file)
    if "time" in chosen:
        chosen = {"time": f"{script.offset + 2}ns/{script.offset + 6}ns"}
    filters = where(**chosen)  # type: ignore[arg-type]
    try:
        tree = project_tree(profile, where=filters, metric="gpu")
    except NoMatchError:
        return
    time, table = timeline(profile), profile.activities
    found = passing_intervals(time, profile, tree, filters)
    members = set(NodeActivities.from_tree(profile, tree, filters).below(0).tolist())
    launched = [row for row in members if table.launched[row] and table.thread[row] >= 0]
    for item in range(len(time)):
        row, track = int(time.source[item]), Track(int(time.track[item]))
        if track == Track.WORK:
            assert found[item] == (row in members)
            continue
        pieces = time.pieces[track]

        def holds(one: int, pieces: ThreadPieces = pieces, row: int = row) -> bool:
            on_thread = bool(table.thread[one] == pieces.thread[row])
            return on_thread and bool(
                pieces.start[row] <= table.launch_start[one] <= pieces.end[row]
            )

        shown = any(map(holds, launched))
        if track == Track.CALLS:
            all_launched = np.flatnonzero(table.launched & (table.thread >= 0)).tolist()
            shown |= not any(map(holds, all_launched))
        assert found[item] == shown


def test_threads_that_launched_the_most_come_first_then_gpus(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100", pid=100)
        for tid, name, length in ((100, "light", 10), (101, "heavy", 500)):
            trace.thread(100, tid, name)
            trace.nvtx("outer", 0, 1_000, tid=tid)
            trace.nvtx("inner", 100, 900, tid=tid)
            trace.api("cudaLaunchKernel", 200, 210, tid, tid=tid)
            trace.kernel("gemm", 2_000 + tid * 10, 2_000 + tid * 10 + length, tid, stream=tid)
    time = timeline(load(tmp_path / "t.sqlite"))
    assert [(lane.label, lane.level) for lane in time.lanes] == [
        ("heavy [101]", 0),
        ("heavy [101]", 1),
        ("heavy [101]", 0),
        ("light [100]", 0),
        ("light [100]", 1),
        ("light [100]", 0),
        ("GPU0 stream 100", 0),
        ("GPU0 stream 101", 0),
    ]


def test_work_within_other_work_of_its_stream_has_a_row_below(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for name, start, end in (("long", 0, 100), ("within", 20, 30), ("later", 90, 120)):
            trace.kernel(name, start, end, corr=None)
    profile = load(tmp_path / "t.sqlite")
    time = timeline(profile)
    names = [profile.frames[int(frame)].name for frame in time.frame]
    assert names == ["long", "later", "within"]
    assert [lane.level for lane in time.lanes] == [0, 1]
    assert (int(time.low[1]), time.high(1)) == (100, 120)
    assert time.window(1) == TimeWindow(90, 120)


def test_processes_on_one_gpu_do_not_share_a_row(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for pid in (100, 101):
            trace.gpu(0, "", pid=pid)
            trace.process(pid, "p")
            trace.kernel("gemm", 0, 10, corr=None, pid=pid)
    time = timeline(load(tmp_path / "t.sqlite"))
    assert [lane.label for lane in time.lanes] == ["GPU0 stream 7 [100]", "GPU0 stream 7 [101]"]


def test_search_finds_ranges_by_name_and_work_also_by_what_is_above_it(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for corr, name in enumerate(("attention", "mlp"), 1):
            begin = corr * 1_000
            trace.nvtx("layer", begin, begin + 900)
            trace.nvtx(name, begin + 100, begin + 500)
            trace.api("cudaLaunchKernel", begin + 200, begin + 210, corr)
            trace.kernel("gemm", begin + 300, begin + 400, corr)
    profile = load(tmp_path / "t.sqlite")
    time, tree, pattern = timeline(profile), project_tree(profile), re.compile("mlp")
    found = matching_intervals(time, tree, search(tree, pattern).mask, pattern)
    names = [profile.frames[int(frame)].name for frame in time.frame]
    assert list(zip(names, found.tolist(), strict=True)) == [
        ("layer", False),
        ("layer", False),
        ("attention", False),
        ("mlp", True),
        ("cudaLaunchKernel", False),
        ("cudaLaunchKernel", False),
        ("gemm", False),
        ("gemm", True),
    ]


def test_on_the_host_only_ranges_are_bright(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.nvtx("first", 0, 100)
        trace.nvtx("second", 100, 200)
        trace.kernel("gemm", 300, 400, corr=None)
    profile = load(tmp_path / "t.sqlite")
    time = timeline(profile)
    assert passing_intervals(time, profile, project_tree(profile, metric="host"), ()).tolist() == [
        True,
        True,
        False,
    ]
    filters = where(time="50ns/900ns")
    tree = project_tree(profile, metric="host", where=filters)
    assert passing_intervals(time, profile, tree, filters).tolist() == [False, True, False]


def test_an_empty_trace_has_no_rows(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.create("NVTX_EVENTS")
    time = timeline(load(tmp_path / "t.sqlite"))
    assert not time.lanes and not len(time)
    lit = highlight(time, np.ones(0, bool))
    assert shade(time, lit, [], Grid(time.whole, 80)) == []


@pytest.mark.parametrize("name", ["h100_2gpu_window", "ten_streams", "rtx3070_train_17k"])
def test_a_real_trace_is_as_busy_as_its_rows(name: str, nsys_trace: Callable[[str], Path]) -> None:
    profile = load(nsys_trace(f"{name}.sqlite"))
    time = timeline(profile)
    lit = highlight(time, np.ones(len(time), bool))
    for window in (time.whole, TimeWindow(time.whole.high // 3, time.whole.high // 2)):
        grid = Grid(window, 150)
        for lane, shading in shaded(time, lit, grid):
            inside = sum(
                min(time.high(bar.item), window.high) - max(int(time.low[bar.item]), window.low)
                for bar in shading.bars
            )
            open_cells = np.ones(grid.width, bool)
            for bar in shading.bars:
                open_cells[bar.left : bar.right] = False
            shown = inside + shading.cover[open_cells].sum() / grid.scale
            assert shown <= time.busy(lane).share(window) * window.length + 1
            assert (shading.cover < 1 + 1e-6).all() and np.allclose(shading.cover, shading.lit)


def test_the_shortest_kernel_of_a_long_trace_leaves_a_mark(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for start in (0, 330_000_000_000, 3_600_000_000_000):
            trace.kernel("gemm", start, start + 100, corr=None)
    time = timeline(load(tmp_path / "t.sqlite"))
    [(_, shading)] = shaded(time, highlight(time, np.ones(3, bool)), Grid(time.whole, 60))
    assert np.flatnonzero(shading.cover).tolist() == [0, 5, 59]


def samples(threads: int) -> Profile:
    """Three samples of 10 ns on each of ``threads`` (0: no thread is known), from 100 ns on."""
    frames, stacks = FrameBuilder(), StackBuilder()
    main, work = frames.add(Frame(Kind.FRAME, "main")), frames.add(Frame(Kind.NVTX, "work"))
    stack = [stacks.add_path([main]), stacks.add_path([main, work]), stacks.add_path([main])]
    rounds = max(threads, 1)
    ten: I8 = np.full(3 * rounds, 10, np.int64)
    raw = RawStacks(
        frames,
        stacks,
        np.array(stack * rounds, np.int32),
        (Measure("time", "time", "ns", ten),),
        Meta(format="speedscope"),
        thread=np.repeat(np.arange(threads, dtype=np.int32), 3) if threads else None,
        start=np.array([100, 110, 120] * rounds, np.int64),
        processes=(Process(7, "server"),),
        threads=tuple(Thread(0, tid, "") for tid in range(threads)),
    )
    return resolve_stacks(raw)


@pytest.mark.parametrize(
    ("threads", "labels"), [(0, ["samples"]), (2, ["server [0]", "server [1]"])]
)
def test_samples_have_a_row_per_thread_with_the_innermost_frame(
    threads: int, labels: list[str]
) -> None:
    profile = samples(threads)
    time = timeline(profile)
    assert [lane.label for lane in time.lanes] == labels
    assert time.devices == () and time.whole == TimeWindow(0, 30)
    for lane in time.lanes:
        items = range(lane.first, lane.last)
        names = [profile.frames[int(time.frame[item])].name for item in items]
        assert names == ["main", "work", "main"]
        assert [time.window(item) for item in items] == [(0, 10), (10, 20), (20, 30)]
    # What a file calls a range is a sample here, and passes as such.
    assert set(time.track.tolist()) == {Track.WORK}
    assert passing_intervals(time, profile, project_tree(profile), ()).all()


def test_work_of_no_known_process_names_none(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        trace.process(100, "python")
        trace.kernel("gemm", 0, 10, corr=None)
        trace.kernel("gemm", 20, 30, corr=None)
    profile = load(tmp_path / "t.sqlite")
    process = np.array([0, -1], np.int32)
    lanes = timeline(
        replace(profile, activities=replace(profile.activities, process=process))
    ).lanes
    assert sorted(lane.label for lane in lanes) == ["GPU0 stream 7", "GPU0 stream 7 [100]"]
